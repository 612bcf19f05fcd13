//! Work inside a program that has OpenCL objects of its own. Its queue becomes a [`Device`](crate::Device). Its
//! buffers become vectors without a copy. Buffers of this library are handed to its kernels.
//!
//! Commands of the program and of this library run on one queue, in the order in which they were queued. A kernel
//! of the program can fill `b`, then a solve runs, then a kernel reads `x`; nothing waits in between. OpenCL counts
//! references, so either side may drop its handle first. Both sides share the memory, so these rules hold:
//!
//! - The queue keeps order; one that does not is refused. Commands of the program on *other* queues have to be waited for, as
//!   between any two queues.
//! - Take a queue over once and clone the [`Device`](crate::Device): two takeovers are two devices, whose vectors do not mix.
//! - A buffer is taken over whole, by one vector at a time; it needs `CL_MEM_READ_WRITE`. Refused are a second
//!   takeover while the first vector lives, a buffer that this library handed out, and a part of a buffer.
//! - If no solve uses a buffer, the program may write to it. If a solve is queued, such writes change its result.
//!
//! Module [`opencl3`] takes wrappers of the crate `opencl3`; `CommandQueue::new` and `Buffer::new` make one of any
//! raw handle. Module `ocl` takes those of the crate `ocl`; it needs the feature `ocl-interop`, which links the
//! OpenCL loader, as that crate does.

/// Objects of the crate `opencl3`.
///
/// ```
/// use opencl3::{command_queue::CommandQueue, context::Context, device::Device, memory::{Buffer, CL_MEM_READ_WRITE}};
/// use residuum::{Format, Matrix, Method, Solver, Stopping, Vector, interop, sparse::gallery};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let Ok(ids) = opencl3::device::get_all_devices(opencl3::device::CL_DEVICE_TYPE_ALL) else { return Ok(()) };
/// # let Some(id) = ids.first() else { return Ok(()) };
/// # let id = *id;
/// let context = Context::from_device(&Device::new(id))?;
/// # #[allow(deprecated)]
/// let queue = unsafe { CommandQueue::create(&context, id, 0)? };
/// let load = unsafe { Buffer::<f32>::create(&context, CL_MEM_READ_WRITE, 32 * 32, std::ptr::null_mut())? };
/// // ... kernels of the program fill `load` ...
///
/// let device = interop::opencl3::device(&queue)?;
/// let a = Matrix::new(&device, &gallery::poisson_2d::<f32>(32, 0.0)?, Format::Auto)?;
/// let mut b = interop::opencl3::vector(&device, &load)?; // the same memory
/// # b.fill(1.0)?;
/// let mut x = Vector::zeros(&device, a.cols())?;
/// Solver::new(&a, Method::Cg, Stopping::for_precision::<f32>())?.solve(&b, &mut x)?;
/// let answer: Buffer<f32> = interop::opencl3::buffer(&x)?; // for its next kernel
/// # Ok(())
/// # }
/// ```
pub mod opencl3 {
    use opencl3::command_queue::CommandQueue;
    use opencl3::context::Context;
    use opencl3::memory::Buffer;

    use crate::device::Device;
    use crate::error::Result;
    use crate::memory::Memory;
    use crate::number::Real;
    use crate::ocl;
    use crate::vector::Vector;

    /// The device of `queue`, used through that queue, in its context.
    ///
    /// # Errors
    /// [`Error::Conflict`](crate::Error::Conflict) for a queue that runs commands out of order;
    /// [`Error::Api`](crate::Error::Api).
    pub fn device(queue: &CommandQueue) -> Result<Device> {
        Ok(Device::on_context(ocl::Context::on_queue(queue)?, super::CHOICE.into()))
    }

    /// A vector in the memory of `buffer`, of as many elements as it has.
    ///
    /// # Errors
    /// [`Error::DeviceMismatch`](crate::Error::DeviceMismatch) for a buffer of another context;
    /// [`Error::Option`](crate::Error::Option) for one that kernels may not both read and write, that a vector lives in already, or
    /// that is a part of another; [`Error::Unsupported`](crate::Error::Unsupported) for `f64` on a device without it, and on the host back end.
    pub fn vector<T: Real>(device: &Device, buffer: &Buffer<T>) -> Result<Vector<T>> {
        Vector::on_memory(device, Memory::OpenCl(ocl::Buffer::adopt(device.context()?, buffer)?))
    }

    /// The memory of `vector`, which lives as long as either of the two.
    ///
    /// # Errors
    /// [`Error::Unsupported`](crate::Error::Unsupported) for a vector of the host back end.
    pub fn buffer<T: Real>(vector: &Vector<T>) -> Result<Buffer<T>> {
        vector.memory().buffer(vector.device().context()?)?.shared()
    }

    /// The queue on which `device` does its work, to queue other work between.
    ///
    /// # Errors
    /// [`Error::Unsupported`](crate::Error::Unsupported) for the host back end.
    pub fn queue(device: &Device) -> Result<CommandQueue> {
        device.context()?.shared_queue()
    }

    /// The context that the buffers of `device` live in.
    ///
    /// # Errors
    /// As [`queue`].
    pub fn context(device: &Device) -> Result<Context> {
        device.context()?.shared_context()
    }
}

/// Objects of the crate `ocl`; `examples/interop` shows them at work.
#[cfg(feature = "ocl-interop")]
pub mod ocl {
    use ocl::core::{CommandQueue, Mem};
    use ocl::{Buffer, OclPrm, Queue};

    use crate::device::Device;
    use crate::error::Result;
    use crate::memory::Memory;
    use crate::number::Real;
    use crate::ocl as opencl;
    use crate::vector::Vector;

    /// The device of `queue`, used through that queue, in its context.
    ///
    /// # Errors
    /// As [`opencl3::device`](super::opencl3::device).
    pub fn device(queue: &Queue) -> Result<Device> {
        Ok(Device::on_context(opencl::Context::on_ocl_queue(queue)?, super::CHOICE.into()))
    }

    /// A vector in the memory of `buffer`, of as many elements as it has.
    ///
    /// # Errors
    /// As [`opencl3::vector`](super::opencl3::vector).
    pub fn vector<T: Real + OclPrm>(device: &Device, buffer: &Buffer<T>) -> Result<Vector<T>> {
        Vector::on_memory(device, Memory::OpenCl(opencl::Buffer::adopt_ocl(device.context()?, buffer)?))
    }

    /// The memory of `vector`, which lives as long as either of the two: for `ocl::core`, and for
    /// `ocl::Kernel::set_arg_unchecked` as `ArgVal::mem`. (`ocl::Buffer` cannot be made of memory that is there; if one
    /// is wanted, make it first and take it over with [`vector`].)
    ///
    /// # Errors
    /// [`Error::Unsupported`](crate::Error::Unsupported) for a vector of the host back end.
    pub fn memory<T: Real>(vector: &Vector<T>) -> Result<Mem> {
        Ok(vector.memory().buffer(vector.device().context()?)?.shared_ocl())
    }

    /// The queue on which `device` does its work, to queue other work between.
    ///
    /// # Errors
    /// [`Error::Unsupported`](crate::Error::Unsupported) for the host back end.
    pub fn queue(device: &Device) -> Result<CommandQueue> {
        Ok(device.context()?.shared_ocl_queue())
    }
}

/// Reason for the choice of such a device.
const CHOICE: &str = "that of a queue which the program passed";
