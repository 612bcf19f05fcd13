//! An opened device: context, in-order queue and built programs.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::platform::{Found, identify};
use super::program::{Defines, File};
use super::{api_error, cache, quirks};
use crate::device_info::DeviceInfo;
use crate::error::{Error, Result};
use opencl3::command_queue::CommandQueue;
use opencl3::context::Context as RawContext;
use opencl3::device::{Device as RawDevice, SubDevice};
use opencl3::error_codes::ClError;
use opencl3::program::Program;
use opencl3::types::cl_mem;

/// A device with a context and an in-order queue.
pub(crate) struct Context {
    info: DeviceInfo,
    device: RawDevice,
    context: RawContext,
    pub(super) queue: CommandQueue,
    owns_queue: bool,
    programs: Mutex<HashMap<(&'static str, Defines), Arc<Program>>>,
    counts: Mutex<Programs>,
    /// Names of the kernels that were made of the programs.
    kernels: Mutex<BTreeSet<&'static str>>,
    /// Bytes that went to the device.
    pub(super) uploaded: AtomicU64,
    /// Handles of the buffers that live here: no two of them may be the same.
    handles: Mutex<HashSet<usize>>,
    /// Released last: what was made on a part of a device refers to it.
    _part: Option<SubDevice>,
}

/// Programs that were needed so far on a device.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Programs {
    /// Compiled from source.
    pub built: usize,
    /// Found on disk, see [`cache_folder`](crate::cache_folder).
    pub loaded: usize,
    /// Seconds that both took.
    pub seconds: f64,
}

impl Drop for Context {
    /// Waits for what is queued, unless the queue is one of the program's own. A process that ends while threads of a driver are at work may crash: PoCL's compile a kernel when its
    /// first launch is due.
    fn drop(&mut self) {
        if self.owns_queue {
            // A device that fails now has nobody to tell.
            let _ = self.queue.finish();
        }
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("device", &self.info.name).finish_non_exhaustive()
    }
}

/// A lock that is still usable after a panic elsewhere: what it guards is valid between any two statements.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Context {
    /// Opens a device.
    pub(crate) fn open(found: &Found) -> Result<Arc<Self>> {
        Self::open_as(found.info.clone(), RawDevice::new(found.handle()), None)
    }

    /// Opens a part of a device.
    pub(super) fn open_part(part: SubDevice) -> Result<Arc<Self>> {
        let device = RawDevice::new(part.id());
        let info = identify(part.id()).map_err(|code| api_error("OpenCL", "clGetDeviceInfo", ClError(code)))?;
        Self::open_as(info, device, Some(part))
    }

    fn open_as(info: DeviceInfo, device: RawDevice, part: Option<SubDevice>) -> Result<Arc<Self>> {
        let context = RawContext::from_device(&device).map_err(|e| api_error(&info.name, "clCreateContext", e))?;
        // SAFETY: the device is the one the context was made for; no properties: an in-order queue.
        #[allow(deprecated)] // the successor does not exist on OpenCL 1.2 drivers
        let queue = unsafe { CommandQueue::create(&context, device.id(), 0) }
            .map_err(|e| api_error(&info.name, "clCreateCommandQueue", e))?;
        Ok(Self::assemble(info, device, context, (queue, true), part))
    }

    pub(super) fn assemble(
        info: DeviceInfo,
        device: RawDevice,
        context: RawContext,
        (queue, owns_queue): (CommandQueue, bool),
        part: Option<SubDevice>,
    ) -> Arc<Self> {
        Arc::new(Self {
            info,
            device,
            context,
            queue,
            owns_queue,
            programs: Mutex::default(),
            counts: Mutex::default(),
            kernels: Mutex::default(),
            uploaded: AtomicU64::new(0),
            handles: Mutex::default(),
            _part: part,
        })
    }

    pub(crate) fn info(&self) -> &DeviceInfo {
        &self.info
    }

    pub(super) fn raw(&self) -> &RawContext {
        &self.context
    }

    pub(super) fn queue(&self) -> &CommandQueue {
        &self.queue
    }

    pub(super) fn device(&self) -> &RawDevice {
        &self.device
    }

    /// Work-items of a group in a kernel that synchronises them, if `wanted` are asked for.
    pub(crate) fn synchronised(&self, wanted: usize) -> usize {
        if self.info.single_items.is_some() { 1 } else { wanted }
    }

    /// Programs built and loaded so far.
    pub(crate) fn programs(&self) -> Programs {
        *lock(&self.counts)
    }

    /// Names of the kernels made so far.
    pub(crate) fn kernels(&self) -> BTreeSet<&'static str> {
        lock(&self.kernels).clone()
    }

    pub(super) fn note_kernel(&self, name: &'static str) {
        lock(&self.kernels).insert(name);
    }

    pub(super) fn error(&self, call: impl Into<String>) -> impl FnOnce(opencl3::error_codes::ClError) -> Error {
        let call = call.into();
        move |e| api_error(&self.info.name, call, e)
    }

    /// Takes a handle into the list of those that live here; false if it is there already.
    pub(super) fn admit(&self, handle: cl_mem) -> bool {
        lock(&self.handles).insert(handle as usize)
    }

    /// Takes it out again.
    pub(super) fn dismiss(&self, handle: cl_mem) {
        lock(&self.handles).remove(&(handle as usize));
    }

    /// Waits for all work queued so far.
    pub(crate) fn finish(&self) -> Result<()> {
        self.queue.finish().map_err(self.error("clFinish"))
    }

    /// Builds the program of `file`, or finds it: among those built before, then on disk.
    pub(super) fn program(&self, file: &'static File, defines: &Defines) -> Result<Arc<Program>> {
        let mut programs = lock(&self.programs);
        let key = (file.name, defines.clone());
        if let Some(program) = programs.get(&key) {
            return Ok(program.clone());
        }
        let start = Instant::now();
        let text = defines.head().to_string() + &file.source()?;
        let file = file.name;
        let info = &self.info;
        let options = defines.text().to_string() + quirks::build_options(&info.platform, info.kind);
        let identity = [&info.name, &info.vendor, &info.platform, &info.platform_version, &info.driver];
        // Some compile for the processor they find: names of processors tell them apart, numbers of cores do not matter.
        let made_from = [identity.map(String::as_str).join("\0"), options.clone(), text.clone()];
        let made_from = made_from.each_ref().map(String::as_str);
        let kept = if info.keeps_programs { cache::load(&made_from) } else { None };
        let loaded = kept.and_then(|binary| self.load(file, &binary, &options));
        let found = loaded.is_some();
        let program = match loaded {
            Some(program) => program,
            None => self.build(file, &text, &options)?,
        };
        if info.keeps_programs && !found {
            match program.get_binaries().as_deref() {
                Ok([binary]) if !binary.is_empty() => cache::store(&made_from, binary),
                _ => log::debug!("{} does not give its programs away", info.name),
            }
        }
        let seconds = start.elapsed().as_secs_f64();
        let mut counts = lock(&self.counts);
        counts.seconds += seconds;
        *if found { &mut counts.loaded } else { &mut counts.built } += 1;
        let verb = if found { "loaded" } else { "built" };
        log::debug!("{verb} cl/{file}.cl for {} in {:.0} ms: {options}", info.name, seconds * 1e3);
        let program = Arc::new(program);
        programs.insert(key, program.clone());
        Ok(program)
    }

    /// The program of a binary, if the driver still takes it.
    fn load(&self, file: &str, binary: &[u8], options: &str) -> Option<Program> {
        // SAFETY: the device is the one the context was made for, and the binary came from this driver for this device:
        // both were compared, and its checksum.
        let made = unsafe { Program::create_from_binary(&self.context, &[self.device.id()], &[binary]) };
        let built = made.and_then(|mut program| program.build(&[self.device.id()], options).map(|()| program));
        built.map_err(|error| log::warn!("{} no longer takes cl/{file}.cl as kept: {error}", self.info.name)).ok()
    }

    fn build(&self, file: &str, text: &str, options: &str) -> Result<Program> {
        let mut program =
            Program::create_from_source(&self.context, text).map_err(self.error("clCreateProgramWithSource"))?;
        let outcome = program.build(&[self.device.id()], options);
        let log = program.get_build_log(self.device.id()).unwrap_or_default();
        let log = log.trim_end_matches(['\0', '\n', ' ']);
        if let Err(error) = outcome {
            return Err(Error::Build {
                device: self.info.name.clone(),
                file: format!("cl/{file}.cl"),
                options: options.into(),
                log: if log.is_empty() {
                    format!("no log; {}", opencl3::error_codes::error_text(error.0))
                } else {
                    log.into()
                },
            });
        }
        if !log.is_empty() {
            log::warn!("cl/{file}.cl on {}: {log}", self.info.name);
        }
        Ok(program)
    }
}
