//! Device memory with an element type and a length.

use std::marker::PhantomData;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use opencl3::error_codes::CL_INVALID_MEM_OBJECT;
use opencl3::memory::{Buffer as RawBuffer, CL_MEM_READ_WRITE, ClMem};

use super::api_error;
use super::context::Context;
use super::launch::Arg;
use crate::allocations::count_allocation;
use crate::error::{Error, Result};
use crate::number::Element;

/// Numbers given to buffers so far, those included that others allocated.
static NUMBERS: AtomicU64 = AtomicU64::new(0);

/// Elements of a block that goes to the device to be copied there.
const FILL_BLOCK: usize = 1 << 16;

/// `len` elements in the memory of one device, which no other buffer of its context shares: kernels take their arguments for
/// distinct.
#[derive(Debug)]
pub(crate) struct Buffer<T> {
    raw: RawBuffer<u8>,
    /// Tells it from every other buffer, also from one that is given its handle later.
    number: u64,
    len: usize,
    context: Arc<Context>,
    element: PhantomData<T>,
}

impl<T: Element> Buffer<T> {
    /// Allocates; the contents are undefined.
    pub(crate) fn new(context: &Arc<Context>, len: usize) -> Result<Self> {
        // OpenCL has no empty buffers; one element nobody reads stands for none.
        let bytes = len.max(1) * size_of::<T>();
        let info = context.info();
        if info.largest_allocation != 0 && bytes as u64 > info.largest_allocation {
            return Err(Error::Memory {
                device: info.name.clone(),
                what: format!("a buffer of {len} elements"),
                needed: bytes as u64,
                available: info.largest_allocation,
                help: "this is the device's largest single allocation: use a smaller problem or another device",
            });
        }
        // SAFETY: no host pointer is passed, so the driver owns all the memory involved.
        let raw = unsafe { RawBuffer::create(context.raw(), CL_MEM_READ_WRITE, bytes, ptr::null_mut()) }
            .map_err(|e| api_error(&info.name, "clCreateBuffer", e))?;
        count_allocation();
        Self::wrap(context, raw, len).ok_or_else(|| Error::Api {
            device: info.name.clone(),
            call: "clCreateBuffer, which gave a handle that is in use,".into(),
            name: "CL_INVALID_MEM_OBJECT",
            code: CL_INVALID_MEM_OBJECT,
        })
    }

    /// A buffer of `len` elements that is there; `None` if it lives here already.
    pub(super) fn wrap(context: &Arc<Context>, raw: RawBuffer<u8>, len: usize) -> Option<Self> {
        if !context.admit(raw.get()) {
            return None;
        }
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        Some(Self { raw, number, len, context: context.clone(), element: PhantomData })
    }

    /// Allocates and copies `data` to the device.
    pub(crate) fn from_slice(context: &Arc<Context>, data: &[T]) -> Result<Self> {
        let mut buffer = Self::new(context, data.len())?;
        context.write(&mut buffer, 0, data)?;
        Ok(buffer)
    }

    /// Allocates, with `value` everywhere: a block goes to the device and is copied there, each time as much as there is already.
    /// Neither `clEnqueueFillBuffer`, which NVIDIA's driver does not finish from 2 GiB on and Apple's fills with zeros, nor a kernel,
    /// which would have to be built first.
    pub(crate) fn filled(context: &Arc<Context>, len: usize, value: T) -> Result<Self> {
        let mut buffer = Self::new(context, len)?;
        let mut done = len.min(FILL_BLOCK);
        context.write(&mut buffer, 0, &vec![value; done])?;
        while done < len {
            let more = done.min(len - done);
            context.repeat(&mut buffer, done, more)?;
            done += more;
        }
        Ok(buffer)
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    pub(super) fn raw(&self) -> &RawBuffer<u8> {
        &self.raw
    }

    pub(super) fn raw_mut(&mut self) -> &mut RawBuffer<u8> {
        &mut self.raw
    }

    /// The buffer as a kernel argument.
    pub(crate) fn argument(&self) -> Arg {
        Arg::Memory { handle: self.raw.get(), number: self.number }
    }
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        // Before the handle is released, after which the driver may give it to another.
        self.context.dismiss(self.raw.get());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ocl::found;

    /// A buffer full of one value takes a block of it to the device, not all.
    #[test]
    fn what_is_filled_is_not_uploaded() {
        for device in found().0.iter().filter(|device| device.info.last_resort.is_none()) {
            let context = Context::open(device).expect("an enumerated device opens");
            for len in [0, 1, FILL_BLOCK - 1, FILL_BLOCK, FILL_BLOCK + 1, 5 * FILL_BLOCK + 7] {
                let before = context.uploaded();
                let buffer = Buffer::filled(&context, len, 7u32).expect("room for it");
                let bytes = context.uploaded() - before;
                assert!(bytes <= 4 * FILL_BLOCK as u64, "{len}: {bytes} bytes");
                let mut found = vec![0u32; len];
                context.read(&buffer, 0, &mut found).expect("read");
                assert!(found.iter().all(|v| *v == 7), "{len}");
            }
        }
    }
}
