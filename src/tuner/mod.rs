//! Finds launch parameters: races of the same work with different ones, in which every answer must have the same bits.
//!
//! A race has rounds. Each contestant runs once a round, so that other load on the machine affects all alike. In
//! each round its time is divided by that of the default; the median of these ratios counts.
//!
//! A contestant replaces the default only if it is faster by more than a band: the largest of 3 %, the spread of
//! the rounds, and the distance of a copy of the default that is raced like the others. Contestants within the band
//! of the fastest are ties. Of these the work-group size nearest to 256 is taken, so that a second run finds the
//! same.

mod problem;

use std::ops::ControlFlow;

use problem::{Contestant, Problem};

use crate::backend;
use crate::device::Device;
use crate::device_info::DeviceKind;
use crate::error::Result;
use crate::number::{Precision, Real};
use crate::tuning::{AccessPattern, Case, Entry, Family, Measured, Settings, SizeClass, largest_power_of_two};

/// Microseconds of a run: long against clocks and launches.
const RUN: f64 = 6000.0;
const ROUNDS: usize = 9;
/// Rounds after which the slow are left out.
const FIRST_ROUNDS: usize = 3;
/// Times of the fastest beyond which one is slow.
const SLOW: f64 = 1.3;
/// Least relative difference that counts.
const BAND: f64 = 0.03;

/// Checksum of the kernels as they would be built: for what was measured with them.
///
/// # Errors
/// [`Error::File`](crate::Error::File) if `RESIDUUM_CL_DIR` names a folder without them.
pub fn kernels_checksum() -> Result<String> {
    backend::tuned_kernels_checksum()
}

/// Result of one case; `entry.measured.partial` is true if the search was stopped early.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Trial {
    /// The best settings and what they rest on.
    pub entry: Entry,
    /// Settings whose answers had other bits than the default's, and how: a fault of the driver. The default itself is among
    /// them if it did not give the same bits twice.
    pub wrong: Vec<(Settings, String)>,
    /// Settings that the driver refused.
    pub refused: Vec<(Settings, String)>,
}

/// Cases that can be tuned on a device, the most used first.
pub fn cases(device: &Device) -> Vec<Case> {
    use AccessPattern::{LongRows, Places, Rays, Rows, ShortVector};
    use Family::{
        Backproject, CgProduct, CgResident, CgUpdate, CgnrBackward, CgnrForward, CgnrResident, Elements, Product,
        Reduce, Scatter, StepProduct, StepResident, StepVectors, Sweep, SweepWaiting, Vector,
    };
    use SizeClass::{Large, Middle, Small};
    let plan: &[(Family, Option<AccessPattern>, &[SizeClass])] = &[
        (CgProduct, Some(Rows), &[Large, Middle]),
        (CgUpdate, None, &[Large, Middle]),
        (CgResident, Some(Rows), &[Small]),
        (CgnrResident, Some(Rows), &[Middle]),
        (CgnrForward, Some(Rows), &[Middle]),
        (CgnrBackward, Some(Rows), &[Small]),
        (Product, Some(Rows), &[Large, Middle, Small]),
        (StepProduct, Some(Rows), &[Large, Middle]),
        (StepVectors, None, &[Large, Middle, Small]),
        (StepResident, Some(Rows), &[Small]),
        (CgProduct, Some(Places), &[Large, Middle]),
        (Vector, None, &[Large, Middle, Small]),
        (Reduce, None, &[Large, Middle, Small]),
        (Product, Some(LongRows), &[Middle, Small]),
        (Product, Some(ShortVector), &[Large, Middle]),
        (Product, Some(Places), &[Large, Middle]),
        (Product, Some(Rays), &[Middle]),
        (Backproject, None, &[Middle]),
        (Scatter, None, &[Middle]),
        (Sweep, None, &[Middle]),
        (SweepWaiting, None, &[Middle]),
        (Elements, None, &[Middle]),
        (CgProduct, Some(Rows), &[Small]),
        (CgUpdate, None, &[Small]),
    ];
    let info = device.info();
    let mut cases = Vec::new();
    for (family, reading, sizes) in plan {
        for size in *sizes {
            for precision in [Precision::Double, Precision::Single] {
                let able = (precision == Precision::Single || info.fp64)
                    && (*family != Scatter || precision == Precision::Single || info.int64_atomics)
                    && (*reading != Some(ShortVector)
                        || device.tuning().may_stage(problem::SHORT_VECTOR * precision.bytes(), info))
                    // One group that does all is for systems smaller than these.
                    && (!matches!(family, CgResident | CgnrResident | StepResident | SweepWaiting)
                        || info.resident_groups > 1);
                let case = Case { family: *family, reading: *reading, precision, size: *size };
                let varied = || KNOBS.iter().any(|knob| !knob.values(device, case, Settings::default()).is_empty());
                if able && varied() {
                    cases.push(case);
                }
            }
        }
    }
    cases
}

/// Parameters that are varied, one after the other, the others left at their best.
#[derive(Clone, Copy, Debug)]
enum Knob {
    WorkGroup,
    Groups,
    Loads,
    Registers,
    Staged,
}

const KNOBS: [Knob; 5] = [Knob::Staged, Knob::WorkGroup, Knob::Groups, Knob::Loads, Knob::Registers];

impl Knob {
    fn name(self) -> &'static str {
        match self {
            Self::WorkGroup => "work-group sizes",
            Self::Groups => "groups for each compute unit",
            Self::Loads => "loads under way",
            Self::Registers => "registers",
            Self::Staged => "vector in local memory",
        }
    }

    /// Values that are worth trying beside `best`; none if they cannot matter.
    fn values(self, device: &Device, case: Case, best: Settings) -> Vec<Settings> {
        let (info, family) = (device.info(), case.family);
        // If a driver cannot be trusted with barriers, kernels that have some run with one item whatever is set; and one
        // item alone runs the plain loop, without loads side by side.
        let many = info.kind != DeviceKind::Host && (info.single_items.is_none() || family == Family::Vector);
        let largest = largest_power_of_two(info.max_work_group.min(1024));
        let smallest = if info.kind == DeviceKind::Gpu { 32 } else { info.least_work_group };
        match self {
            Self::WorkGroup if many => (0..=10)
                .map(|power| 1 << power)
                .filter(|size| (smallest..=largest).contains(size))
                .map(|size| Settings { work_group: Some(size), ..best })
                .collect(),
            Self::Groups if family.shares() && info.kind != DeviceKind::Host => {
                [1, 2, 4, 8, 16, 32, 64].map(|n| Settings { groups_per_unit: Some(n), ..best }).into()
            }
            Self::Loads if many && family.multiplies() => {
                [4, 6, 8, 12, 16].map(|n| Settings { loads: Some(n), ..best }).into()
            }
            Self::Registers if many && family.multiplies() && info.resident_groups > 1 => {
                [0, 40, 64, 128].map(|n| Settings { registers: Some(n), ..best }).into()
            }
            Self::Staged if many && case.reading == Some(AccessPattern::ShortVector) => {
                vec![Settings { staged: Some(false), ..best }]
            }
            _ => Vec::new(),
        }
    }
}

/// Called before each run of a search with what is being tried; `Break` ends the search.
pub type Watch<'a> = dyn FnMut(&str) -> ControlFlow<()> + 'a;

/// Finds the best settings for a case. `watch` hears what is being tried, and may end the search after a run: then the entry has the best
/// settings of the races that were held, and is marked as partial; without a race of a few rounds there is none.
///
/// Cost: builds some ten to twenty variants of a kernel file, and runs each for some tenths of a second.
///
/// # Errors
/// Failure of the default settings; other settings may fail.
pub fn tune(device: &Device, case: Case, watch: &mut Watch<'_>) -> Result<Option<Trial>> {
    match case.precision {
        Precision::Single => tune_in::<f32>(device, case, watch),
        Precision::Double => tune_in::<f64>(device, case, watch),
    }
}

fn tune_in<T: Real>(device: &Device, case: Case, watch: &mut Watch<'_>) -> Result<Option<Trial>> {
    if watch("set-up").is_break() {
        return Ok(None);
    }
    let device = device.with_rules();
    let (problem, words) = Problem::<T>::new(&case, &device)?;
    let mut search = Search { device: &device, case, problem, calls: 0, wrong: Vec::new(), refused: Vec::new() };
    if watch("default").is_break() {
        return Ok(None);
    }
    search.calibrate()?;
    let mut found = Found::default();
    search.vary(&mut found, watch)?;
    if !found.partial {
        search.confirm(&mut found, watch)?;
    }
    let Found { best, mut ties, band, curve, times, partial } = found;
    let Some([default_us, tuned_us]) = times else { return Ok(None) };
    ties.retain(|tie| *tie != best);
    ties.sort_by_key(ToString::to_string);
    ties.dedup();
    let info = device.info();
    Ok(Some(Trial {
        entry: Entry {
            device: info.name.clone(),
            platform: info.platform.clone(),
            driver: info.driver.clone(),
            case,
            set: best,
            measured: Some(Measured {
                problem: words,
                default_us: rounded(default_us),
                tuned_us: rounded(tuned_us),
                band: rounded(band.max(BAND)),
                ties: ties.iter().map(ToString::to_string).collect(),
                curve: curve.into_iter().map(|(items, us)| (items, rounded(us))).collect(),
                kernels: kernels_checksum()?,
                partial,
            }),
            others: toml::Table::new(),
        },
        wrong: search.wrong,
        refused: search.refused,
    }))
}

/// Result of a search so far.
#[derive(Default)]
struct Found {
    best: Settings,
    ties: Vec<Settings>,
    /// Relative difference below which times were called a tie.
    band: f64,
    /// Work-group sizes, and microseconds with each.
    curve: Vec<(usize, f64)>,
    /// Microseconds of the default and of the best, in the last race.
    times: Option<[f64; 2]>,
    /// True if the search was ended early.
    partial: bool,
}

/// Result of one contestant of a race.
#[derive(Clone, Copy, Debug)]
struct Standing {
    settings: Settings,
    microseconds: f64,
    /// Time relative to the default's, the median over the rounds.
    ratio: f64,
    /// By how much that may be off.
    noise: f64,
}

struct Search<'d, T: Real> {
    device: &'d Device,
    case: Case,
    problem: Problem<T>,
    /// Calls or iterations of a run.
    calls: usize,
    wrong: Vec<(Settings, String)>,
    refused: Vec<(Settings, String)>,
}

impl<T: Real> Search<'_, T> {
    /// Finds out how many calls take long enough.
    fn calibrate(&mut self) -> Result<()> {
        let few = 3;
        let devices = [self.device.clone()];
        let us = self.problem.race(&devices, few, &mut |contestants| {
            contestants[0].time(few)?;
            contestants[0].time(few)
        })?;
        let most = if self.problem.iterates() { 300 } else { 2000 };
        self.calls = ((RUN / us.max(0.1)) as usize).clamp(few, most);
        Ok(())
    }

    /// Varies one parameter after the other, the others left at their best.
    fn vary(&mut self, found: &mut Found, watch: &mut Watch<'_>) -> Result<()> {
        for knob in KNOBS {
            let stage = knob.values(self.device, self.case, found.best);
            if stage.is_empty() {
                continue;
            }
            let settings = [&[found.best][..], &stage].concat();
            let Some((race, whole)) = self.race(&settings, ROUNDS, &mut || watch(knob.name()))? else {
                found.partial = true;
                return Ok(());
            };
            if let Knob::WorkGroup = knob {
                found.curve =
                    race.iter().filter_map(|one| Some((one.settings.work_group?, one.microseconds))).collect();
            }
            let (winner, more, wider) = choose(&race, found.best);
            found.best = winner.settings;
            found.times = Some([race[0].microseconds, winner.microseconds]);
            found.band = found.band.max(wider);
            found.ties.extend(more);
            if !whole {
                found.partial = true;
                return Ok(());
            }
        }
        Ok(())
    }

    /// Races the best once more, alone against the default: the best of many wins by luck in part.
    fn confirm(&mut self, found: &mut Found, watch: &mut Watch<'_>) -> Result<()> {
        let Some((last, whole)) = self.race(&[found.best], 2 * ROUNDS, &mut || watch("once more"))? else {
            found.partial = true;
            return Ok(());
        };
        let (mut winner, more, wider) = choose(&last, Settings::default());
        found.ties.extend(more);
        found.ties.push(found.best);
        found.band = found.band.max(wider).max(BAND);
        if winner.ratio > 1.0 - found.band {
            winner = last[0];
        }
        found.best = winner.settings;
        found.times = Some([last[0].microseconds, winner.microseconds]);
        found.partial = !whole;
        Ok(())
    }

    /// Races `settings` against the default, which comes first in what is returned, and against its twin, which is not.
    /// Wrong and refused ones are left out. Also tells if all rounds were held: `go_on` may end it, and without a few rounds there is no
    /// result.
    fn race(
        &mut self,
        settings: &[Settings],
        rounds: usize,
        go_on: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Option<(Vec<Standing>, bool)>> {
        let mut all = vec![Settings::default()];
        for one in settings.iter().filter(|one| **one != Settings::default()) {
            let known = self.wrong.iter().chain(&self.refused).any(|(other, _)| other == one);
            if !known && !all.contains(one) {
                all.push(*one);
            }
        }
        all.push(Settings::default());
        let devices: Vec<Device> =
            all.iter().map(|one| self.device.with_settings(self.case, *one, "trial")).collect::<Result<_>>()?;
        let calls = self.calls;
        let (wrong, refused) = (&mut self.wrong, &mut self.refused);
        self.problem.race(&devices, calls, &mut |contestants| {
            let mut runs: Vec<Races> = Vec::new();
            let mut wanted = Vec::new();
            for (k, contestant) in contestants.iter_mut().enumerate() {
                // The first run of each builds its kernels, which may take seconds.
                if go_on().is_break() {
                    return Ok(None);
                }
                // The default and its twin are the measure of the others.
                let twin = k + 1 == all.len();
                let stays = k == 0 || twin;
                match contestant.time(calls).and_then(|_| contestant.answer()) {
                    Ok(answer) if k == 0 => wanted = answer,
                    Ok(answer) if answer == wanted => {}
                    Ok(answer) => {
                        let off = answer.iter().zip(&wanted).filter(|(a, b)| a != b).count();
                        let how = format!("{off} of {} numbers differ", wanted.len());
                        if !twin {
                            wrong.push((all[k], how));
                        } else if wrong.iter().all(|(other, _)| *other != all[k]) {
                            wrong.push((all[k], format!("the same launches give two answers: {how}")));
                        }
                        continue;
                    }
                    Err(error) if stays => return Err(error),
                    Err(error) => {
                        refused.push((all[k], error.to_string()));
                        continue;
                    }
                }
                runs.push(Races { contestant: k, times: Vec::new(), stays });
            }
            let held = hold(contestants, &mut runs, (calls, rounds), go_on)?;
            Ok((held >= FIRST_ROUNDS.min(rounds)).then(|| (standings(&all, &runs), held == rounds)))
        })
    }
}

/// Times of one contestant, round by round.
struct Races {
    contestant: usize,
    times: Vec<f64>,
    /// True if it runs in every round, however slow.
    stays: bool,
}

/// The rounds of a race. After the first few the slow are left out, whose times are known well enough. Returns the rounds that
/// were held to their end; `go_on` may end them.
fn hold(
    contestants: &mut [Box<dyn Contestant + '_>],
    runs: &mut [Races],
    (calls, rounds): (usize, usize),
    go_on: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<usize> {
    for round in 0..rounds {
        let fastest = runs.iter().map(|run| median(&run.times)).fold(f64::INFINITY, f64::min);
        let count = runs.len();
        for turn in 0..count {
            // Another begins each time.
            let at = (round + turn) % count;
            // A contestant that has left stays away: rounds are compared with the default's in order.
            let left = runs[at].times.len() < round;
            let slow = round >= FIRST_ROUNDS && median(&runs[at].times) > SLOW * fastest;
            if !runs[at].stays && (left || slow) {
                continue;
            }
            if go_on().is_break() {
                return Ok(round);
            }
            let time = contestants[runs[at].contestant].time(calls)?;
            runs[at].times.push(time);
        }
    }
    Ok(rounds)
}

/// Results of those that ran; the last of `all` is the twin of the first.
fn standings(all: &[Settings], runs: &[Races]) -> Vec<Standing> {
    let default = &runs[0].times;
    let twin = all.len() - 1;
    let mut found: Vec<Standing> = runs
        .iter()
        .map(|run| {
            let ratios: Vec<f64> = run.times.iter().zip(default).map(|(time, default)| time / default).collect();
            let ratio = median(&ratios);
            let off: Vec<f64> = ratios.iter().map(|one| (one - ratio).abs()).collect();
            // Three standard errors of a median of normal numbers, from their median deviation.
            let noise = 3.0 * 1.4826 * 1.2533 * median(&off) / (ratios.len().max(1) as f64).sqrt();
            Standing { settings: all[run.contestant], microseconds: ratio * median(default), ratio, noise }
        })
        .collect();
    if runs.last().is_some_and(|run| run.contestant == twin)
        && let Some(same) = found.pop()
    {
        // A difference as large as that of equal launches is noise.
        let least = (same.ratio - 1.0).abs();
        found.iter_mut().for_each(|one| one.noise = one.noise.max(least));
    }
    found
}

/// The setting in words for people.
fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::INFINITY)
}

/// The winner of a race, those as good, and the band within which that was said; `holder` keeps its place if it is as good.
fn choose(race: &[Standing], holder: Settings) -> (Standing, Vec<Settings>, f64) {
    let away = |one: &&&Standing| {
        let size = one.settings.work_group.unwrap_or(256).max(1);
        ((size.ilog2() as i32 - 8).abs(), size)
    };
    let fastest = race.iter().min_by(|a, b| a.ratio.total_cmp(&b.ratio)).unwrap_or(&race[0]);
    let band = fastest.noise.max(BAND);
    let good: Vec<&Standing> = race.iter().filter(|one| one.ratio <= fastest.ratio + band).collect();
    let held = good.iter().find(|one| one.settings == holder);
    let winner = **held.or(good.iter().min_by_key(away)).unwrap_or(&fastest);
    let ties = good.iter().map(|one| one.settings).filter(|settings| *settings != winner.settings);
    (winner, ties.collect(), band)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(work_group: Option<usize>, ratio: f64, noise: f64) -> Standing {
        let settings = Settings { work_group, ..Settings::default() };
        Standing { settings, microseconds: 10.0 * ratio, ratio, noise }
    }

    #[test]
    fn the_default_stays_unless_it_is_clearly_beaten() {
        let none = Settings::default();
        let race = [standing(None, 1.0, 0.0), standing(Some(64), 0.985, 0.001), standing(Some(512), 1.4, 0.001)];
        let (winner, ties, band) = choose(&race, none);
        assert_eq!((winner.settings.work_group, band), (None, BAND));
        assert_eq!(ties, [Settings { work_group: Some(64), ..Settings::default() }]);
        // Noise widens the band.
        let (winner, _, band) = choose(&[standing(None, 1.0, 0.0), standing(Some(64), 0.9, 0.11)], none);
        assert_eq!((winner.settings.work_group, band), (None, 0.11));
        let (winner, ties, _) = choose(&[standing(None, 1.0, 0.0), standing(Some(64), 0.9, 0.01)], none);
        assert_eq!((winner.settings.work_group, ties.len()), (Some(64), 0));
    }

    #[test]
    fn among_ties_the_choice_is_the_same_every_time() {
        let race = |fast: usize| -> Vec<Standing> {
            let ratio = |size: usize| if size == fast { 0.80 } else { 0.81 };
            let mut all = vec![standing(None, 1.0, 0.0)];
            all.extend([64, 128, 512, 1024].map(|size| standing(Some(size), ratio(size), 0.001)));
            all
        };
        for fast in [64, 128, 512, 1024] {
            let (winner, ties, _) = choose(&race(fast), Settings::default());
            assert_eq!((winner.settings.work_group, ties.len()), (Some(128), 3), "{fast} was fastest");
        }
    }

    #[test]
    fn rounds_are_compared_with_the_default_of_the_same_round() {
        // The machine slows down by a factor of 4 while the race is held; one is 10 % faster all the time.
        let slower = [1.0, 1.5, 2.0, 3.0, 4.0];
        let runs = [
            (0, slower.map(|s| 10.0 * s).to_vec()),
            (1, slower.map(|s| 9.0 * s).to_vec()),
            (2, slower.map(|s| 10.0 * s).to_vec()),
        ]
        .map(|(contestant, times)| Races { contestant, times, stays: true });
        let one = Settings { work_group: Some(32), ..Settings::default() };
        let all = [Settings::default(), one, Settings::default()];
        let found = standings(&all, &runs);
        assert!((found[1].ratio - 0.9).abs() < 1e-12 && found[1].noise < 1e-12, "{found:?}");
        assert!((found[1].microseconds - 18.0).abs() < 1e-12);
        // Without the twin, which ran and is not among those found.
        assert_eq!(found.len(), 2);
    }

    /// Takes so long as it is told.
    struct Steady(f64);

    impl Contestant for Steady {
        fn time(&mut self, _: usize) -> Result<f64> {
            Ok(self.0)
        }
        fn answer(&self) -> Result<Vec<u64>> {
            Ok(Vec::new())
        }
    }

    #[test]
    fn the_slow_leave_but_not_the_default_or_its_twin() {
        let times = [20.0, 10.0, 12.0, 14.0, 20.0];
        let mut contestants: Vec<Box<dyn Contestant>> =
            times.iter().map(|time| Box::new(Steady(*time)) as Box<dyn Contestant>).collect();
        let mut runs: Vec<Races> =
            (0..5).map(|k| Races { contestant: k, times: Vec::new(), stays: k == 0 || k == 4 }).collect();
        let go_on = &mut || ControlFlow::Continue(());
        assert_eq!(hold(&mut contestants, &mut runs, (1, ROUNDS), go_on).expect("no errors"), ROUNDS);
        let rounds: Vec<usize> = runs.iter().map(|run| run.times.len()).collect();
        assert_eq!(rounds, [ROUNDS, ROUNDS, ROUNDS, FIRST_ROUNDS, ROUNDS]);
        // It ends where it is told to.
        let mut runs: Vec<Races> =
            (0..5).map(|k| Races { contestant: k, times: Vec::new(), stays: true }).collect();
        let mut left = 17;
        let go_on = &mut || {
            left -= 1;
            if left < 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        assert_eq!(hold(&mut contestants, &mut runs, (1, ROUNDS), go_on).expect("no errors"), 3);
        assert_eq!(runs.iter().map(|run| run.times.len()).sum::<usize>(), 17);
    }

    #[test]
    fn what_the_default_differs_from_its_twin_is_no_gain() {
        let run = |contestant, time| Races { contestant, times: vec![time; 9], stays: true };
        let one = Settings { work_group: Some(32), ..Settings::default() };
        let all = [Settings::default(), one, Settings::default()];
        let winner = |twin| {
            let found = standings(&all, &[run(0, 10.0), run(1, 9.2), run(2, twin)]);
            choose(&found, Settings::default()).0.settings
        };
        assert_eq!(winner(10.1), one);
        assert_eq!(winner(9.1), Settings::default());
        assert_eq!(winner(10.9), Settings::default());
        // If the twin could not run, the rounds alone decide.
        let found = standings(&all, &[run(0, 10.0), run(1, 9.2)]);
        assert_eq!((found.len(), found[1].noise), (2, 0.0));
    }
}
