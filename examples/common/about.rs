//! Name, version and command line of a program, for `--version` and for its JSON.

use std::sync::{LazyLock, OnceLock};

use serde_json::{Value, json};

/// Version of the programs.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit that the program was built from, if the build script found it; see `build.rs`.
pub const COMMIT: Option<&str> = option_env!("RESIDUUM_BUILT_FROM");

static NAME: OnceLock<&str> = OnceLock::new();

/// Takes the name of the program.
pub(crate) fn set_name(name: &'static str) {
    // The first name counts: there is one program in a process.
    let _ = NAME.set(name);
}

/// Name of the program.
pub(crate) fn name() -> &'static str {
    NAME.get().copied().unwrap_or("residuum")
}

/// Optional features that the programs were built with.
pub fn features() -> Vec<&'static str> {
    let all = [
        ("hdf5", cfg!(feature = "hdf5")),
        ("metis", cfg!(feature = "metis")),
        ("tiff", cfg!(feature = "tiff")),
        ("plot", cfg!(feature = "plot")),
        ("window", cfg!(feature = "window")),
        ("ocl-interop", cfg!(feature = "ocl-interop")),
    ];
    all.into_iter().filter_map(|(name, there)| there.then_some(name)).collect()
}

/// Text of `--version` behind the name: version, commit, features.
pub fn version() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let commit = COMMIT.map_or("commit unknown".into(), |commit| format!("commit {commit}"));
        let features = match &features()[..] {
            [] => "no optional features".into(),
            some => format!("features {}", some.join(" ")),
        };
        format!("{VERSION} ({commit}, {features})")
    });
    &TEXT
}

/// The fields of every JSON object that tell where it comes from. The date is that of the call.
pub fn provenance() -> Value {
    let command: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    json!({
        "program": name(), "version": VERSION, "commit": COMMIT, "features": features(), "command": command,
        "date": now(),
    })
}

/// Date and time in UTC.
pub(crate) fn now() -> String {
    humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string()
}

/// The end of every help text: what the environment changes.
pub const ENVIRONMENT: &str = "\
Environment:
  RESIDUUM_DEVICE     words that choose the device, as --device does
  RESIDUUM_TUNE_FILE  file of tuned values, or off [default: tuning.toml in the configuration folder]
  RESIDUUM_CACHE      folder of compiled kernels, or off [default: residuum in the cache folder]
  RESIDUUM_CL_DIR     folder of kernel sources, in folders as in cl/, that are read instead of the built-in ones
  RUST_LOG            log on stderr: info for the steps of the work, debug for kernels too [default: errors only]";

/// [`ENVIRONMENT`] below other words.
pub fn after_help(words: &str) -> String {
    format!("{words}\n\n{ENVIRONMENT}")
}

/// End of the help text of programs whose work takes long and is saved.
pub fn help_of_work() -> String {
    after_help(
        "Ctrl-C ends the work with what there is so far: it is saved, and the exit status is 1. A second one ends the program at once.\n\
         Files that exist are replaced by complete ones when the work is done, unless --no-overwrite is given.",
    )
}
