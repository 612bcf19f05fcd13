//! Frames on disk: a file for each, or one animated picture.

use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, available_parallelism, spawn};

use residuum::{Result, io};

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
    /// [`residuum::Error::Option`] for another ending than that of PNG, or for a `%` that stands for no number.
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

    /// Files of the first `count` frames that exist.
    pub fn existing(&self, count: usize) -> Vec<PathBuf> {
        let Self::Files(before, _, behind) = self else { return vec![self.path(0)] };
        if behind.contains(std::path::is_separator) {
            // A folder for each frame.
            return (0..count).map(|k| self.path(k)).take_while(|path| path.exists()).collect();
        }
        let folder = before.rfind(std::path::is_separator).map_or(".", |at| &before[..=at]);
        let Ok(files) = std::fs::read_dir(folder) else { return Vec::new() };
        let frames = files.flatten().filter_map(|file| self.frame_named(&file.file_name().to_string_lossy()));
        frames.filter(|frame| *frame < count).map(|frame| self.path(frame)).collect()
    }

    /// The frame whose file has this name, whatever its folder.
    fn frame_named(&self, name: &str) -> Option<usize> {
        let Self::Files(before, _, behind) = self else { return None };
        let start = before.rsplit(std::path::is_separator).next()?;
        let frame: usize = name.strip_prefix(start)?.strip_suffix(&**behind)?.parse().ok()?;
        // The number may be written in other digits.
        (self.path(frame).file_name()?.to_string_lossy() == name).then_some(frame)
    }

    /// Tells if one of the first `count` frames goes to `path`, which need not exist.
    pub fn writes(&self, path: &Path, count: usize) -> bool {
        let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        let frame = self.frame_named(&name).filter(|frame| *frame < count);
        frame.is_some_and(|frame| io::same_file(&self.path(frame), path)) || io::same_file(&self.path(0), path)
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
    /// Begins to write up to `count` frames, which an animated picture shows for `delay` milliseconds each. A film grows
    /// in a temporary file, which takes its place in the end.
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

/// Frames that were taken are written, also after a failure elsewhere.
impl Drop for Film {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            log::warn!("frames are lost: {error}");
        }
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

/// Sets `encoder` up for a film of `count` frames.
fn animate<W: Write>(encoder: &mut png::Encoder<'_, W>, count: u32, delay: u16) -> std::io::Result<()> {
    encoder.set_animated(count, 0).and_then(|()| encoder.set_frame_delay(delay, 1000)).map_err(other)
}

fn other(error: png::EncodingError) -> std::io::Error {
    match error {
        png::EncodingError::IoError(error) => error,
        error => std::io::Error::other(error),
    }
}

/// Writes an animated picture of `count` frames, or of those that came, each as it comes.
fn write_film(queue: &Mutex<Receiver<(usize, Picture)>>, path: &Path, count: usize, delay: u16) -> Result<()> {
    let Some((_, first)) = next(queue) else { return Ok(()) };
    let planned = count.clamp(1, MOST_FRAMES) as u32;
    io::write_file_atomically(path, |file| {
        let mut encoder = first.encoder(&mut *file, png::Compression::High);
        if planned > 1 {
            animate(&mut encoder, planned, delay)?;
        }
        let mut writer = encoder.write_header().map_err(other)?;
        writer.write_image_data(&first.pixels).map_err(other)?;
        let mut written = 1;
        while written < planned
            && let Some((_, frame)) = next(queue)
        {
            writer.write_image_data(&frame.pixels).map_err(other)?;
            written += 1;
        }
        writer.finish().map_err(other)?;
        if written == planned {
            return Ok(());
        }
        // The number of frames stands before them, so the beginning is written again.
        let mut head = Vec::new();
        let mut encoder = first.encoder(&mut head, png::Compression::High);
        animate(&mut encoder, written, delay)?;
        drop(encoder.write_header().map_err(other)?);
        // The writer adds the end of a picture when it is dropped.
        head.truncate(head.len().saturating_sub(END));
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&head)
    })
}

/// Bytes of the chunk that ends a PNG.
const END: usize = 12;

/// Most frames of an animated PNG.
const MOST_FRAMES: usize = 0x7fff_ffff;

/// Most bytes of the pixels of a film, before they are compressed.
const MOST_BYTES: u128 = 1 << 36;

/// Fails before the work on a film that nobody could keep.
///
/// # Errors
/// [`residuum::Error::Option`] for more than 2^31 - 1 frames, or more than 64 GiB of pixels.
pub fn check_film(target: &Target, [width, height]: [usize; 2], frames: usize) -> Result<()> {
    let Target::Film(path) = target else { return Ok(()) };
    let bytes = width as u128 * height as u128 * frames as u128;
    if bytes <= MOST_BYTES && frames <= MOST_FRAMES {
        return Ok(());
    }
    let gib = bytes as f64 / f64::from(1 << 30);
    Err(option(
        "save",
        format!(
            "{} would have {frames} frames of {width} x {height} pixels, {gib:.0} GiB before they are compressed: a film may have 64 GiB. Name fewer --frames, \
             a larger --every, or a smaller picture",
            path.display()
        ),
    ))
}

#[cfg(test)]
mod tests {
    use residuum::Error;

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
    fn files_that_frames_would_replace_are_found() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["in-3.png", "in-03.png", "in-12.png", "in-x.png", "in-3.pngx", "other-3.png"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let found = |pattern: &str, count| {
            let mut names: Vec<String> = Target::named(&folder.path().join(pattern))
                .unwrap()
                .existing(count)
                .into_iter()
                .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
                .collect();
            names.sort();
            names
        };
        assert_eq!(found("in-%d.png", 20), ["in-12.png", "in-3.png"]);
        assert_eq!(found("in-%d.png", 12), ["in-3.png"]);
        assert_eq!(found("in-%02d.png", 12), ["in-03.png"]);
        assert_eq!(found("none/in-%02d.png", 12), Vec::<String>::new());
        let target = Target::named(&folder.path().join("in-%d.png")).unwrap();
        let writes = |name: &str| target.writes(&folder.path().join(name), 10);
        assert!(writes("in-9.png") && writes("../") == writes("x") && !writes("in-10.png") && !writes("in-09.png"));
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
        // Fewer frames than were planned make a whole film, too.
        for (planned, came) in [(7, 3), (7, 1), (7, 0), (1, 1)] {
            let path = folder.path().join(format!("{planned}-{came}.png"));
            let mut film = Film::new(&Target::Film(path.clone()), planned, 40);
            for (k, frame) in frames.iter().take(came).enumerate() {
                film.add(k, frame.clone()).unwrap();
            }
            drop(film);
            assert_eq!(path.exists(), came > 0);
            if came == 0 {
                continue;
            }
            let file = std::io::BufReader::new(std::fs::File::open(&path).unwrap());
            let mut reader = png::Decoder::new(file).read_info().unwrap();
            let animation = reader.info().animation_control().map(|control| control.num_frames as usize);
            assert_eq!(animation, (planned > 1).then_some(came));
            let mut data = vec![0; reader.output_buffer_size().unwrap()];
            for frame in &frames[..came] {
                reader.next_frame(&mut data).unwrap();
                assert_eq!(data, frame.pixels);
            }
            reader.finish().unwrap();
        }
        let film = Target::Film("film.png".into());
        assert!(check_film(&film, [4096; 2], 4096).is_ok());
        for (size, count) in [([4096; 2], 4097), ([1; 2], 1 << 31), ([65536, 32768], usize::MAX)] {
            assert!(matches!(check_film(&film, size, count), Err(Error::Option { name: "save", .. })), "{size:?}");
        }
        let nowhere = Target::named(&folder.path().join("none/%d.png")).unwrap();
        let mut film = Film::new(&nowhere, 7, 40);
        let failed =
            frames.iter().cycle().take(500).enumerate().find_map(|(k, frame)| film.add(k, frame.clone()).err());
        assert!(failed.is_some() || film.finish().is_err());
    }
}
