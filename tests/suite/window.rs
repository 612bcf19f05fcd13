//! The windows of the simulations, on a display of their own: `Xvfb`, driven by `xdotool`, seen by `xwd`. Where these are missing the test says
//! that it is skipped; `REQUIRE_WINDOW` makes that a failure.
#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::program;

/// A display that ends with the test.
struct Display(Child, String);

impl Drop for Display {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn display() -> Option<Display> {
    let there = |name: &str| {
        Command::new(name).arg("-version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
    };
    let missing: Vec<_> = ["Xvfb", "xdotool", "xwd"].into_iter().filter(|name| !there(name)).collect();
    if !missing.is_empty() {
        assert!(std::env::var_os("REQUIRE_WINDOW").is_none(), "not installed: {missing:?}");
        println!("skipped: windows, because {missing:?} are not installed");
        return None;
    }
    // Without `-noreset` it begins anew when its last client leaves, and refuses one that comes meanwhile.
    let mut server = Command::new("Xvfb")
        .args(["-displayfd", "1", "-screen", "0", "800x600x24", "-nolisten", "tcp", "-noreset"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("Xvfb starts");
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).expect("the number of the display");
    Some(Display(server, format!(":{}", line.trim())))
}

impl Display {
    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(name);
        command.env("DISPLAY", &self.1).env_remove("WAYLAND_DISPLAY");
        command
    }

    fn xdotool(&self, arguments: &[&str]) -> String {
        let output = self.command("xdotool").args(arguments).output().expect("xdotool runs");
        String::from_utf8_lossy(&output.stdout).trim().to_string()
    }

    /// Waits for a window of this title.
    fn window(&self, title: &str, program: &mut Child) -> String {
        let begin = Instant::now();
        loop {
            let found = self.xdotool(&["search", "--name", title]);
            if let Some(window) = found.lines().next() {
                return window.to_string();
            }
            assert!(program.try_wait().unwrap().is_none(), "{title} ended before it had a window");
            assert!(begin.elapsed() < Duration::from_secs(60), "no window of {title}");
            pause(100);
        }
    }

    /// The pixels of a window, as red, green, blue, with its width.
    fn pixels(&self, window: &str) -> (usize, Vec<[u8; 3]>) {
        let dump = self.command("xwd").args(["-silent", "-id", window]).output().expect("xwd runs").stdout;
        let word = |k: usize| u32::from_be_bytes(dump[4 * k..4 * k + 4].try_into().unwrap()) as usize;
        let (header, width, height) = (word(0), word(4), word(5));
        let (order, bits, line, colours) = (word(7), word(11), word(12), word(19));
        assert_eq!((order, bits), (0, 32), "least byte first, in 32 bits");
        let data = &dump[header + 12 * colours..];
        let pixel = |c: usize| {
            let at = c / width * line + 4 * (c % width);
            [data[at + 2], data[at + 1], data[at]]
        };
        (width, (0..width * height).map(pixel).collect())
    }
}

fn pause(milliseconds: u64) {
    std::thread::sleep(Duration::from_millis(milliseconds));
}

/// The pixels of a picture with a palette, as red, green, blue, with its width.
fn picture(path: &Path) -> (usize, Vec<[u8; 3]>) {
    let mut decoder =
        png::Decoder::new(BufReader::new(std::fs::File::open(path).expect("the picture that was saved")));
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().unwrap();
    let mut data = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut data).unwrap();
    (info.width as usize, data.chunks_exact(3).map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect())
}

/// Starts a program, drags the mouse through its window, pauses it, looks at it, and closes it. The window has shown what is saved.
fn touched(display: &Display, name: &str) {
    let folder = tempfile::tempdir().unwrap();
    let saved = folder.path().join("last.png");
    let mut command = program(name);
    let size = if name == "fem" { "--pixels" } else { "--size" };
    command.args(["--window", "--device", "host", size, "400x300", "--json", "--save"]).arg(&saved);
    command.env("DISPLAY", &display.1).env_remove("WAYLAND_DISPLAY").stdout(Stdio::piped());
    let mut running = command.spawn().expect("the program starts");
    let window = display.window(name, &mut running);
    display.xdotool(&["windowfocus", "--sync", &window]);
    pause(500);
    let untouched = display.pixels(&window);
    display.xdotool(&["mousemove", "--window", &window, "120", "80"]);
    display.xdotool(&["mousedown", "1"]);
    for step in 0..12 {
        display.xdotool(&["mousemove", "--window", &window, &(120 + 10 * step).to_string(), "120"]);
        pause(30);
    }
    display.xdotool(&["mouseup", "1"]);
    display.xdotool(&["key", "Up"]);
    display.xdotool(&["key", "Right"]);
    pause(300);
    display.xdotool(&["key", "space"]);
    pause(700);
    let shown = display.pixels(&window);
    assert_eq!(
        shown,
        {
            pause(400);
            display.pixels(&window)
        },
        "{name} goes on although it is paused"
    );
    assert_ne!(shown, untouched, "{name} did nothing");
    display.xdotool(&["key", "q"]);
    let output = running.wait_with_output().expect("the program ends");
    assert!(output.status.success(), "{name}: {}", output.status);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    assert!(report["frames"].as_u64().unwrap() > 5, "{report}");
    assert!(shown == picture(&saved), "{name} has not shown the picture that it saved");
}

#[test]
fn windows_are_touched_and_show_what_is_saved() {
    let Some(display) = display() else { return };
    for name in ["heat", "wave", "flow", "fem"] {
        touched(&display, name);
    }
}

#[test]
fn without_a_display_a_window_is_refused_in_words() {
    for name in ["heat", "wave", "flow", "fem"] {
        let mut command = program(name);
        command.args(["--window", "--device", "host", "--size", "16", "--frames", "2"]);
        let output = command
            .env_remove("DISPLAY")
            .env_remove("WAYLAND_DISPLAY")
            .env_remove("WAYLAND_SOCKET")
            .output()
            .unwrap();
        let words = String::from_utf8_lossy(&output.stderr).to_string();
        assert_eq!(output.status.code(), Some(2), "{name}: {words}");
        let last = words.trim().lines().last().unwrap_or_default().to_string();
        assert!(last.starts_with(&format!("{name}: --window: ")), "{words}");
    }
}
