//! Contexts, queues and buffers that belong to a program as well: taken over from it, and handed out to it.
//!
//! OpenCL counts who holds an object. What is taken over is retained before it is wrapped, so that it outlives the program's
//! own handle; what is handed out is retained for the program, which releases it when it is done.

use std::sync::Arc;

use opencl3::command_queue::{CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, CommandQueue};
use opencl3::context::Context as RawContext;
use opencl3::device::{CL_DEVICE_PARTITION_BY_COUNTS, Device as RawDevice};
use opencl3::error_codes::ClError;
use opencl3::memory::{Buffer as RawBuffer, CL_MEM_OBJECT_BUFFER, CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY, ClMem};
#[cfg(feature = "ocl-interop")]
use opencl3::types::{cl_command_queue, cl_mem};

use super::api_error;
use super::buffer::Buffer;
use super::context::Context;
use super::platform::identify;
use crate::error::{Error, Result};
use crate::number::Element;

/// Name in an error about an object of the program, before its device is known.
const PROGRAM: &str = "OpenCL";

fn refused(call: &str) -> impl FnOnce(ClError) -> Error {
    move |e| api_error(PROGRAM, call, e)
}

/// One more holder of a queue.
fn share_queue(queue: &CommandQueue) -> Result<CommandQueue> {
    // SAFETY: the handle is alive: its wrapper holds it.
    unsafe { cl3::command_queue::retain_command_queue(queue.get()) }
        .map_err(|code| refused("clRetainCommandQueue")(ClError(code)))?;
    Ok(CommandQueue::new(queue.get(), queue.max_work_item_dimensions()))
}

/// One more holder of a buffer, whose elements are seen as `U`.
fn share_buffer<T, U>(buffer: &RawBuffer<T>) -> Result<RawBuffer<U>> {
    // SAFETY: the handle is alive: its wrapper holds it.
    unsafe { cl3::memory::retain_mem_object(buffer.get()) }
        .map_err(|code| refused("clRetainMemObject")(ClError(code)))?;
    Ok(RawBuffer::new(buffer.get()))
}

impl Context {
    /// The device of a program's queue, used through that queue, in its context.
    pub(crate) fn on_queue(queue: &CommandQueue) -> Result<Arc<Self>> {
        let properties = queue.properties().map_err(refused("clGetCommandQueueInfo"))?;
        if properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE != 0 {
            return Err(Error::Conflict {
                name: "queue",
                reason: "it runs commands in any order, and ours rely on theirs: pass a queue that keeps order"
                    .into(),
            });
        }
        let id = queue.device().map_err(refused("clGetCommandQueueInfo"))?;
        let info = identify(id).map_err(|code| refused("clGetDeviceInfo")(ClError(code)))?;
        let context = queue.context().map_err(refused("clGetCommandQueueInfo"))?;
        let queue = share_queue(queue)?;
        // SAFETY: the queue, which is held from here on, keeps its context alive.
        unsafe { cl3::context::retain_context(context) }
            .map_err(|code| refused("clRetainContext")(ClError(code)))?;
        Ok(Self::assemble(info, RawDevice::new(id), RawContext::new(context, &[id]), (queue, false), None))
    }

    /// The queue everything is queued on.
    pub(crate) fn shared_queue(&self) -> Result<CommandQueue> {
        share_queue(self.queue())
    }

    /// The context everything lives in.
    pub(crate) fn shared_context(&self) -> Result<RawContext> {
        let context = self.raw().get();
        // SAFETY: the handle is alive: `self` holds it.
        unsafe { cl3::context::retain_context(context) }
            .map_err(|code| api_error(&self.info().name, "clRetainContext", ClError(code)))?;
        Ok(RawContext::new(context, &[self.device().id()]))
    }

    /// Parts of this device with so many compute units each, as devices of their own.
    pub(crate) fn split(&self, units: &[usize]) -> Result<Vec<Arc<Self>>> {
        let info = self.info();
        let unsupported = |needs: String| Err(Error::Unsupported { device: info.name.clone(), needs });
        let ways = self.device().partition_properties().unwrap_or_default();
        if info.most_parts < 2 || !ways.contains(&CL_DEVICE_PARTITION_BY_COUNTS) {
            return unsupported("parts of a device, which its driver does not make".into());
        }
        let wanted: usize = units.iter().sum();
        if units.is_empty() || units.contains(&0) || wanted > info.compute_units {
            return unsupported(format!("parts of {units:?} compute units, and it has {}", info.compute_units));
        }
        let mut properties = vec![CL_DEVICE_PARTITION_BY_COUNTS];
        properties.extend(units.iter().map(|units| *units as isize));
        properties.extend([0, 0]); // ends the counts, then the properties
        let parts = self
            .device()
            .create_sub_devices(&properties)
            .map_err(|e| api_error(&info.name, "clCreateSubDevices", e))?;
        parts.into_iter().map(Self::open_part).collect()
    }
}

impl<T: Element> Buffer<T> {
    /// A program's buffer in the same context, without a copy.
    pub(crate) fn adopt<U>(context: &Arc<Context>, buffer: &RawBuffer<U>) -> Result<Self> {
        let info = context.info();
        let asked = |e| api_error(&info.name, "clGetMemObjectInfo", e);
        if buffer.context().map_err(asked)? != context.raw().get() {
            return Err(Error::DeviceMismatch { what: "a buffer of another context", expected: info.name.clone() });
        }
        let refuse = |reason: String| Err(Error::Option { name: "buffer", reason });
        if buffer.mem_type().map_err(asked)? != CL_MEM_OBJECT_BUFFER {
            return refuse("it is an image".into());
        }
        if buffer.flags().map_err(asked)? & (CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY) != 0 {
            return refuse("kernels may only read or only write it: make it with CL_MEM_READ_WRITE".into());
        }
        let bytes = buffer.size().map_err(asked)?;
        if bytes % size_of::<T>() != 0 {
            return refuse(format!("its {bytes} bytes are no whole number of elements of {}", size_of::<T>()));
        }
        // The parent of a part may be, or become, another vector.
        if !buffer.associated_memobject().map_err(asked)?.is_null() {
            return refuse("it is a part of another buffer: take that over whole".into());
        }
        match Self::wrap(context, share_buffer(buffer)?, bytes / size_of::<T>()) {
            Some(adopted) => Ok(adopted),
            None => refuse(
                "a vector lives in it already, and two vectors must not share memory: use that one, or drop it first"
                    .into(),
            ),
        }
    }

    /// The buffer for a program's own use.
    pub(crate) fn shared(&self) -> Result<RawBuffer<T>> {
        share_buffer(self.raw())
    }
}

#[cfg(feature = "ocl-interop")]
mod of_ocl {
    use super::*;

    impl Context {
        /// [`Context::on_queue`] of `ocl`'s.
        pub(crate) fn on_ocl_queue(queue: &ocl::Queue) -> Result<Arc<Self>> {
            let handle: cl_command_queue = queue.as_core().as_ptr().cast();
            // SAFETY: `queue` holds the handle alive; retained, so that the wrapper may release it when it is dropped.
            unsafe { cl3::command_queue::retain_command_queue(handle) }
                .map_err(|code| refused("clRetainCommandQueue")(ClError(code)))?;
            // Three dimensions: what every device has.
            Self::on_queue(&CommandQueue::new(handle, 3))
        }

        /// [`Context::shared_queue`] for `ocl`.
        pub(crate) fn shared_ocl_queue(&self) -> ocl::core::CommandQueue {
            // SAFETY: the handle is alive: `self` holds it; `ocl` retains it.
            unsafe { ocl::core::CommandQueue::from_raw_copied_ptr(self.queue().get().cast()) }
        }
    }

    impl<T: Element> Buffer<T> {
        /// [`Buffer::adopt`] of `ocl`'s.
        pub(crate) fn adopt_ocl<U: ocl::OclPrm>(context: &Arc<Context>, buffer: &ocl::Buffer<U>) -> Result<Self> {
            let handle: cl_mem = buffer.as_core().as_ptr().cast();
            // SAFETY: `buffer` holds the handle alive; retained, so that the wrapper may release it when it is dropped.
            unsafe { cl3::memory::retain_mem_object(handle) }
                .map_err(|code| refused("clRetainMemObject")(ClError(code)))?;
            Self::adopt(context, &RawBuffer::<U>::new(handle))
        }

        /// [`Buffer::shared`] for `ocl`.
        pub(crate) fn shared_ocl(&self) -> ocl::core::Mem {
            // SAFETY: the handle is alive: `self` holds it; `ocl` retains it.
            unsafe { ocl::core::Mem::from_raw_copied_ptr(self.raw().get().cast()) }
        }
    }
}
