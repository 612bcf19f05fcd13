//! A program's own queue and buffers, used without a copy, and ours in its kernels; parts of a device.
#![allow(unsafe_code)]

use crate::common;
use opencl3::command_queue::{CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, CommandQueue};
use opencl3::context::Context;
use opencl3::kernel::{ExecuteKernel, Kernel};
use opencl3::memory::{Buffer, CL_MEM_READ_ONLY, CL_MEM_READ_WRITE, ClMem};
use opencl3::platform::get_platforms;
use opencl3::program::Program;
use opencl3::types::CL_BLOCKING;
use residuum::sparse::gallery;
use residuum::{Csr, Device, Error, Format, Matrix, Method, Solver, Stopping, Vector, interop, measure};

/// The program's own work: a right-hand side, and what it makes of a solution.
const SOURCE: &str = "
__kernel void load(__global float* b) { const uint i = get_global_id(0); b[i] = (float)(i % 7) - 2.5f; }
__kernel void twice(__global const float* x, __global float* y) { const uint i = get_global_id(0); y[i] = 2.0f * x[i]; }
";
const SIDE: usize = 24;

fn problem() -> (Csr<f32>, Vec<f32>) {
    let load = (0..SIDE * SIDE).map(|i| (i % 7) as f32 - 2.5).collect();
    (gallery::poisson_2d::<f32>(SIDE, 0.0).unwrap(), load)
}

fn solve(device: &Device, b: &Vector<f32>) -> Vector<f32> {
    let a = Matrix::new(device, &problem().0, Format::Csr).unwrap();
    let mut x = Vector::zeros(device, a.cols()).unwrap();
    let report = Solver::new(&a, Method::Cg, Stopping::for_precision::<f32>()).unwrap().solve(b, &mut x).unwrap();
    assert!(report.converged(), "{report}");
    x
}

/// The solution as the device finds it by itself.
fn expected(device: &Device) -> Vec<u64> {
    let b = Vector::from_slice(device, &problem().1).unwrap();
    common::bits(&solve(device, &b).to_vec().unwrap())
}

/// OpenCL devices under test with their handles.
fn opencl_devices() -> Vec<(Device, opencl3::device::Device)> {
    let opencl = |device: Device| {
        let (p, d) = device.info().index?;
        let ids = get_platforms().unwrap()[p].get_devices(opencl3::device::CL_DEVICE_TYPE_ALL).unwrap();
        Some((device, opencl3::device::Device::new(ids[d])))
    };
    common::devices().into_iter().filter_map(opencl).collect()
}

fn queue_on(context: &Context, device: &opencl3::device::Device, properties: u64) -> Result<CommandQueue, i32> {
    #[allow(deprecated)]
    unsafe { CommandQueue::create(context, device.id(), properties) }.map_err(|e| e.0)
}

/// Queues one of the program's kernels.
fn launch(context: &Context, queue: &CommandQueue, name: &str, buffers: &[&Buffer<f32>]) {
    let kernel =
        Kernel::create(&Program::create_and_build_from_source(context, SOURCE, "").unwrap(), name).unwrap();
    let mut call = ExecuteKernel::new(&kernel);
    for &buffer in buffers {
        unsafe { call.set_arg(buffer) };
    }
    unsafe { call.set_global_work_size(SIDE * SIDE).enqueue_nd_range(queue) }.unwrap();
}

fn buffer(context: &Context, flags: u64) -> Buffer<f32> {
    unsafe { Buffer::create(context, flags, SIDE * SIDE, std::ptr::null_mut()) }.unwrap()
}

#[test]
fn a_solve_on_the_programs_queue_and_buffers_has_the_same_bits() {
    for (own, id) in opencl_devices() {
        let context = Context::from_device(&id).unwrap();
        let queue = queue_on(&context, &id, 0).unwrap();
        let (load, doubled) = (buffer(&context, CL_MEM_READ_WRITE), buffer(&context, CL_MEM_READ_WRITE));

        let device = interop::opencl3::device(&queue).unwrap();
        assert_eq!(device.info().name, own.info().name);
        assert_eq!(device.info().index, own.info().index);
        let allocations = measure::allocations();
        let b = interop::opencl3::vector(&device, &load).unwrap();
        assert_eq!((b.len(), measure::allocations()), (SIDE * SIDE, allocations), "no copy");
        // Nothing waits between the program's kernels and the solve.
        launch(&context, &queue, "load", &[&load]);
        let x = solve(&device, &b);
        let answer = interop::opencl3::buffer(&x).unwrap();
        launch(&context, &queue, "twice", &[&answer, &doubled]);
        let mut twice = vec![0f32; b.len()];
        unsafe { queue.enqueue_read_buffer(&doubled, CL_BLOCKING, 0, &mut twice, &[]) }.unwrap();
        let halves: Vec<f32> = twice.iter().map(|y| y / 2.0).collect();
        assert_eq!(common::bits(&halves), expected(&own), "{}", own.info().name);

        // The answer outlives our handle of it.
        drop(x);
        unsafe { queue.enqueue_read_buffer(&answer, CL_BLOCKING, 0, &mut twice, &[]) }.unwrap();
        assert_eq!(common::bits(&twice), expected(&own));
    }
}

#[test]
fn every_handle_is_given_back() {
    for (own, id) in opencl_devices() {
        let context = Context::from_device(&id).unwrap();
        let queue = queue_on(&context, &id, 0).unwrap();
        let load = buffer(&context, CL_MEM_READ_WRITE);
        // Without commands in between: PoCL holds the queue of those it has done for a while.
        let holders = || {
            [queue.reference_count(), context.reference_count(), load.reference_count()].map(|count| count.unwrap())
        };
        let before = holders();
        let device = interop::opencl3::device(&queue).unwrap();
        let b = interop::opencl3::vector(&device, &load).unwrap();
        let handed = (
            interop::opencl3::queue(&device).unwrap(),
            interop::opencl3::context(&device).unwrap(),
            interop::opencl3::buffer(&b).unwrap(),
        );
        assert!(holders().iter().zip(before).all(|(now, before)| *now >= before + 2), "{:?}", holders());
        drop((device, handed, b));
        assert_eq!(holders(), before, "{}: holders of queue, context and buffer", own.info().name);
    }
}

#[test]
fn the_programs_handles_may_go_first() {
    for (own, id) in opencl_devices() {
        let context = Context::from_device(&id).unwrap();
        let queue = queue_on(&context, &id, 0).unwrap();
        let load = buffer(&context, CL_MEM_READ_WRITE);
        let device = interop::opencl3::device(&queue).unwrap();
        let mut b = interop::opencl3::vector(&device, &load).unwrap();
        drop((load, queue, context));
        b.write(&problem().1).unwrap();
        assert_eq!(common::bits(&solve(&device, &b).to_vec().unwrap()), expected(&own), "{}", own.info().name);
    }
}

#[test]
fn a_program_can_work_between_on_our_queue() {
    for (device, _) in opencl_devices() {
        let context = interop::opencl3::context(&device).unwrap();
        let queue = interop::opencl3::queue(&device).unwrap();
        let mut b = Vector::zeros(&device, SIDE * SIDE).unwrap();
        let memory = interop::opencl3::buffer(&b).unwrap();
        launch(&context, &queue, "load", &[&memory]);
        b.scale(1.0).unwrap();
        assert_eq!(b.to_vec().unwrap(), problem().1, "{}", device.info().name);
        assert_eq!(
            common::bits(&solve(&device, &b).to_vec().unwrap()),
            expected(&device),
            "{}",
            device.info().name
        );
    }
}

#[test]
fn what_cannot_be_shared_is_refused() {
    let refused = |result: Result<Vector<f32>, Error>, part: &str| {
        let words = result.unwrap_err().to_string();
        assert!(words.contains(part), "{words}");
    };
    for (own, id) in opencl_devices() {
        let (context, other) = (Context::from_device(&id).unwrap(), Context::from_device(&id).unwrap());
        match queue_on(&context, &id, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) {
            Ok(queue) => {
                let words = interop::opencl3::device(&queue).unwrap_err().to_string();
                assert!(words.contains("pass a queue that keeps order"), "{words}");
            }
            Err(code) => println!("skipped: {} makes no queues without order ({code})", own.info().name),
        }
        let device = interop::opencl3::device(&queue_on(&context, &id, 0).unwrap()).unwrap();
        refused(interop::opencl3::vector(&device, &buffer(&other, CL_MEM_READ_WRITE)), "another context");
        refused(interop::opencl3::vector(&device, &buffer(&context, CL_MEM_READ_ONLY)), "CL_MEM_READ_WRITE");
        let bytes = unsafe { Buffer::<u8>::create(&context, CL_MEM_READ_WRITE, 6, std::ptr::null_mut()) }.unwrap();
        let odd = Buffer::<f32>::new(bytes.get());
        refused(interop::opencl3::vector(&device, &odd), "6 bytes are no whole number of elements");
        std::mem::forget(odd); // `bytes` releases it

        // Two vectors never share memory: what lives in one is refused until that is gone, by whatever way it came out.
        let load = buffer(&context, CL_MEM_READ_WRITE);
        let first: Vector<f32> = interop::opencl3::vector(&device, &load).unwrap();
        refused(interop::opencl3::vector(&device, &load), "a vector lives in it already");
        let handed = interop::opencl3::buffer(&first).unwrap();
        refused(interop::opencl3::vector(&device, &handed), "a vector lives in it already");
        drop(first);
        let again: Vector<f32> = interop::opencl3::vector(&device, &load).unwrap();
        drop(again);
        let ours = Vector::<f32>::zeros(&device, 64).unwrap();
        let handed = interop::opencl3::buffer(&ours).unwrap();
        refused(interop::opencl3::vector(&device, &handed), "a vector lives in it already");
        drop(ours);
        let adopted: Vector<f32> = interop::opencl3::vector(&device, &handed).unwrap();
        assert_eq!(adopted.len(), 64);
        let part = unsafe { load.create_sub_buffer(CL_MEM_READ_WRITE, 0, 64) };
        match part {
            Ok(part) => refused(interop::opencl3::vector(&device, &part), "a part of another buffer"),
            Err(code) => println!("skipped: {} makes no parts of buffers ({code})", own.info().name),
        }
        refused(interop::opencl3::vector(&Device::host(), &buffer(&context, CL_MEM_READ_WRITE)), "host back end");
    }
    let on_host = Vector::<f32>::zeros(&Device::host(), 3).unwrap();
    assert!(matches!(interop::opencl3::buffer(&on_host), Err(Error::Unsupported { .. })));
    assert!(matches!(interop::opencl3::queue(&Device::host()), Err(Error::Unsupported { .. })));
}

#[test]
fn parts_of_a_device_have_the_same_bits() {
    for (device, _) in opencl_devices() {
        let info = device.info();
        let index = info.index.map(|(p, d)| format!("{p}:{d}")).unwrap();
        if info.most_parts < 2 {
            println!("skipped: {} cannot be split", info.name);
            assert!(matches!(device.split(&[1]), Err(Error::Unsupported { .. })));
            assert!(matches!(Device::select(&format!("{index} units=1")), Err(Error::NoDevice { .. })));
            continue;
        }
        let parts = device.split(&[1, info.compute_units - 1]).unwrap();
        let units: Vec<usize> = parts.iter().map(|part| part.info().compute_units).collect();
        assert_eq!(units, [1, info.compute_units - 1]);
        let b = Vector::from_slice(&parts[0], &problem().1).unwrap();
        assert!(matches!(
            Vector::zeros(&parts[1], b.len()).unwrap().copy_from(&b),
            Err(Error::DeviceMismatch { .. })
        ));
        // At the same time, each in a thread; the whole is gone by then.
        let wanted = expected(&device);
        let (name, all) = (info.name.clone(), info.compute_units);
        drop(device);
        std::thread::scope(|scope| {
            for part in &parts {
                scope.spawn(|| assert_eq!(expected(part), wanted, "{}", part.choice()));
            }
        });
        let words = parts[0].split(&[1, 1]).unwrap_err().to_string();
        assert!(words.contains("cannot do this"), "{words}");

        let few = Device::select(&format!("{index} units=1")).unwrap();
        assert_eq!((few.info().compute_units, few.info().part), (1, true));
        assert!(few.choice().contains(&format!("1 of {all} compute units")), "{}", few.choice());
        assert_eq!(expected(&few), wanted, "{name}");
        let whole = Device::select(&format!("{index} units={all}")).unwrap();
        assert!(!whole.info().part);
        assert!(matches!(Device::select(&format!("{index} units={}", all + 1)), Err(Error::NoDevice { .. })));
    }
    assert!(matches!(Device::host().split(&[1]), Err(Error::Unsupported { .. })));
}

#[cfg(feature = "ocl-interop")]
#[test]
fn the_same_with_the_crate_ocl() {
    for (own, id) in opencl_devices() {
        let raw = unsafe { ocl::core::DeviceId::from_raw(id.id().cast()) };
        let device = ocl::Device::from(raw);
        let platform = match device.info(ocl::enums::DeviceInfo::Platform).unwrap() {
            ocl::enums::DeviceInfoResult::Platform(platform) => ocl::Platform::new(platform),
            other => panic!("{other}"),
        };
        let context = ocl::Context::builder().platform(platform).devices(device).build().unwrap();
        let queue = ocl::Queue::new(&context, device, None).unwrap();
        let program = ocl::Program::builder().src(SOURCE).devices(device).build(&context).unwrap();
        let len = SIDE * SIDE;
        let new = || ocl::Buffer::<f32>::builder().queue(queue.clone()).len(len).build().unwrap();
        let (load, doubled) = (new(), new());

        let ours = interop::ocl::device(&queue).unwrap();
        assert_eq!(ours.info().name, own.info().name);
        let b = interop::ocl::vector(&ours, &load).unwrap();
        let call = |name: &str| {
            let mut builder = ocl::Kernel::builder();
            builder.program(&program).name(name).queue(queue.clone()).global_work_size(len);
            builder
        };
        unsafe { call("load").arg(&load).build().unwrap().enq() }.unwrap();
        let x = solve(&ours, &b);
        let answer = interop::ocl::memory(&x).unwrap();
        let twice = call("twice").arg(&load).arg(&doubled).build().unwrap();
        unsafe {
            twice.set_arg_unchecked(0, ocl::core::ArgVal::mem(&answer)).unwrap();
            twice.enq().unwrap();
        }
        let mut doubled_x = vec![0f32; len];
        doubled.read(&mut doubled_x).enq().unwrap();
        let halves: Vec<f32> = doubled_x.iter().map(|y| y / 2.0).collect();
        assert_eq!(common::bits(&halves), expected(&own), "{}", own.info().name);
        // The queue handed out is the queue passed in.
        assert_eq!(interop::ocl::queue(&ours).unwrap().as_ptr(), queue.as_core().as_ptr());
    }
}
