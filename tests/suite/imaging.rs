//! Reconstructors: frame after frame without new buffers or programs, the bits of a fresh one each time, and honest refusals.

use std::sync::{Arc, Mutex};

use crate::common::penalty::Edges;
use crate::common::problems::essence;
use crate::common::{self, each_case, noise};
use residuum::imaging::{
    Beam, Disc, Doubt, Ellipse, Filter, Flip, Geometry, Noise, Phantom, Reconstruction, Reconstructor, Region,
    Regularizer, Scan, Scanner, System, read_reference,
};
use residuum::operator::{LinearOperator, adjoint_error};
use residuum::{
    Accumulation, Error, Format, Method, Precision, Real, SharedPenalty, Stop, Vector, WeightRule, measure,
};

/// The plate in the field `[-1, 1]²`, brighter by `factor` for each frame.
fn scan(pixels: usize, factor: f64) -> Scan {
    let scanner = Scanner {
        beam: Beam::Fan { source_origin: 5.0, source_detector: 8.0 },
        pixels,
        pitch: 3.0 / pixels as f64,
        offset: 0.0,
        angles: (0..40).map(|k| 9.0 * f64::from(k)).collect(),
    };
    let noise = Noise { photons: 2e5, gain: 0.003, seed: 2009 };
    let mut scan = Phantom::plate().scan(&scanner, 2.0, noise).unwrap().with_field(2.0);
    scan.sinogram.iter_mut().for_each(|v| *v *= factor);
    scan
}

fn how<T: Real>() -> Reconstruction {
    let how = Reconstruction::of_scans::<T>();
    let stopping = how.stopping.clone().with_max_iterations(30);
    how.with_stopping(stopping)
}

/// PDHG with everything it keeps and minimises, within the disc of a scan.
fn exact<T: Real>(scan: &Scan, side: usize) -> Reconstruction {
    let direction = Regularizer::Directional { weight: 0.02, degrees: scan.scanner.middle() };
    how::<T>()
        .with_method(Method::Pdhg)
        .with_regularizers(vec![Regularizer::TotalVariation(0.05), direction, Regularizer::Tikhonov(1e-4)])
        .with_upper(1.0)
        .with_support(Disc::of_shadow(scan).unwrap().pixels(scan.grid(side)))
}

/// CGNR from a filtered back-projection.
fn continued<T: Real>() -> Reconstruction {
    how::<T>().with_start(Filter::Hann)
}

/// FISTA within bounds.
fn projected<T: Real>() -> Reconstruction {
    how::<T>().with_method(Method::Fista).with_regularizers(vec![]).with_upper(1.0)
}

fn frames<T: Real>(device: &residuum::Device) {
    let scans = [scan(48, 1.0), scan(48, 2.5), scan(48, 0.3)];
    for (format, images, how) in [
        (Format::Csr, 1, how::<T>()),
        (Format::Csr, 2, how::<T>()),
        (Format::OnTheFly, 1, how::<T>()),
        (Format::Csr, 3, exact::<T>(&scans[0], 32)),
        (Format::OnTheFly, 1, exact::<T>(&scans[0], 32)),
        (Format::Csr, 1, projected::<T>()),
        (Format::Csr, 2, continued::<T>()),
    ] {
        let system = System::<T>::new(device, &scans[0].scanner, scans[0].grid(32), format).unwrap();
        let mut reconstructor = Reconstructor::new(&system, how.clone(), images).unwrap();
        for (k, scan) in scans.iter().enumerate() {
            let given = vec![scan; images];
            let found = reconstructor.reconstruct(&given).unwrap();
            let words =
                format!("frame {k} by {}, {images} at once, {format} on {}", how.method, device.info().name);
            let fresh = Reconstructor::new(&system, how.clone(), images).unwrap().reconstruct(&given).unwrap();
            for (found, fresh) in found.iter().zip(&fresh) {
                assert!(essence(&found.values, &found.report) == essence(&fresh.values, &fresh.report), "{words}");
                let within = |v: &T| (how.lower..=how.upper).contains(&v.to_f64());
                assert!(found.values.iter().all(within), "{words}");
                let outside = how.support.iter().flatten().zip(&found.values).filter(|(within, _)| !**within);
                assert!(outside.map(|(_, v)| v.to_f64()).all(|v| v == 0.0), "{words}");
            }
        }
    }
}

#[test]
fn frames_have_the_bits_of_fresh_reconstructors() {
    each_case::<f32>(frames::<f32>);
}

/// Images by the batch: each has the bits that it has alone, and the observer sees all of them go by.
#[test]
fn any_number_of_images_goes_through_in_batches() {
    for device in common::devices() {
        let scans: Vec<Scan> = (0..7).map(|k| scan(32, 1.0 + 0.3 * f64::from(k))).collect();
        let given: Vec<&Scan> = scans.iter().collect();
        for how in [how::<f32>(), exact::<f32>(&scans[0], 16)] {
            let system = System::<f32>::new(&device, &scans[0].scanner, scans[0].grid(16), Format::Csr).unwrap();
            let mut alone = Reconstructor::new(&system, how.clone(), 1).unwrap();
            for (images, batch) in [(3, 3), (4, 4), (5, 3), (7, 4)] {
                let mut reconstructor = Reconstructor::new(&system, how.clone(), images).unwrap();
                assert_eq!(reconstructor.batch(), batch);
                let most = 30 * images.div_ceil(batch);
                let mut seen = 0;
                let found = reconstructor.reconstruct_observed(&given[..images], &mut |progress| {
                    assert!(progress.iteration >= seen && progress.max_iterations == most, "{progress:?}");
                    seen = progress.iteration;
                    std::ops::ControlFlow::Continue(())
                });
                let found = found.unwrap();
                assert_eq!((found.len(), seen), (images, most), "{} on {}", how.method, device.info().name);
                for (scan, found) in scans.iter().zip(&found) {
                    let wanted = alone.reconstruct(&[scan]).unwrap().remove(0);
                    assert!(essence(&wanted.values, &wanted.report) == essence(&found.values, &found.report));
                }
            }
        }
    }
}

/// A penalty of a user's own goes through in batches as well: the bits of each image alone, and the picture of the library's total
/// variation.
#[test]
fn images_with_a_penalty_of_the_users_own() {
    for device in common::devices_in(Precision::Double) {
        let scans: Vec<Scan> = (0..5).map(|k| scan(32, 1.0 + 0.3 * f64::from(k))).collect();
        let given: Vec<&Scan> = scans.iter().collect();
        let system = System::<f64>::new(&device, &scans[0].scanner, scans[0].grid(16), Format::Csr).unwrap();
        let stopping = how::<f64>().stopping.with_gradient_rtol(1e-10).with_max_iterations(5000);
        let alone = how::<f64>().with_lower(f64::NEG_INFINITY).with_regularizers(vec![]).with_stopping(stopping);
        // Weight and edge of the library's for the first image.
        let brightness = system.brightness(&scans[0].readings::<f64>());
        let terms = [0.05 * system.mean_diagonal() * brightness, 0.01 * brightness];
        let penalty = |columns: usize| -> residuum::Result<SharedPenalty<f64>> {
            Ok(Arc::new(Mutex::new(Edges::new(&device, [16, 16], terms, columns))))
        };
        let set_up = |how: Reconstruction, images| Reconstructor::with_penalty(&system, how, images, penalty);
        let mut one = set_up(alone.clone(), 1).unwrap();
        let found = set_up(alone.clone(), 5).unwrap().reconstruct(&given).unwrap();
        for (scan, found) in scans.iter().zip(&found) {
            let wanted = one.reconstruct(&[scan]).unwrap().remove(0);
            assert!(essence(&wanted.values, &wanted.report) == essence(&found.values, &found.report));
        }
        let ours = alone.clone().with_regularizers(vec![Regularizer::TotalVariation(0.05)]);
        let wanted = Reconstructor::new(&system, ours, 1).unwrap().reconstruct(&given[..1]).unwrap().remove(0);
        let apart = common::distance(&found[0].values, &wanted.values);
        println!("{}, {}, apart {apart:.1e}", found[0].report, wanted.report);
        assert!(apart < 1e-5, "{apart:e} on {}", device.info().name);
        for refused in [
            alone.clone().with_lower(0.0),
            alone.clone().with_upper(2.0),
            alone.clone().with_regularizers(vec![Regularizer::Tikhonov(0.1)]),
            alone.clone().with_weight(WeightRule::LeastError),
            alone.clone().with_support(vec![true; 256]),
            alone.clone().with_method(Method::Fista),
        ] {
            let refused = set_up(refused, 1).map(|_| ());
            assert!(matches!(refused, Err(Error::Conflict { name: "penalty", .. })), "{refused:?}");
        }
    }
}

/// SART within bounds.
fn ordered<T: Real>() -> Reconstruction {
    let how = how::<T>();
    let stopping = how.stopping.clone().with_max_iterations(4);
    how.with_method(Method::Sart { omega: 1.0 }).with_regularizers(vec![]).with_upper(1.0).with_stopping(stopping)
}

/// A scan in subsets of its angles is the same scan: rays give the same readings, stored or traced, and traced subsets share their memory.
/// Images have the same bits everywhere and in batches.
fn subsets_are_the_scan<T: Real>() {
    let scan = scan(48, 1.0);
    let (scanner, grid) = (&scan.scanner, scan.grid(20));
    let twice = self::scan(48, 2.0);
    for format in [Format::Csr, Format::OnTheFly] {
        // Sums are kept in two ways, each with bits of its own.
        let mut first = [None, None];
        each_case::<T>(|device| {
            let whole: System<T> = System::new(device, scanner, grid, format).unwrap();
            // 40 angles in subsets of 6 and 5.
            let system: System<T> = System::of_subsets(device, scanner, grid, format, 7).unwrap();
            let operator = system.operator();
            assert_eq!((operator.rows(), operator.cols()), (40 * 48, 400));
            assert_eq!((system.entries(), system.shape()), (whole.entries(), Some([20; 2])));
            let words = format!("{format} on {}", device.info().name);
            assert!(adjoint_error(&**operator, 3).unwrap() < 100.0 * T::EPSILON, "{words}");
            let x = Vector::from_slice(device, &noise::<T>(400, 1)).unwrap();
            let readings = [&whole, &system].map(|system| {
                let mut y = Vector::zeros(device, 40 * 48).unwrap();
                system.operator().apply(&x, &mut y).unwrap();
                y.to_vec().unwrap()
            });
            let [wanted, found] = readings.map(|y| y.iter().map(|v| v.to_f64()).collect::<Vec<_>>());
            assert!(common::distance(&found, &wanted) < 10.0 * T::EPSILON, "{words}");
            let mut essences = Vec::new();
            for scans in [&[&scan, &twice, &scan][..], &[&scan]] {
                let images = Reconstructor::new(&system, ordered::<T>(), scans.len()).unwrap().reconstruct(scans);
                essences.extend(images.unwrap().iter().map(|image| essence(&image.values, &image.report)));
            }
            assert!(essences[0] == essences[2] && essences[0] == essences[3], "{words}");
            let first = &mut first[usize::from(device.accumulation(T::PRECISION) == Accumulation::Pair)];
            assert!(*first.get_or_insert_with(|| essences.clone()) == essences, "{words}");
        });
    }
    let host = residuum::Device::host();
    for count in [0, 41] {
        let refused = System::<T>::of_subsets(&host, scanner, grid, Format::Auto, count).err().unwrap();
        assert!(matches!(refused, Error::Option { name: "subsets", .. }), "{refused}");
    }
    let one = System::<T>::of_subsets(&host, scanner, grid, Format::OnTheFly, 1).unwrap();
    let many = System::<T>::of_subsets(&host, scanner, grid, Format::OnTheFly, 40).unwrap();
    // The images that products are made in are held once, a few words for each ray and each subset often.
    let [one, many] = [one, many].map(|system| (**system.operator()).bytes());
    assert!(many < 4 * one, "{many} {one}");
}

#[test]
fn subsets_are_the_scan_f32() {
    subsets_are_the_scan::<f32>();
}

#[test]
fn subsets_are_the_scan_f64() {
    subsets_are_the_scan::<f64>();
}

#[test]
fn a_second_frame_allocates_nothing_and_builds_nothing() {
    if common::ran_alone(concat!(module_path!(), "::", "a_second_frame_allocates_nothing_and_builds_nothing")) {
        return;
    }
    for device in common::devices() {
        let scans: Vec<Scan> = [1.0, 2.0, 3.0].map(|factor| scan(40, factor)).into();
        for (format, images, how) in [
            (Format::Auto, 1, how::<f32>()),
            (Format::Auto, 3, how::<f32>()),
            (Format::OnTheFly, 1, how::<f32>()),
            (Format::Auto, 2, exact::<f32>(&scans[0], 24)),
            (Format::Auto, 1, projected::<f32>()),
            (Format::Auto, 2, continued::<f32>()),
            (Format::OnTheFly, 2, ordered::<f32>()),
        ] {
            let (scanner, grid) = (&scans[0].scanner, scans[0].grid(24));
            let system = match how.method {
                Method::Sart { .. } => System::<f32>::of_subsets(&device, scanner, grid, format, 7),
                _ => System::new(&device, scanner, grid, format),
            };
            let system = system.unwrap();
            let mut reconstructor = Reconstructor::new(&system, how.clone(), images).unwrap();
            let _first = reconstructor.reconstruct(&vec![&scans[0]; images]).unwrap();
            let count = || {
                let programs = device.programs();
                (measure::allocations(), programs.built, programs.loaded)
            };
            let before = count();
            assert!(before.0 > 0);
            for scan in &scans[1..] {
                let _next = reconstructor.reconstruct(&vec![scan; images]).unwrap();
            }
            let words = format!("{images} by {} with {format} on {}", how.method, device.info().name);
            assert_eq!(count(), before, "{words}");
        }
    }
}

#[test]
fn scans_go_to_images_and_files() {
    let folder = tempfile::tempdir().unwrap();
    let scan = scan(96, 1.0);
    let device = residuum::Device::host();
    let system = System::<f64>::new(&device, &scan.scanner, scan.grid(48), Format::Auto).unwrap();
    let image = Reconstructor::new(&system, how::<f64>(), 1).unwrap().reconstruct(&[&scan]).unwrap().remove(0);
    let truth = Phantom::plate().image(scan.grid(48));
    let quality = image.compare(&truth).unwrap();
    assert!(quality.correlation > 0.95, "{quality:?}");
    assert_eq!((image.rows, image.cols, image.pixel, &image.doubts[..]), (48, 48, 2.0 / 48.0, &[][..]));
    // The file that was written compares as the same picture.
    let path = folder.path().join("image.npy");
    image.write_npy(&path).unwrap();
    assert_eq!(image.compare(&read_reference(&path, scan.grid(48)).unwrap()).unwrap().relative_error, 0.0);
    #[cfg(feature = "png")]
    {
        let path = folder.path().join("image.png");
        image.write_png(&path).unwrap();
        assert!(std::fs::read(path).unwrap().starts_with(&[0x89, b'P', b'N', b'G']));
    }
    // Bounds that bite: the residual is that of the image that is handed out.
    let tight = how::<f64>().with_upper(0.3).with_stopping(how::<f64>().stopping.with_rtol(0.4));
    let image = Reconstructor::new(&system, tight, 1).unwrap().reconstruct(&[&scan]).unwrap().remove(0);
    let matrix = scan.scanner.matrix::<f64>(scan.grid(48)).unwrap();
    let product = matrix.product(&image.values).unwrap();
    let square: f64 = product.iter().zip(&scan.sinogram).map(|(a, b)| (a - b).powi(2)).sum();
    approx::assert_relative_eq!(image.report.true_residual, square.sqrt(), max_relative = 1e-9);
    assert!(image.report.stop != Stop::Converged || image.report.relative_residual() <= 0.4, "{}", image.report);
}

/// A plate seen under a quarter of the angles: bounds, support and exact total variation tell more of it than penalties do.
#[test]
fn what_is_known_of_an_object_makes_up_for_angles() {
    let scanner = Scanner {
        beam: Beam::Fan { source_origin: 5.0, source_detector: 8.0 },
        pixels: 160,
        pitch: 0.024,
        offset: 0.0,
        angles: (0..60).map(f64::from).collect(),
    };
    let ellipse = |x, y, a, b, value| Ellipse { x, y, a, b, turn: 0.0, value };
    let holes = [ellipse(0.3, 0.1, 0.12, 0.2, -1.0), ellipse(-0.3, -0.2, 0.2, 0.1, -1.0)];
    let phantom = Phantom { ellipses: [vec![ellipse(0.05, -0.03, 0.8, 0.8, 1.0)], holes.to_vec()].concat() };
    let noise = Noise { photons: 2e5, gain: 0.003, seed: 7 };
    let scan = phantom.scan(&scanner, 2.0, noise).unwrap().with_field(2.0);
    let truth = phantom.image(scan.grid(64));
    let system = System::<f32>::new(&residuum::Device::host(), &scanner, scan.grid(64), Format::Auto).unwrap();
    let error = |how: Reconstruction| {
        let stopping = how.stopping.clone().with_max_iterations(600);
        let how = how.with_upper(1.0).with_stopping(stopping);
        let image = Reconstructor::new(&system, how, 1).unwrap().reconstruct(&[&scan]).unwrap().remove(0);
        println!("{}", image.report);
        image.compare(&truth).unwrap().relative_error
    };
    let support = Some(Disc::of_shadow(&scan).unwrap().pixels(scan.grid(64)));
    let pdhg = how::<f32>().with_method(Method::Pdhg);
    let [penalties, bounds, with_support] = [how::<f32>(), pdhg.clone(), pdhg.with_support(support)].map(error);
    println!("{penalties} {bounds} {with_support}");
    assert!(bounds < 0.8 * penalties && with_support < 0.9 * bounds, "{penalties} {bounds} {with_support}");
}

#[test]
fn what_does_not_fit_is_refused() {
    let device = residuum::Device::host();
    let scan = scan(24, 1.0);
    let system = System::<f64>::new(&device, &scan.scanner, scan.grid(16), Format::Auto).unwrap();
    let mut one = Reconstructor::new(&system, how::<f64>(), 1).unwrap();
    let mut turned = scan.clone();
    turned.scanner.angles[3] += 1.0;
    // Equally many rays, but other ones.
    assert!(matches!(one.reconstruct(&[&turned]), Err(Error::Conflict { name: "scan", .. })));
    assert!(matches!(one.reconstruct(&[&scan, &scan]), Err(Error::Shape { .. })));
    assert!(matches!(one.reconstruct(&[]), Err(Error::Shape { .. })));
    let observer = &mut |_: &residuum::Progress| std::ops::ControlFlow::Continue(());
    assert!(matches!(one.reconstruct_readings(&[&[0.0; 7]], observer), Err(Error::Shape { .. })));
    let nan = vec![f64::NAN; scan.sinogram.len()];
    assert!(matches!(one.reconstruct_readings(&[&nan], observer), Err(Error::NotFinite { index: 0, .. })));
    assert!(Reconstructor::new(&system, how::<f64>(), 0).is_err());
    let operator = system.operator().clone();
    assert!(System::of_operator(operator.clone(), Some([16, 15])).is_err());
    assert!(System::of_operator(operator.clone(), Some([usize::MAX, 2])).is_err());
    // Without the shape of an image there are no neighbours.
    let shapeless = System::of_operator(operator.clone(), None).unwrap();
    assert!(matches!(Reconstructor::new(&shapeless, how::<f64>(), 1), Err(Error::Option { name: "width", .. })));
    let tikhonov = how::<f64>().with_regularizers(vec![Regularizer::Tikhonov(0.01)]);
    let mut plain = Reconstructor::new(&shapeless, tikhonov, 1).unwrap();
    assert!(matches!(plain.reconstruct(&[&scan]), Err(Error::Conflict { name: "scan", .. })));
    let image = plain.reconstruct_readings(&[&scan.readings::<f64>()], observer).unwrap().remove(0);
    assert_eq!((image.rows, image.cols, image.pixel), (256, 1, 1.0));
    // Terms that a method does not know.
    let set_up = |how: Reconstruction| Reconstructor::new(&system, how, 1).map(|_| ());
    let with = |method: Method, regularizers: &[Regularizer]| {
        how::<f64>().with_method(method).with_regularizers(regularizers.to_vec())
    };
    let across = Regularizer::Directional { weight: 1.0, degrees: 0.0 };
    let support = |method: Method, pixels: usize| with(method, &[]).with_support(vec![true; pixels]);
    assert!(matches!(set_up(with(Method::Lsqr { damp: 0.0 }, &[])), Err(Error::Conflict { name: "method", .. })));
    assert!(matches!(set_up(with(Method::Cgnr, &[across])), Err(Error::Conflict { name: "directional", .. })));
    assert!(matches!(set_up(with(Method::Pdhg, &[across; 2])), Err(Error::Conflict { name: "regularizer", .. })));
    assert!(matches!(
        set_up(with(Method::Fista, &[Regularizer::TotalVariation(0.1)])),
        Err(Error::Conflict { name: "variation", .. })
    ));
    assert!(matches!(set_up(support(Method::Cgnr, 256)), Err(Error::Conflict { name: "bounds", .. })));
    assert!(matches!(set_up(support(Method::Pdhg, 255)), Err(Error::Shape { .. })));
    assert!(set_up(support(Method::Fista, 256)).is_ok());
    // A field far from every ray.
    let beside = Scanner { offset: 1e6, ..scan.scanner.clone() };
    assert!(matches!(
        System::<f64>::new(&device, &beside, scan.grid(16), Format::Csr),
        Err(Error::Option { name: "system", .. })
    ));
    assert!(Scan::read("no such file.npy", &Geometry::default()).is_err());
    assert!(operator.has_adjoint());
}

#[test]
fn an_observer_that_panics_takes_nothing_with_it() {
    let scan = scan(24, 1.0);
    let system = System::<f32>::new(&residuum::Device::host(), &scan.scanner, scan.grid(16), Format::Auto).unwrap();
    let mut reconstructor = Reconstructor::new(&system, how::<f32>(), 1).unwrap();
    let first = reconstructor.reconstruct(&[&scan]).unwrap().remove(0);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _ = reconstructor.reconstruct_observed(&[&scan], &mut |_| panic!("the observer's own fault"));
    }));
    assert!(panicked.is_err());
    let again = reconstructor.reconstruct(&[&scan]).unwrap().remove(0);
    assert!(essence(&first.values, &first.report) == essence(&again.values, &again.report));
}

/// Readings that do not go with their scanner or their picture are told, and those that do are not.
#[test]
fn doubts_name_what_does_not_fit() {
    let fan = scan(64, 1.0);
    let doubts = |scan: &Scan, field: f64| {
        let grid = scan.clone().with_field(field).grid(48);
        let system = System::<f32>::new(&residuum::Device::host(), &scan.scanner, grid, Format::Auto).unwrap();
        let how = Reconstruction::of_scanner::<f32>(&scan.scanner);
        Reconstructor::new(&system, how, 1).unwrap().reconstruct(&[scan]).unwrap().remove(0).doubts
    };
    assert_eq!(doubts(&fan, 2.0), []);
    let turned = Scan::new(fan.scanner.clone().flipped(Flip::Angles), fan.sinogram.clone()).unwrap();
    assert_eq!(doubts(&turned, 2.0), [Doubt::OtherTurn]);
    // Both are the mirrored scan.
    assert_eq!(doubts(&turned.flipped(Flip::Pixels), 2.0), []);
    assert!(matches!(doubts(&fan, 0.7)[..], [Doubt::BesideField { share }] if share > 0.1 && share < 0.9));
    let cut = fan.cropped(12, 52).unwrap();
    assert!(matches!(doubts(&cut, 2.0 * 40.0 / 64.0)[..], [Doubt::CutOff { share, .. }] if share > 0.5));
    // A picture that has room for all of it.
    assert!(!doubts(&cut, 2.0).iter().any(|doubt| matches!(doubt, Doubt::CutOff { .. })));
    // An axis that no ray comes near, 2 pixels of 3/64 beside the detector, which are seen at 5/8.
    let hole = doubts(&fan.clone().with_axis(-2.5).unwrap(), 2.0);
    assert!(
        matches!(hole[0], Doubt::AxisBeside { distance } if (distance - 2.0 * 3.0 / 64.0 * 0.625).abs() < 1e-9)
    );
    // An axis that lies elsewhere, over half a turn, which opposite rays say nothing of.
    let scanner = Scanner {
        beam: Beam::Parallel,
        pixels: 64,
        pitch: 2.2 / 64.0,
        offset: 0.0,
        angles: (0..60).map(|k| 3.0 * f64::from(k)).collect(),
    };
    let noise = Noise { photons: 2e5, gain: 0.0, seed: 5 };
    let right = Phantom::plate().scan(&scanner, 2.0, noise).unwrap();
    assert_eq!(doubts(&right, 2.0), []);
    let wrong = right.with_axis(31.5 + 4.0).unwrap();
    assert!(matches!(doubts(&wrong, 2.0)[..], [Doubt::Misfit { residual, .. }] if residual > 0.05));
}

/// A part of a picture has the pixels of the whole, and knows its place.
#[test]
fn a_part_of_a_picture_knows_its_place() {
    let scan = scan(48, 1.0);
    let system = System::<f32>::new(&residuum::Device::host(), &scan.scanner, scan.grid(40), Format::Auto).unwrap();
    let whole = Reconstructor::new(&system, how::<f32>(), 1).unwrap().reconstruct(&[&scan]).unwrap().remove(0);
    // Pixels of 0.05: columns 10 to 17, rows 4 to 9 from above.
    let region: Region = "-0.5:-0.1,0.5:0.8".parse().unwrap();
    let part = whole.cut(&region).unwrap();
    assert_eq!((part.rows, part.cols, part.pixel), (6, 8, whole.pixel));
    approx::assert_abs_diff_eq!(part.centre[0], -0.3, epsilon = 1e-12);
    approx::assert_abs_diff_eq!(part.centre[1], 0.65, epsilon = 1e-12);
    for i in 0..6 {
        assert_eq!(part.values[8 * i..][..8], whole.values[40 * (4 + i) + 10..][..8]);
    }
    // Pixels that are met in part are whole, and a part of a part is one of the whole.
    let within = Region { x: [-0.42, -0.33], y: [0.56, 0.57] };
    let (of_part, of_whole) = (part.cut(&within).unwrap(), whole.cut(&within).unwrap());
    assert_eq!((of_part.rows, of_part.cols, &of_part.values), (1, 3, &of_whole.values));
    approx::assert_abs_diff_eq!(of_part.centre[0], of_whole.centre[0], epsilon = 1e-12);
    for bad in [[-1.2, 0.0], [0.3, 0.3], [0.5, f64::NAN], [0.9, 1.1]] {
        assert!(matches!(whole.cut(&Region { x: bad, y: [0.0, 0.1] }), Err(Error::Option { name: "roi", .. })));
    }
    for bad in ["", "0:1", "0:1,2", "0:1,2:x", "0:inf,0:1"] {
        assert!(bad.parse::<Region>().is_err(), "{bad}");
    }
    let all = whole.cut(&Region { x: [-1.0, 1.0], y: [-1.0, 1.0] }).unwrap();
    assert_eq!((all.centre, all.values), ([0.0; 2], whole.values));
}
