//! Progress on stderr: a bar on a terminal, elsewhere a line every now and then.

use std::io::IsTerminal;
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use residuum::Progress;

use crate::{about, tell};

/// Time between two lines.
const EVERY: Duration = Duration::from_secs(15);

/// A bar of so many `things`. `quiet` programs draw none, and put their lines into the log.
fn bar(quiet: bool, length: Option<u64>, things: &'static str, template: &str) -> ProgressBar {
    if !quiet && std::io::stderr().is_terminal() {
        let bar = length.map_or_else(ProgressBar::no_length, ProgressBar::new);
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        return bar;
    }
    let bar = ProgressBar::hidden();
    if let Some(length) = length {
        bar.set_length(length);
    }
    if !quiet || log::log_enabled!(log::Level::Info) {
        report(&bar, things, EVERY, move |line| {
            if quiet { log::info!("{line}") } else { tell!("{} {}: {line}", about::now(), about::name()) }
        });
    }
    bar
}

/// Tells `sink` how far `bar` has come, until it is finished or nobody else holds it.
fn report(bar: &ProgressBar, things: &'static str, every: Duration, mut sink: impl FnMut(String) + Send + 'static) {
    let bar = bar.downgrade();
    // It ends with the bar, or with the program.
    let _ = thread::spawn(move || {
        loop {
            thread::sleep(every);
            match bar.upgrade().filter(|bar| !bar.is_finished()) {
                Some(bar) => sink(line(&bar, things)),
                None => break,
            }
        }
    });
}

fn line(bar: &ProgressBar, things: &str) -> String {
    let of = bar.length().filter(|length| *length > 0).map(|length| format!(" of {length}")).unwrap_or_default();
    let message = bar.message();
    let message = if message.is_empty() { message } else { format!(", {message}") };
    format!("{}{of} {things}{message}, {:.0} s", bar.position(), bar.elapsed().as_secs_f64())
}

/// While a file is read.
pub fn reading_bar(quiet: bool) -> ProgressBar {
    bar(quiet, None, "entries read", "{bar:40} {pos}/{len} entries, {eta} left")
}

/// While `count` things are done one after the other.
pub fn counting_bar(quiet: bool, count: usize) -> ProgressBar {
    bar(quiet, Some(count as u64), "done", "{bar:30} {pos}/{len}, {msg}")
}

/// While a solve runs, of at most `iterations`.
pub fn solving_bar(quiet: bool, iterations: usize) -> ProgressBar {
    bar(quiet, Some(iterations as u64), "iterations", "{bar:40} {pos}/{len} iterations, {eta} left, {msg}")
}

/// Shows how far a solve has come.
pub fn show(bar: &ProgressBar, progress: &Progress) {
    bar.set_length(progress.max_iterations as u64);
    bar.set_position(progress.iteration as u64);
    bar.set_message(format!("|r| {:.3e}", progress.residual));
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn without_a_terminal_lines_tell_how_far_it_is() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let kept = lines.clone();
        let bar = ProgressBar::hidden();
        report(&bar, "iterations", Duration::from_millis(5), move |line| kept.lock().unwrap().push(line));
        bar.set_length(50);
        bar.set_position(7);
        bar.set_message("|r| 1e-3");
        let found = || {
            lines.lock().unwrap().iter().any(|line: &String| line.starts_with("7 of 50 iterations, |r| 1e-3, 0 s"))
        };
        for _ in 0..2000 {
            if found() {
                break;
            }
            thread::sleep(Duration::from_millis(5));
        }
        assert!(found(), "{lines:?}");
        bar.finish_and_clear();
        // The thread ends with the bar.
        for _ in 0..2000 {
            if Arc::strong_count(&lines) == 1 {
                break;
            }
            thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(Arc::strong_count(&lines), 1);
    }
}
