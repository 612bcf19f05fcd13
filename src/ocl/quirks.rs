//! Known faults of drivers: who, what is done about it, and why. The only place that looks at names.

/// Why a device should be used only when it is asked for by name.
pub(super) fn last_resort(platform: &str, device: &str) -> Option<&'static str> {
    if platform.contains("Oclgrind") || device.contains("Oclgrind") {
        return Some("a simulator that checks kernels, thousands of times slower than hardware");
    }
    if platform.contains("Clover") {
        return Some("Mesa's Clover aborts inside its compiler on some kernels; use rusticl");
    }
    if device.contains("llvmpipe") {
        return Some("a software rasteriser without 64-bit floating point; PoCL or the host is faster");
    }
    None
}

/// Whether a work-group of more than one item must have at least as many items as a reduction chunk has lanes.
///
/// PoCL 3.1 compiles kernels whose items hold several lanes in a loop, between barriers, into code whose loop over the
/// work-items has no end: it crashes or gives wrong sums (seen at 2 to 512 items; Oclgrind finds no fault in the same
/// kernels, and Intel's runtime and NVIDIA's driver run them). With one lane per item, or one item per group, PoCL is
/// right. Groups are raised to that size; results do not depend on it.
pub(super) fn one_lane_per_item(platform: &str) -> bool {
    platform.contains("Portable Computing Language")
}
