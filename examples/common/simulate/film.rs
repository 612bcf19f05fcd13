//! Frames on disk: a file for each, or one animated picture.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, available_parallelism, spawn};

use residuum::{Error, Result, io};

use super::picture::Picture;
use crate::{check_ending, option};

/// Destination of the frames.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// A file for each, with the number of the frame between two parts of the name, in so many digits.
    Files(String, usize, String),
    /// One animated picture; a still one if there is one frame.
    Film(PathBuf),
}

impl Target {
    /// The target that a path names: one with `%d` or `%04d` in it stands for many files.
    ///
    /// # Errors
    /// [`Error::Option`] for another ending than that of PNG, or for a `%` that stands for no number.
    pub fn named(path: &Path) -> Result<Self> {
        check_ending("save", path, &["png"])?;
        let text = path.to_string_lossy();
        let Some((before, rest)) = text.split_once('%') else { return Ok(Self::Film(path.into())) };
        let wrong = || option("save", format!("'{text}': a file for each frame is named like frame-%04d.png"));
        let (digits, behind) = rest.split_once('d').ok_or_else(wrong)?;
        let padded = digits.is_empty() || digits.starts_with('0') && digits.len() == 2;
        let digits = if padded {
            digits.parse::<usize>().or(if digits.is_empty() { Ok(1) } else { Err(()) })
        } else {
            Err(())
        };
        if behind.contains('%') {
            return Err(wrong());
        }
        Ok(Self::Files(before.into(), digits.map_err(|()| wrong())?, behind.into()))
    }

    /// The file of a frame.
    pub fn path(&self, frame: usize) -> PathBuf {
        match self {
            Self::Files(before, digits, behind) => format!("{before}{frame:0digits$}{behind}").into(),
            Self::Film(path) => path.clone(),
        }
    }
}

/// Numbered pictures on their way to a thread.
type Frames = SyncSender<(usize, Picture)>;

/// Threads that write frames while the simulation goes on.
pub struct Film {
    frames: Option<Frames>,
    writers: Vec<JoinHandle<Result<()>>>,
}

impl Film {
    /// Begins to write up to `count` frames, which an animated picture shows for `delay` milliseconds each. A film is held in memory until it is complete.
    pub fn new(target: &Target, count: usize, delay: u16) -> Self {
        let threads = match target {
            Target::Files(..) => available_parallelism().map_or(1, |n| n.get()).min(16),
            Target::Film(_) => 1,
        };
        let (frames, queue) = sync_channel(2 * threads);
        let queue = Arc::new(Mutex::new(queue));
        let writer = |_| {
            let (queue, target) = (queue.clone(), target.clone());
            spawn(move || match &target {
                Target::Files(..) => write_files(&queue, &target),
                Target::Film(path) => write_film(&queue, path, count, delay),
            })
        };
        Self { frames: Some(frames), writers: (0..threads).map(writer).collect() }
    }

    /// Takes a frame. Waits if the writers are behind.
    ///
    /// # Errors
    /// What a writer failed with.
    pub fn add(&mut self, frame: usize, picture: Picture) -> Result<()> {
        // Nobody takes a frame after the last writer failed; which says with what.
        match &self.frames {
            Some(frames) if frames.send((frame, picture)).is_ok() => Ok(()),
            _ => self.end(),
        }
    }

    /// Waits until all is written.
    ///
    /// # Errors
    /// The first failure.
    pub fn finish(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        self.frames = None;
        let outcomes = self.writers.drain(..).map(|writer| match writer.join() {
            Ok(outcome) => outcome,
            Err(_) => Err(option("save", "a writer came to an unexpected end")),
        });
        // All of them, so that none goes on.
        outcomes.collect::<Vec<_>>().into_iter().collect()
    }
}

fn next(queue: &Mutex<Receiver<(usize, Picture)>>) -> Option<(usize, Picture)> {
    queue.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

fn write_files(queue: &Mutex<Receiver<(usize, Picture)>>, target: &Target) -> Result<()> {
    while let Some((frame, picture)) = next(queue) {
        picture.write(&target.path(frame))?;
    }
    Ok(())
}

/// Writes an animated picture of `count` frames, or of those that came.
fn write_film(queue: &Mutex<Receiver<(usize, Picture)>>, path: &Path, count: usize, delay: u16) -> Result<()> {
    let Some((_, first)) = next(queue) else { return Ok(()) };
    let failed = |error: png::EncodingError| Error::File { path: path.into(), reason: error.to_string() };
    let mut rest =
        std::iter::once(first.clone()).chain(std::iter::from_fn(|| next(queue).map(|(_, picture)| picture)));
    let frames: Vec<Picture> = rest.by_ref().take(count.max(1)).collect();
    let mut bytes = Vec::new();
    {
        let mut encoder = first.encoder(&mut bytes, png::Compression::High);
        if frames.len() > 1 {
            encoder.set_animated(frames.len() as u32, 0).map_err(failed)?;
            encoder.set_frame_delay(delay, 1000).map_err(failed)?;
        }
        let mut writer = encoder.write_header().map_err(failed)?;
        for frame in &frames {
            writer.write_image_data(&frame.pixels).map_err(failed)?;
        }
        writer.finish().map_err(failed)?;
    }
    io::write_atomically(path, |file| std::io::Write::write_all(file, &bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::picture::glowing;

    #[test]
    fn names_of_frames() {
        let named = |text: &str| Target::named(Path::new(text));
        assert_eq!(named("a/frame-%04d.png").unwrap().path(12), Path::new("a/frame-0012.png"));
        assert_eq!(named("%d.png").unwrap().path(12), Path::new("12.png"));
        assert_eq!(named("film.png").unwrap(), Target::Film("film.png".into()));
        for bad in ["film.gif", "frame-%s.png", "frame-%4d.png", "%04d-%04d.png", "frame-%123d.png", "100%.png"] {
            assert!(matches!(named(bad), Err(Error::Option { name: "save", .. })), "{bad}");
        }
    }

    #[test]
    fn frames_become_files_or_a_film() {
        let folder = tempfile::tempdir().unwrap();
        let frames: Vec<Picture> = (0..7)
            .map(|k| {
                let mut picture = Picture::new([16, 8], glowing());
                picture.pixels[k] = 200;
                picture
            })
            .collect();
        for name in ["frame-%02d.png", "film.png"] {
            let target = Target::named(&folder.path().join(name)).unwrap();
            let mut film = Film::new(&target, 7, 40);
            for (k, frame) in frames.iter().enumerate() {
                film.add(k, frame.clone()).unwrap();
            }
            film.finish().unwrap();
            let files = if let Target::Film(_) = target { 1 } else { 7 };
            for k in 0..files {
                let file = std::io::BufReader::new(std::fs::File::open(target.path(k)).unwrap());
                let mut reader = png::Decoder::new(file).read_info().unwrap();
                let count = reader.info().animation_control().map_or(1, |control| control.num_frames);
                assert_eq!(count as usize, 7 / files);
                let mut data = vec![0; reader.output_buffer_size().unwrap()];
                for frame in &frames[k..k + count as usize] {
                    reader.next_frame(&mut data).unwrap();
                    assert_eq!(data, frame.pixels);
                }
            }
        }
        let nowhere = Target::named(&folder.path().join("none/%d.png")).unwrap();
        let mut film = Film::new(&nowhere, 7, 40);
        let failed =
            frames.iter().cycle().take(500).enumerate().find_map(|(k, frame)| film.add(k, frame.clone()).err());
        assert!(failed.is_some() || film.finish().is_err());
    }
}
