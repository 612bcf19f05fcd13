//! A window that shows a simulation, with mouse and keys.

use std::num::NonZeroU32;
use std::rc::Rc;
use std::time::{Duration, Instant};

use residuum::{Error, Report, Result};
use softbuffer::{Context, Surface};
use winit::application::ApplicationHandler;
use winit::dpi::PhysicalSize;
use winit::event::{ElementState, KeyEvent, MouseButton, WindowEvent};
use winit::event_loop::{ActiveEventLoop, ControlFlow, EventLoop, OwnedDisplayHandle};
use winit::keyboard::{Key, NamedKey};
use winit::window::{Window, WindowId};

use super::film::Target;
use super::picture::{Picture, glowing};
use super::{Change, Drag, Simulation};
use crate::{interrupt, option};

/// Error of a window that cannot be opened.
fn no_window(reason: impl std::fmt::Display) -> Error {
    let reason = reason.to_string();
    let reason = reason.trim_end_matches('.');
    option(
        "window",
        format!("no window can be opened here ({}): name a display, or leave it out", without_place(reason)),
    )
}

/// A reason without the place in the sources of the window crate, which it begins with: `os error at FILE:LINE: REASON`.
fn without_place(reason: &str) -> &str {
    let placed = reason.strip_prefix("os error at ").and_then(|rest| rest.split_once(".rs:"));
    placed.and_then(|(_, rest)| rest.split_once(": ")).map_or(reason, |(_, reason)| reason)
}

/// Frames a second that are shown at most.
const SHOWN: f64 = 60.0;

/// Smallest side of a window: smaller grids get several pixels a point.
const LEAST_SIDE: usize = 384;

/// Shows `simulation` until the window is closed, `q` or Escape is pressed, or `frames` are done. The last picture shown goes to `save`.
/// Returns the seconds, and the frames after the first.
pub(super) fn show(
    simulation: &mut dyn Simulation,
    (program, mouse): (&str, &str),
    frames: Option<usize>,
    save: Option<&Target>,
    tell: &mut dyn FnMut(Option<&Report>),
) -> Result<(f64, usize)> {
    let events = EventLoop::new().map_err(no_window)?;
    events.set_control_flow(ControlFlow::Poll);
    let context = Context::new(events.owned_display_handle()).map_err(no_window)?;
    // Only now, as a window that cannot be opened has no keys.
    crate::tell!(
        "mouse: {mouse}; space: pause, s: one step, r: reset, up and down: time step, left and right: the other parameter, c: colours, q: end"
    );
    let size = simulation.size();
    let mut view = View {
        picture: Picture::new(size, glowing()),
        scale: (LEAST_SIDE / size[0].max(size[1])).max(1),
        simulation,
        program,
        frames,
        save,
        tell,
        context,
        surface: None,
        paused: false,
        pointer: [0.0; 2],
        drag: None,
        counted: (0, 0, Instant::now()),
        residual: 0.0,
        begin: Instant::now(),
        shown: None,
        outcome: Ok(()),
    };
    interrupt::keep_work();
    events.run_app(&mut view).map_err(no_window)?;
    view.outcome?;
    Ok((view.begin.elapsed().as_secs_f64(), view.counted.0.saturating_sub(1)))
}

type Shown = (Rc<Window>, Surface<OwnedDisplayHandle, Rc<Window>>);

/// The window with what it shows.
struct View<'s> {
    simulation: &'s mut dyn Simulation,
    program: &'s str,
    frames: Option<usize>,
    save: Option<&'s Target>,
    tell: &'s mut dyn FnMut(Option<&Report>),
    picture: Picture,
    /// Pixels of the window for one of the picture, along each side.
    scale: usize,
    context: Context<OwnedDisplayHandle>,
    surface: Option<Shown>,
    paused: bool,
    /// Place of the pointer, in grid points.
    pointer: [f64; 2],
    /// A button that is held: the place of the frame before, if it is the second, and if it has just been pressed.
    drag: Option<([f64; 2], bool, bool)>,
    /// Frames in all, those when the title was last set, and when that was.
    counted: (usize, usize, Instant),
    residual: f64,
    begin: Instant,
    /// When the last frame was shown.
    shown: Option<Instant>,
    outcome: Result<()>,
}

impl View<'_> {
    fn open(&mut self, events: &ActiveEventLoop) -> Result<()> {
        let [width, height] = self.picture.size.map(|n| (n * self.scale) as u32);
        let attributes = Window::default_attributes()
            .with_title(self.program)
            .with_resizable(false)
            .with_inner_size(PhysicalSize::new(width, height));
        let window = Rc::new(events.create_window(attributes).map_err(no_window)?);
        let surface = Surface::new(&self.context, window.clone()).map_err(no_window)?;
        self.surface = Some((window, surface));
        self.begin = Instant::now();
        Ok(())
    }

    /// Does a step, with what the mouse does.
    fn advance(&mut self) -> Result<()> {
        if let Some((before, second, begins)) = self.drag {
            let moved = [self.pointer[0] - before[0], self.pointer[1] - before[1]];
            self.simulation.drag(Drag { place: self.pointer, moved, second, begins })?;
            self.drag = Some((self.pointer, second, false));
        }
        let report = self.simulation.step()?;
        (self.tell)(report.as_ref());
        self.residual = report.map_or(0.0, |report| report.relative_residual());
        self.counted.0 += 1;
        Ok(())
    }

    /// Draws the picture into the window.
    fn paint(&mut self) -> Result<()> {
        self.simulation.draw(&mut self.picture)?;
        let Some((window, surface)) = &mut self.surface else { return Ok(()) };
        let size = window.inner_size();
        let (Some(width), Some(height)) = (NonZeroU32::new(size.width), NonZeroU32::new(size.height)) else {
            return Ok(());
        };
        surface.resize(width, height).map_err(no_window)?;
        let mut buffer = surface.buffer_mut().map_err(no_window)?;
        let (columns, scale) = (size.width as usize, self.scale);
        let words: Vec<u32> = self.picture.words().collect();
        let lines = words.chunks_exact(self.picture.size[0]);
        // A window manager may give another size than was asked for.
        for (y, line) in buffer.chunks_exact_mut(columns).enumerate() {
            match lines.clone().nth(y / scale) {
                Some(words) => {
                    line.iter_mut().enumerate().for_each(|(x, to)| *to = words.get(x / scale).copied().unwrap_or(0))
                }
                None => line.fill(0),
            }
        }
        window.pre_present_notify();
        buffer.present().map_err(no_window)?;
        self.shown = Some(Instant::now());
        Ok(())
    }

    fn set_title(&mut self) {
        let (frames, before, since) = self.counted;
        let seconds = since.elapsed().as_secs_f64();
        if seconds < 0.5 {
            return;
        }
        let Some((window, _)) = &self.surface else { return };
        let per_second = (frames - before) as f64 / seconds;
        let paused = if self.paused { ", paused" } else { "" };
        let parameters = self.simulation.parameters();
        window.set_title(&format!(
            "{}: {per_second:.0} frames/s, |r| / |b| {:.1e}, {parameters}{paused}",
            self.program, self.residual
        ));
        self.counted = (frames, frames, Instant::now());
    }

    fn press(&mut self, event: &KeyEvent, events: &ActiveEventLoop) -> Result<()> {
        if event.state != ElementState::Pressed {
            return Ok(());
        }
        match event.logical_key.as_ref() {
            Key::Named(NamedKey::Escape) | Key::Character("q") => events.exit(),
            Key::Named(NamedKey::Space) => self.paused = !self.paused,
            Key::Character("r") => self.simulation.reset()?,
            Key::Character("s") => {
                self.paused = true;
                self.advance()?;
            }
            Key::Character("c") => self.simulation.change(Change::Colours)?,
            Key::Named(NamedKey::ArrowUp) => self.simulation.change(Change::Step(true))?,
            Key::Named(NamedKey::ArrowDown) => self.simulation.change(Change::Step(false))?,
            Key::Named(NamedKey::ArrowRight) => self.simulation.change(Change::Other(true))?,
            Key::Named(NamedKey::ArrowLeft) => self.simulation.change(Change::Other(false))?,
            _ => {}
        }
        Ok(())
    }

    /// Acts on an event. An error ends the loop.
    fn act(&mut self, event: &WindowEvent, events: &ActiveEventLoop) -> Result<()> {
        match event {
            WindowEvent::CloseRequested => events.exit(),
            WindowEvent::KeyboardInput { event, .. } => self.press(event, events)?,
            WindowEvent::CursorMoved { position, .. } => {
                self.pointer = [position.x, position.y].map(|at| at / self.scale as f64);
            }
            WindowEvent::MouseInput { state: ElementState::Pressed, button, .. } => {
                self.drag = Some((self.pointer, *button == MouseButton::Right, true));
            }
            WindowEvent::MouseInput { state: ElementState::Released, .. } => self.drag = None,
            WindowEvent::RedrawRequested => self.paint()?,
            _ => {}
        }
        Ok(())
    }

    /// Does a step, and shows it, between events.
    fn go_on(&mut self, events: &ActiveEventLoop) -> Result<()> {
        if interrupt::came() || self.frames.is_some_and(|frames| self.counted.0 >= frames) {
            events.exit();
            return Ok(());
        }
        if !self.paused {
            self.advance()?;
        }
        self.set_title();
        if self.shown.is_none_or(|shown| shown.elapsed().as_secs_f64() > 1.0 / SHOWN) {
            self.paint()?;
        }
        if self.paused {
            events.set_control_flow(ControlFlow::WaitUntil(Instant::now() + Duration::from_millis(20)));
        } else {
            events.set_control_flow(ControlFlow::Poll);
        }
        Ok(())
    }

    fn end_if_failed(&mut self, outcome: Result<()>, events: &ActiveEventLoop) {
        if let Err(error) = outcome {
            self.outcome = Err(error);
            events.exit();
        }
    }
}

impl ApplicationHandler for View<'_> {
    fn resumed(&mut self, events: &ActiveEventLoop) {
        if self.surface.is_none() {
            let outcome = self.open(events);
            self.end_if_failed(outcome, events);
        }
    }

    fn window_event(&mut self, events: &ActiveEventLoop, _: WindowId, event: WindowEvent) {
        let outcome = self.act(&event, events);
        self.end_if_failed(outcome, events);
    }

    fn about_to_wait(&mut self, events: &ActiveEventLoop) {
        if self.surface.is_none() || events.exiting() {
            return;
        }
        let outcome = self.go_on(events);
        self.end_if_failed(outcome, events);
    }

    fn exiting(&mut self, _: &ActiveEventLoop) {
        // The picture that was shown last, as it was shown.
        if let (Some(save), true, Ok(())) = (self.save, self.shown.is_some(), &self.outcome) {
            self.outcome = self.picture.write(&save.path(0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_name_no_source() {
        let reason = "os error at /root/.cargo/registry/src/winit-0.30/src/platform_impl/linux/mod.rs:765: neither WAYLAND_DISPLAY is set";
        assert_eq!(without_place(reason), "neither WAYLAND_DISPLAY is set");
        assert_eq!(without_place("no display: none"), "no display: none");
    }
}
