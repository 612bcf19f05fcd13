//! The battery of every kernel: the answers of every device are the host's, and no kernel is missing in it.

use std::collections::BTreeSet;

use crate::common::{self, bits};
use residuum::doctor::battery;
use residuum::{Accumulation, BackendKind, Device, Precision, Real};

/// A handle with launches of two groups at least, if it can have any: CPUs have one unless they are told. A simulator takes what groups read
/// of each other for races.
fn with_groups(device: &Device) -> Device {
    if device.info().platform == "Oclgrind" {
        return device.clone();
    }
    device.with_resident_groups(device.tuning().resident_groups.max(2))
}

/// Asks the device and the host everything that suits the device.
fn compare<T: Real>(device: &Device) {
    let host = common::reference::<T>(device);
    let who = format!("{} {}", device.info().name, device.tuning());
    let mut different = Vec::new();
    for question in battery::<T>() {
        if !question.suits(device, T::PRECISION) {
            println!("skipped: {} on {who}, which has not what it needs", question.name());
            continue;
        }
        let wanted = question.ask(&host).unwrap();
        assert!(wanted.len() > 1 || question.name().starts_with("a product"), "{}", question.name());
        assert!(wanted.iter().all(|v| v.is_finite()), "{}: not all was written", question.name());
        if bits(&question.ask(device).unwrap()) != bits(&wanted) {
            different.push(question.name());
        }
    }
    assert!(different.is_empty(), "{who}: {different:?}");
}

/// Cases that a process in the simulator tries, as `size:number`; set there alone.
pub(crate) const CASES: &str = "RESIDUUM_SIMULATED_CASES";

/// The battery on every device with this size of work-groups: one of the numbers `single`, `pairs` and `double`.
fn compare_case(size: usize, number: &str) {
    for device in common::devices() {
        if std::env::var_os(CASES).is_some() && device.backend_kind() == BackendKind::OpenCl {
            assert_eq!(device.info().platform, "Oclgrind");
        }
        let least = device.info().least_work_group;
        // CPUs run a text of their own, with one item to a group.
        if size == 1 && least > 1 {
            continue;
        }
        let device = with_groups(&device.with_work_group(size.max(least)).unwrap());
        match number {
            "single" => compare::<f32>(&device),
            "pairs" => compare::<f32>(&device.with_accumulation(Accumulation::Pair).unwrap()),
            "double" if device.require(Precision::Double).is_ok() => compare::<f64>(&device),
            "double" => println!("skipped: {} has no double precision", device.info().name),
            other => panic!("{other} is no number"),
        }
    }
}

/// The battery on every device at three work-group sizes, against the host. In the simulator, what matters is its log.
#[test]
fn every_kernel_in_small() {
    let words =
        std::env::var(CASES).unwrap_or("1:single 8:single 8:pairs 8:double 64:single 64:pairs 64:double".into());
    for case in words.split(' ') {
        let (size, number) = case.split_once(':').unwrap();
        compare_case(size.parse().unwrap(), number);
    }
}

/// Names of all kernels in `cl/`.
fn kernels() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (_, text) in common::kernel_texts() {
        for after in text.split("__kernel").skip(1) {
            let name = after.split_once("void ").unwrap().1.split('(').next().unwrap();
            found.insert(name.trim().to_string());
        }
    }
    found
}

#[test]
fn no_kernel_is_missing_in_the_battery() {
    let all = kernels();
    assert!(all.len() > 50 && all.contains("cgnr_resident"), "{all:?}");
    for device in common::devices() {
        if device.backend_kind() == BackendKind::Host {
            continue;
        }
        // Some kernels are for devices with these abilities alone.
        let info = device.info();
        if info.resident_groups == 0 || !info.int64_atomics || !info.fp64 {
            println!("skipped: {} has no use for some kernels", device.info().name);
            continue;
        }
        let device = with_groups(&device.with_work_group(info.least_work_group.max(8)).unwrap());
        for question in battery::<f32>() {
            question.ask(&device).unwrap();
        }
        let made = device.kernels();
        let missing: Vec<&String> = all.iter().filter(|name| !made.contains(name.as_str())).collect();
        assert!(missing.is_empty(), "{}: {missing:?}", device.info().name);
    }
}
