//! Faults found in devices, kept beside the built programs: such a device is used only when it is named.
//!
//! A verdict holds for one device and driver with one text of the kernels, and until the doctor finds nothing wrong any more.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::device_info::DeviceInfo;
use crate::files::{cache_folder, read_small, write_atomically};

/// Far more than verdicts on all devices there are.
const MOST_BYTES: u64 = 16 << 20;

#[derive(Debug, Serialize, Deserialize)]
struct Verdict {
    device: String,
    platform: String,
    driver: String,
    kernels: String,
    fault: String,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Verdicts {
    #[serde(default)]
    verdict: Vec<Verdict>,
}

fn path() -> Option<PathBuf> {
    Some(cache_folder()?.join("verdicts.toml"))
}

/// A file that cannot be read counts as missing: the next verdict writes it anew.
fn read() -> Verdicts {
    let bytes = path().and_then(|path| read_small(&path, MOST_BYTES).ok()).unwrap_or_default();
    toml::from_str(&String::from_utf8_lossy(&bytes)).unwrap_or_default()
}

impl Verdict {
    fn is_of(&self, info: &DeviceInfo) -> bool {
        self.device == info.name && self.platform == info.platform && self.driver == info.driver
    }
}

/// Fault that was found in a device with `kernels`, the checksum of those there are now.
pub(crate) fn verdict(info: &DeviceInfo, kernels: &str) -> Option<String> {
    let found = read().verdict.into_iter().find(|verdict| verdict.is_of(info))?;
    (found.kernels == kernels).then_some(found.fault)
}

/// Keeps the fault of a device with `kernels`, their checksum, or that it has none.
pub(crate) fn remember(info: &DeviceInfo, kernels: &str, fault: Option<&str>) {
    let Some(path) = path() else { return };
    let mut all = read();
    let before = all.verdict.len();
    all.verdict.retain(|verdict| !verdict.is_of(info));
    match fault {
        Some(fault) => all.verdict.push(Verdict {
            device: info.name.clone(),
            platform: info.platform.clone(),
            driver: info.driver.clone(),
            kernels: kernels.into(),
            fault: fault.into(),
        }),
        None if all.verdict.len() == before => return,
        None => {}
    }
    let Ok(text) = toml::to_string(&all) else { return };
    let kept = path.parent().map_or(Ok(()), std::fs::create_dir_all).is_ok()
        && write_atomically(&path, |out| out.write_all(text.as_bytes())).is_ok();
    if !kept {
        log::warn!("what was found of {} cannot be kept in {}", info.name, path.display());
    }
}
