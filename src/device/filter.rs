//! Words that pick devices.

use std::fmt::{Display, Formatter, Result as FmtResult};
use std::str::FromStr;

use crate::device_info::{DeviceInfo, DeviceKind};
use crate::error::{Error, Result};

/// Words that pick devices, separated by blanks or commas: all must match, and no words match every device.
///
/// | word | matches |
/// |---|---|
/// | `gpu`, `cpu`, `accelerator`, `host` | that type |
/// | `fp64` | devices with 64-bit floating point |
/// | `1:0` | platform 1, device 0, in the order of `examples/devices` |
/// | `memory=8G` | at least so much memory (bytes, or `K`, `M`, `G`, `T` of 1024), for the host that of the machine |
/// | `name=`, `vendor=`, `platform=`, `driver=` | these letters somewhere in that property |
/// | `units=4` | OpenCL devices that can be split, and have so many compute units: a part with 4 is opened |
/// | any other, such as `nvidia` | these letters in name, vendor, platform or platform version |
/// | `!` before a word | what the word does not match |
///
/// Small letters and capitals are the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceFilter {
    words: Vec<Word>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Word {
    /// The text in small letters.
    text: String,
    negated: bool,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    Kind(DeviceKind),
    Fp64,
    Index((usize, usize)),
    Memory(u64),
    Units(usize),
    Name(String),
    Vendor(String),
    Platform(String),
    Driver(String),
    Anywhere(String),
}

impl FromStr for DeviceFilter {
    type Err = Error;

    /// # Errors
    /// [`Error::Option`] for a property that no device has, or an amount of memory that is no number.
    fn from_str(text: &str) -> Result<Self> {
        let words = text.split([' ', ',', '\t']).filter(|word| !word.is_empty());
        Ok(Self { words: words.map(Word::parse).collect::<Result<_>>()? })
    }
}

impl Display for DeviceFilter {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        f.write_str(&self.words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" "))
    }
}

impl DeviceFilter {
    /// Tells if a device matches every word.
    pub fn matches(&self, info: &DeviceInfo) -> bool {
        self.words.iter().all(|word| word.test.holds(info) != word.negated)
    }

    /// Compute units to use of a device, if not all.
    pub fn units(&self) -> Option<usize> {
        self.words.iter().find_map(|word| match word.test {
            Test::Units(units) if !word.negated => Some(units),
            _ => None,
        })
    }
}

impl Word {
    fn parse(word: &str) -> Result<Self> {
        let text = word.to_lowercase();
        let negated = text.starts_with('!');
        let test = Test::parse(text.trim_start_matches('!'))?;
        Ok(Self { text, negated, test })
    }
}

impl Test {
    fn parse(word: &str) -> Result<Self> {
        let refuse = |reason: String| Err(Error::Option { name: "device", reason });
        if let Some((property, value)) = word.split_once('=') {
            let part = value.to_string();
            return match property {
                _ if value.is_empty() => refuse(format!("'{word}' names no {property}")),
                "name" => Ok(Self::Name(part)),
                "vendor" => Ok(Self::Vendor(part)),
                "platform" => Ok(Self::Platform(part)),
                "driver" => Ok(Self::Driver(part)),
                "memory" => match bytes(value) {
                    Some(bytes) => Ok(Self::Memory(bytes)),
                    None => refuse(format!("'{value}' is no amount of memory, such as 8G")),
                },
                "units" => match value.parse() {
                    Ok(units) if units > 0 => Ok(Self::Units(units)),
                    _ => refuse(format!("'{value}' is no number of compute units")),
                },
                _ => refuse(format!(
                    "'{property}' is no property to ask for: name, vendor, platform, driver, memory, units are"
                )),
            };
        }
        let kinds = [DeviceKind::Gpu, DeviceKind::Cpu, DeviceKind::Accelerator, DeviceKind::Host];
        let kind = kinds.into_iter().find(|kind| kind.to_string() == word);
        Ok(match (kind, position(word)) {
            (Some(kind), _) => Self::Kind(kind),
            (_, Some(index)) => Self::Index(index),
            _ if word == "fp64" => Self::Fp64,
            _ if word.is_empty() => return refuse("a '!' with no word behind it".into()),
            _ => Self::Anywhere(word.into()),
        })
    }

    fn holds(&self, info: &DeviceInfo) -> bool {
        let within = |text: &str, part: &str| text.to_lowercase().contains(part);
        match self {
            Self::Kind(kind) => info.kind == *kind,
            Self::Fp64 => info.fp64,
            Self::Index(index) => info.index == Some(*index),
            Self::Memory(bytes) => info.memory >= *bytes,
            Self::Units(units) => info.most_parts > 1 && info.compute_units >= *units,
            Self::Name(part) => within(&info.name, part),
            Self::Vendor(part) => within(&info.vendor, part),
            Self::Platform(part) => within(&info.platform, part) || within(&info.platform_version, part),
            Self::Driver(part) => within(&info.driver, part),
            Self::Anywhere(part) => [&info.name, &info.vendor, &info.platform, &info.platform_version]
                .iter()
                .any(|text| within(text, part)),
        }
    }
}

/// `platform:device`.
fn position(word: &str) -> Option<(usize, usize)> {
    let (platform, device) = word.split_once(':')?;
    Some((platform.parse().ok()?, device.parse().ok()?))
}

/// A number of bytes, as `8g` or `1.5t` or `4096`.
fn bytes(text: &str) -> Option<u64> {
    let number = text.trim_end_matches(['k', 'm', 'g', 't']);
    let power = match &text[number.len()..] {
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        _ => return None,
    };
    let amount: f64 = number.parse().ok()?;
    (amount > 0.0 && amount.is_finite()).then_some((amount * 1024f64.powi(power)) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{host_info, tests::gpu};

    fn matches(words: &str, info: &DeviceInfo) -> bool {
        words.parse::<DeviceFilter>().expect("words that can be meant").matches(info)
    }

    #[test]
    fn filters_do_what_they_say() {
        let gpu = DeviceInfo { memory: 3 << 30, driver: "580.159.04".into(), ..gpu() };
        for words in [
            "",
            "h200",
            "nvidia",
            "gpu",
            "GPU fp64",
            "1:0",
            "cuda 13",
            "nvidia,h200",
            "name=h200",
            "vendor=Corporation",
            "platform=cuda",
            "driver=580",
            "memory=3G",
            "memory=0.5g",
            "memory=3072M gpu",
            "!cpu",
            "!memory=4G",
            "gpu !name=a100",
        ] {
            assert!(matches(words, &gpu), "{words}");
        }
        for words in [
            "host",
            "cpu",
            "pocl",
            "0:0",
            "nvidia cpu",
            "h100",
            "name=nvidia-corporation",
            "vendor=h200",
            "platform=h200",
            "driver=h200",
            "memory=4G",
            "!gpu",
            "!fp64",
            "gpu !nvidia",
        ] {
            assert!(!matches(words, &gpu), "{words}");
        }
        assert!(matches("host", &host_info()) && !matches("gpu", &host_info()));
        let unknown = DeviceInfo { memory: 0, ..host_info() };
        assert!(!matches("memory=1", &unknown), "what is not known is not promised");
        let parted = DeviceInfo { most_parts: 132, ..gpu };
        assert!(matches("units=4", &parted) && matches("units=132", &parted) && !matches("units=133", &parted));
        assert!(!matches("units=4", &host_info()), "what cannot be split has no parts");
        let units = |words: &str| words.parse::<DeviceFilter>().expect("words").units();
        assert_eq!([units("cpu units=4"), units("cpu"), units("!units=4")], [Some(4), None, None]);
    }

    #[test]
    fn words_that_cannot_be_meant_are_refused() {
        for (words, why) in [
            ("memory=lots", "no amount of memory"),
            ("memory=8gg", "no amount of memory"),
            ("memory=-1g", "no amount of memory"),
            ("colour=blue", "no property to ask for"),
            ("units=0", "no number of compute units"),
            ("units=all", "no number of compute units"),
            ("name=", "names no name"),
            ("gpu !", "no word behind it"),
        ] {
            let error = words.parse::<DeviceFilter>().expect_err(words).to_string();
            assert!(error.contains(why), "{words}: {error}");
        }
        let filter: DeviceFilter = "GPU, !pocl memory=8G".parse().expect("words");
        assert_eq!(filter.to_string(), "gpu !pocl memory=8g");
        assert_eq!(filter.to_string().parse::<DeviceFilter>().expect("words"), filter);
    }
}
