//! Known faults of drivers: the driver, the workaround and the reason. Only this file compares names of platforms and devices.

use crate::device_info::DeviceKind;

/// Why a device should be used only when it is asked for by name.
pub(super) fn last_resort(platform: &str, device: &str) -> Option<&'static str> {
    if platform.contains("Oclgrind") || device.contains("Oclgrind") {
        return Some("a simulator that checks kernels, thousands of times slower than hardware");
    }
    if platform.contains("Clover") {
        return Some("Mesa's Clover aborts inside its compiler on some kernels; use rusticl");
    }
    if is_llvmpipe(device) {
        return Some(
            "a rasteriser without fp64 that ends the loops of an item after 65535 turns; take PoCL or the host",
        );
    }
    None
}

/// Setting that makes a platform show its devices.
pub(super) fn reveal(platform: &str) -> &'static str {
    match platform {
        "rusticl" => {
            " (RUSTICL_ENABLE names the drivers whose devices it shows, such as radeonsi, iris or llvmpipe)"
        }
        "Clover" => " (rusticl is its successor)",
        _ => "",
    }
}

/// Groups of one launch that can be told to wait for each other.
///
/// OpenCL C 1.2 promises nothing between groups. NVIDIA's devices from compute capability 7 on order memory between
/// groups by release and acquire, which its compiler takes as PTX (`cl/script/global_barrier.cl`), and run at least one group on every
/// compute unit; kernels that rely on that check it as they begin. Elsewhere one group, which has nobody to wait for. None on
/// llvmpipe, where the loops of many iterations are too long ([`least_work_group`]): of CG with 2025 rows, launches of 32
/// iterations were right and of 64 were not.
pub(super) fn resident_groups(platform: &str, device: &str, capability: u32, units: usize) -> usize {
    if is_llvmpipe(device) {
        0
    } else if platform.contains("NVIDIA") && capability >= 7 {
        units.max(1)
    } else {
        1
    }
}

/// Why kernels that synchronise their work-items run with one item per group on a platform, if they do.
///
/// PoCL 3.1 compiles such kernels wrongly where a barrier stands near a loop, a branch or a private array: the loop over
/// the work-items loses its end, or values that live across the barrier are lost (crashes and wrong sums, seen at 2 to
/// 1024 items; Oclgrind finds no fault in the same kernels, and NVIDIA's driver and Intel's runtime run them at every
/// size). PoCL 5 still gives wrong products of traced rays at 64 and 256 items.
///
/// Intel's compiler for CPUs (2026.2) gives right answers at every size, but goes on using an entry of a map after the map
/// has grown, where values live across a barrier (its pass ReduceCrossBarrierValues; valgrind sees it read and write freed
/// memory while our files are built): now and then it takes the process with it ("double free or corruption").
///
/// With one item there is no barrier, and on a CPU that is the fastest size anyway. Results do not depend on it.
pub(super) fn single_items(platform: &str, kind: DeviceKind) -> Option<&'static str> {
    if platform.contains("Portable Computing Language") {
        return Some("PoCL miscompiles barriers");
    }
    is_intel_cpu(platform, kind).then_some("Intel's compiler writes to freed memory at barriers")
}

/// The fewest items of a group that give right answers on a device.
///
/// llvmpipe ends the loops of a work-item after 65535 turns in all, without a word (Mesa 22.3, by rusticl: a nest of loops
/// of 1000 by 66 turns does 65405). One item a group runs through a whole chunk of rows: a product by ELLPACK of 32 rows
/// by 2900 places ends in row 22, and CG is wrong from a few thousand rows on. The items of larger groups share the rows.
/// Longer rows than that end early at any size, which the first products of each kind are compared with the host for.
pub(super) fn least_work_group(device: &str) -> usize {
    if is_llvmpipe(device) { 32 } else { 1 }
}

/// Build options that a device needs beside the constants of a kernel.
///
/// Intel's runtime for CPUs (seen in 2026.2) vectorises loops that add products and adds the terms in another order: of
/// 64 sums of 37 products of `float` kept in `double`, as plain a loop as can be, 29 come out different, and no option,
/// pragma or attribute about arithmetic prevents it but the one that forbids vectors loop by loop (`cl/common/common.cl`).
/// Work-items are still put into vectors. With `double` it happens here and there (products in COO at one item a group).
///
/// Oclgrind 21 makes no kernel into which its compiler has inlined a function with `restrict` pointers ("Undefined external
/// function: llvm.experimental.noalias.scope.decl"), as it does with functions that are `static`.
pub(super) fn build_options(platform: &str, kind: DeviceKind) -> &'static str {
    if is_intel_cpu(platform, kind) {
        " -D LOOPS_IN_ORDER"
    } else if platform.contains("Oclgrind") {
        " -D static="
    } else {
        ""
    }
}

fn is_llvmpipe(device: &str) -> bool {
    device.contains("llvmpipe")
}

fn is_intel_cpu(platform: &str, kind: DeviceKind) -> bool {
    platform.contains("Intel") && kind == DeviceKind::Cpu
}

/// Tells if built programs of a platform are worth keeping on disk.
///
/// Not those of Oclgrind, which names the lines of the source in its reports. Not those of PoCL either: asked for a binary, it
/// compiles every kernel of the program, used or not (a second or two instead of some tenths), for a group size that is not
/// known, and at some of ours its compiler never ends (seen in 3.1 with `cl/script/cgnr_resident.cl`). It keeps what it built itself.
/// `RESIDUUM_CACHE_ALL`, set to anything, keeps programs there all the same.
pub(super) fn keeps_programs(platform: &str) -> bool {
    let trusted =
        !platform.contains("Portable Computing Language") || std::env::var_os("RESIDUUM_CACHE_ALL").is_some();
    trusted && !platform.contains("Oclgrind")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_of_drivers_is_heeded() {
        let groups = |platform, device, capability| resident_groups(platform, device, capability, 132);
        assert_eq!(groups("NVIDIA CUDA", "NVIDIA H200", 9), 132);
        assert_eq!(groups("NVIDIA CUDA", "GeForce GTX 1080", 6), 1);
        assert_eq!(groups("Portable Computing Language", "cpu-haswell", 0), 1);
        assert_eq!(groups("rusticl", "llvmpipe (LLVM 15.0.6, 256 bits)", 0), 0);
        assert_eq!((least_work_group("llvmpipe (LLVM 15.0.6)"), least_work_group("AMD Radeon")), (32, 1));
        let single = |platform, kind| single_items(platform, kind).is_some();
        assert!(
            single("Portable Computing Language", DeviceKind::Cpu) && single("Intel(R) OpenCL", DeviceKind::Cpu)
        );
        assert!(!single("Intel(R) OpenCL Graphics", DeviceKind::Gpu) && !single("NVIDIA CUDA", DeviceKind::Gpu));
        assert!(build_options("Intel(R) OpenCL", DeviceKind::Cpu).contains("LOOPS_IN_ORDER"));
        assert_eq!(build_options("Intel(R) OpenCL Graphics", DeviceKind::Gpu), "");
        assert_eq!(build_options("Oclgrind", DeviceKind::Cpu), " -D static=");
        assert!(last_resort("Clover", "AMD").is_some() && last_resort("NVIDIA CUDA", "NVIDIA H200").is_none());
    }
}
