//! Checked launches: kernels are prepared once, then launched with arguments whose types are those of their declaration.

use std::ptr;
use std::sync::{Arc, Mutex};

use opencl3::error_codes::{CL_SUCCESS, ClError, DLOPEN_FUNCTION_NOT_AVAILABLE, DLOPEN_RUNTIME_LOAD_FAILED};
use opencl3::kernel::Kernel;
use opencl3::types::cl_mem;

use super::api_error;
use super::context::{Context, lock};
use super::program::{Defines, File};
use crate::error::{Error, Result, same_length};

/// Name, file and arguments of a kernel, each `(argument, OpenCL C type)`.
#[derive(Debug)]
pub(crate) struct Signature {
    pub(crate) name: &'static str,
    pub(crate) file: &'static File,
    pub(crate) args: &'static [(&'static str, &'static str)],
    /// Buffers whose least length is declared.
    #[cfg_attr(not(test), allow(dead_code))]
    pub(crate) checked: &'static [&'static str],
}

/// Words of the largest struct that a kernel takes by value.
pub(crate) const MOST_WORDS: usize = 13;

/// One argument of a kernel, as `clSetKernelArg` wants it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arg {
    Uint(u32),
    Float(f32),
    Double(f64),
    /// A struct of `count` words.
    Words {
        words: [u32; MOST_WORDS],
        count: usize,
    },
    Memory {
        handle: cl_mem,
        number: u64,
    },
}

impl Arg {
    /// Tells if a kernel that was given `other` need not be given this.
    fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Uint(a), Self::Uint(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a.to_bits() == b.to_bits(),
            (Self::Double(a), Self::Double(b)) => a.to_bits() == b.to_bits(),
            (Self::Words { words: a, .. }, Self::Words { words: b, .. }) => a == b,
            // Handles are given again after a buffer is released; numbers are not.
            (Self::Memory { number: a, .. }, Self::Memory { number: b, .. }) => a == b,
            _ => false,
        }
    }
}

/// A kernel object with the arguments it was given last: to set one costs a call into the driver.
struct Held {
    kernel: Kernel,
    args: Vec<Arg>,
}

// SAFETY: the handles in `args` are compared, never used, and OpenCL objects may be used from any thread.
unsafe impl Send for Held {}

/// A built kernel with its work-group size. Each has a kernel object of its own, so that arguments that stay the same from
/// launch to launch are set once. One lock covers arguments and launch.
#[derive(Clone)]
pub(crate) struct Prepared {
    context: Arc<Context>,
    signature: &'static Signature,
    held: Arc<Mutex<Held>>,
    work_group: usize,
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} in groups of {}", self.signature.name, self.work_group)
    }
}

impl Context {
    /// Builds or finds the program of `signature`, makes the kernel, and checks its argument count and the group size.
    ///
    /// # Errors
    /// [`Error::Option`] for a group that the device cannot run, [`Error::Build`], [`Error::Api`].
    pub(crate) fn prepare(
        self: &Arc<Self>,
        signature: &'static Signature,
        defines: &Defines,
        work_group: usize,
    ) -> Result<Prepared> {
        let info = self.info();
        if work_group > info.max_work_group {
            let reason = format!("{work_group} exceeds {} of {}", info.max_work_group, info.name);
            return Err(Error::Option { name: "work_group", reason });
        }
        let program = self.program(signature.file, defines)?;
        let kernel = Kernel::create(&program, signature.name)
            .map_err(|e| api_error(&info.name, format!("clCreateKernel {}", signature.name), e))?;
        let count = kernel.num_args().map_err(|e| api_error(&info.name, "clGetKernelInfo", e))? as usize;
        same_length("arguments of a kernel (was a file in RESIDUUM_CL_DIR changed?)", signature.args.len(), count)?;
        self.note_kernel(signature.name);
        let held = Arc::new(Mutex::new(Held { kernel, args: Vec::with_capacity(count) }));
        Ok(Prepared { context: self.clone(), signature, held, work_group })
    }
}

impl Prepared {
    /// Queues the kernel in `groups` work-groups; nothing if there are none. The typed function of the kernel calls this, after
    /// it has checked the lengths of all buffers.
    ///
    /// # Errors
    /// [`Error::Conflict`] if this was prepared for another kernel than `signature`; [`Error::Api`].
    pub(crate) fn launch(&self, signature: &'static Signature, groups: usize, args: &[Arg]) -> Result<()> {
        if !ptr::eq(signature, self.signature) {
            let reason = format!("{} was prepared, not {}", self.signature.name, signature.name);
            return Err(Error::Conflict { name: "kernel", reason });
        }
        if groups == 0 {
            return Ok(());
        }
        let error = |call: String, e| api_error(&self.context.info().name, call, e);
        let mut held = lock(&self.held);
        let Held { kernel, args: given } = &mut *held;
        for (index, arg) in args.iter().enumerate() {
            if given.get(index).is_some_and(|given| given.same(arg)) {
                continue;
            }
            if let Err(e) = set(kernel, index as u32, arg) {
                given.clear();
                return Err(error(format!("clSetKernelArg {index} of {}", signature.name), e));
            }
            // Arguments are set in order, so the place after the last is the only one that can be missing.
            match given.get_mut(index) {
                Some(given) => *given = *arg,
                None => given.push(*arg),
            }
        }
        let size = self.work_group;
        enqueue(&self.context, kernel, groups * size, size)
            .map_err(|e| error(format!("launch of {} with {groups} groups of {size}", signature.name), e))
    }
}

fn set(kernel: &Kernel, position: u32, arg: &Arg) -> std::result::Result<(), ClError> {
    // SAFETY: `arg` comes from the kernel's one declaration, whose types are compared with the OpenCL C signature by a test and
    // whose count was checked when the kernel was made. Values are copied during the call.
    unsafe {
        match arg {
            Arg::Uint(value) => kernel.set_arg(position, value),
            Arg::Float(value) => kernel.set_arg(position, value),
            Arg::Double(value) => kernel.set_arg(position, value),
            Arg::Words { words, count } => {
                let bytes = (*count).min(words.len()) * size_of::<u32>();
                cl3::kernel::set_kernel_arg(kernel.get(), position, bytes, words.as_ptr().cast()).map_err(ClError)
            }
            Arg::Memory { handle, .. } => kernel.set_arg(position, handle),
        }
    }
}

/// `clEnqueueNDRangeKernel` without an event: nobody would look at it, and drivers take time for each.
fn enqueue(context: &Context, kernel: &Kernel, global: usize, local: usize) -> std::result::Result<(), ClError> {
    let library = cl3::load_library().as_ref().map_err(|_| ClError(DLOPEN_RUNTIME_LOAD_FAILED))?;
    let (queue, kernel) = (context.queue().get(), kernel.get());
    // SAFETY (of what the driver does with them): the sizes live across the call; every buffer argument is kept alive by
    // the caller's borrow until the launch is queued, and by the driver from then on (clReleaseMemObject defers to queued
    // commands).
    let status = library.clEnqueueNDRangeKernel(
        queue,
        kernel,
        1,
        ptr::null(),
        &raw const global,
        &raw const local,
        0,
        ptr::null(),
        ptr::null_mut(),
    );
    match status {
        Some(CL_SUCCESS) => Ok(()),
        Some(code) => Err(ClError(code)),
        None => Err(ClError(DLOPEN_FUNCTION_NOT_AVAILABLE)),
    }
}

/// A prepared kernel, its number of groups, and the share of one group if a kernel takes that.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) kernel: Prepared,
    pub(crate) groups: usize,
    pub(crate) share: usize,
}

/// The plans (or prepared kernels) of one object, kept as long as it lives. `K` is all that tells its launches apart: there are a
/// handful, so that a short search finds them.
#[derive(Debug)]
pub(crate) struct Plans<K, P = Plan>(Mutex<Vec<(K, P)>>);

impl<K, P> Default for Plans<K, P> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: PartialEq, P: Clone> Plans<K, P> {
    /// The plan of `key`, made when it is asked for first.
    ///
    /// # Errors
    /// Errors of `make`.
    pub(crate) fn get(&self, key: K, make: impl FnOnce() -> Result<P>) -> Result<P> {
        let mut plans = lock(&self.0);
        if let Some(plan) = Self::known(&plans, &key) {
            return Ok(plan);
        }
        let plan = make()?;
        plans.push((key, plan.clone()));
        Ok(plan)
    }

    fn known(plans: &[(K, P)], key: &K) -> Option<P> {
        plans.iter().find(|(known, _)| known == key).map(|(_, plan)| plan.clone())
    }
}
