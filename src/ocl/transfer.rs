//! Transfers to, from and between buffers.

use std::ptr;
use std::sync::atomic::Ordering;

use super::buffer::Buffer;
use super::context::Context;
use crate::error::{Result, same_length};
use crate::number::Element;
use crate::runs::Runs;
use opencl3::error_codes::ClError;
use opencl3::event::Event;
use opencl3::memory::ClMem;
use opencl3::types::{CL_BLOCKING, CL_NON_BLOCKING};

impl Context {
    fn check_range<T: Element>(buffer: &Buffer<T>, offset: usize, len: usize) -> Result<()> {
        match offset.checked_add(len) {
            Some(end) if end <= buffer.len() => Ok(()),
            _ => same_length("range of a device buffer", buffer.len(), offset.saturating_add(len)),
        }
    }

    /// Copies `data` to `buffer` from element `offset` on. Returns when `data` may be reused.
    pub(crate) fn write<T: Element>(&self, buffer: &mut Buffer<T>, offset: usize, data: &[T]) -> Result<()> {
        Self::check_range(buffer, offset, data.len())?;
        if data.is_empty() {
            return Ok(());
        }
        // SAFETY: every element type is plain numbers without padding, so its bytes are initialised.
        let bytes = unsafe { std::slice::from_raw_parts(data.as_ptr().cast::<u8>(), size_of_val(data)) };
        // SAFETY: the range was checked against the buffer, and the call blocks until `bytes` has been read.
        unsafe {
            self.queue.enqueue_write_buffer(buffer.raw_mut(), CL_BLOCKING, offset * size_of::<T>(), bytes, &[])
        }
        .map_err(self.error("clEnqueueWriteBuffer"))?;
        self.uploaded.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Bytes written to the device so far.
    #[cfg(test)]
    pub(super) fn uploaded(&self) -> u64 {
        self.uploaded.load(Ordering::Relaxed)
    }

    /// Copies the first `len` elements of `buffer` to its elements from `place` on, which lie behind them.
    pub(super) fn repeat<T: Element>(&self, buffer: &mut Buffer<T>, place: usize, len: usize) -> Result<()> {
        Self::check_range(buffer, place, len)?;
        if len > place {
            return same_length("elements to repeat before their place", place, len);
        }
        let (handle, size) = (buffer.raw_mut().get_mut(), size_of::<T>());
        // SAFETY: the handle is alive, `buffer` holds it; both ranges were checked and do not overlap: the first ends where the
        // second begins, or before.
        let event = unsafe {
            cl3::command_queue::enqueue_copy_buffer(
                self.queue.get(),
                handle,
                handle,
                0,
                place * size,
                len * size,
                0,
                ptr::null(),
            )
        };
        // Dropped, which releases it.
        event.map(Event::new).map(drop).map_err(|code| self.error("clEnqueueCopyBuffer")(ClError(code)))
    }

    /// Waits for all work queued so far and copies elements `offset ..` of `buffer` into `data`.
    pub(crate) fn read<T: Element>(&self, buffer: &Buffer<T>, offset: usize, data: &mut [T]) -> Result<()> {
        Self::check_range(buffer, offset, data.len())?;
        if data.is_empty() {
            return Ok(());
        }
        let size = size_of_val(data);
        // SAFETY: any bytes are a valid value of every element type, and the slice covers exactly `data`.
        let bytes = unsafe { std::slice::from_raw_parts_mut(data.as_mut_ptr().cast::<u8>(), size) };
        // SAFETY: the range was checked against the buffer, and the call blocks until `bytes` is filled.
        unsafe { self.queue.enqueue_read_buffer(buffer.raw(), CL_BLOCKING, offset * size_of::<T>(), bytes, &[]) }
            .map_err(self.error("clEnqueueReadBuffer"))?;
        Ok(())
    }

    /// Copies the first elements of two buffers into `data` and `rest`, waiting for the device once.
    pub(crate) fn read_both<T: Element, U: Element>(
        &self,
        (one, data): (&Buffer<T>, &mut [T]),
        (other, rest): (&Buffer<U>, &mut [U]),
    ) -> Result<()> {
        Self::check_range(one, 0, data.len())?;
        if data.is_empty() || rest.is_empty() {
            self.read(one, 0, data)?;
            return self.read(other, 0, rest);
        }
        let size = size_of_val(data);
        // SAFETY: any bytes are a valid value of every element type, and the slice covers exactly `data`.
        let bytes = unsafe { std::slice::from_raw_parts_mut(data.as_mut_ptr().cast::<u8>(), size) };
        // SAFETY: the range was checked against the buffer; `data` is borrowed until this function returns, and by then
        // the queue, which keeps order, has been waited for: by the blocking read, or by `finish` if that failed.
        unsafe { self.queue.enqueue_read_buffer(one.raw(), CL_NON_BLOCKING, 0, bytes, &[]) }
            .map_err(self.error("clEnqueueReadBuffer"))?;
        self.read(other, 0, rest).or_else(|error| self.finish().and(Err(error)))
    }

    /// Copies one buffer into another of the same length.
    pub(crate) fn copy<T: Element>(&self, source: &Buffer<T>, target: &mut Buffer<T>) -> Result<()> {
        same_length("copy between device buffers", source.len(), target.len())?;
        if source.len() == 0 {
            return Ok(());
        }
        let bytes = source.len() * size_of::<T>();
        // SAFETY: both buffers hold at least `bytes` bytes and are distinct (one is borrowed mutably).
        unsafe { self.queue.enqueue_copy_buffer(source.raw(), target.raw_mut(), 0, 0, bytes, &[]) }
            .map_err(self.error("clEnqueueCopyBuffer"))?;
        Ok(())
    }

    /// Copies runs of one buffer to as many of the same length of another.
    pub(crate) fn copy_runs<T: Element>(
        &self,
        (source, from): (&Buffer<T>, Runs),
        (target, to): (&mut Buffer<T>, Runs),
    ) -> Result<()> {
        from.check(source.len())?;
        to.check(target.len())?;
        same_length("length of runs to copy", from.len, to.len)?;
        same_length("number of runs to copy", from.count, to.count)?;
        if from.count * from.len == 0 {
            return Ok(());
        }
        let bytes = |elements: usize| elements * size_of::<T>();
        let (before, [pitch, other_pitch]) = (from.count - 1, [from, to].map(|runs| bytes(runs.every)));
        let [last, last_place] = [from, to].map(|runs| bytes(runs.first + before * runs.every));
        if before > 0 {
            let [origin, place] = [from, to].map(|runs| [bytes(runs.first), 0, 0]);
            let region = [bytes(from.len), before, 1];
            // SAFETY: all runs were checked to lie within their buffers, which are distinct (one is borrowed mutably); a pitch is at
            // least the length of a run, as the call wants it. The arrays live until the call has read them, when it returns.
            let event = unsafe {
                self.queue.enqueue_copy_buffer_rect(
                    source.raw(),
                    target.raw_mut(),
                    origin.as_ptr(),
                    place.as_ptr(),
                    region.as_ptr(),
                    pitch,
                    0,
                    other_pitch,
                    0,
                    &[],
                )
            };
            event.map(drop).map_err(self.error("clEnqueueCopyBufferRect"))?;
        }
        // The last run by itself: NVIDIA's driver refuses regions whose rows, each as long as the pitch, are longer than the buffer.
        // SAFETY: the run was checked to lie within either buffer; they are distinct.
        let event = unsafe {
            self.queue.enqueue_copy_buffer(source.raw(), target.raw_mut(), last, last_place, bytes(from.len), &[])
        };
        event.map(drop).map_err(self.error("clEnqueueCopyBuffer"))
    }
}
