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
