//! Ctrl-C: the first one ends the work with what there is of it, the second one ends the program.

use std::ops::ControlFlow;
use std::process::exit;
use std::sync::{Once, OnceLock};
use std::time::{Duration, Instant};

use crate::tell;

/// Exit status of a program that a signal has ended, as shells give it.
const ENDED: i32 = 130;

/// Signals so soon after the first one are the same request: `timeout` and batch systems signal a program and then its group.
const TOGETHER: Duration = Duration::from_millis(300);

/// When the first signal came.
static ASKED: OnceLock<Instant> = OnceLock::new();
static INSTALLED: Once = Once::new();

/// From now on there is something to keep: the first Ctrl-C (or SIGTERM) is told by [`came`], the second ends the program at once.
/// Before this call a Ctrl-C ends the program, since nothing would be lost.
pub fn keep_work() {
    INSTALLED.call_once(|| {
        let installed = ctrlc::set_handler(|| {
            if ASKED.set(Instant::now()).is_ok() {
                tell!(
                    "Ctrl-C or SIGTERM: ending after this step with what there is so far; a second one ends at once"
                );
            } else if ASKED.get().is_some_and(|first| first.elapsed() > TOGETHER) {
                exit(ENDED);
            }
        });
        if let Err(error) = installed {
            log::warn!("Ctrl-C will lose the work: {error}");
        }
    });
}

/// Tells if Ctrl-C was pressed while there was something to keep.
pub fn came() -> bool {
    ASKED.get().is_some()
}

/// `Break` after Ctrl-C: for observers of a solve.
pub fn flow() -> ControlFlow<()> {
    if came() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}
