//! Simulations: what their discrete equations say exactly, known flows, equal bits, no allocation after the first step.

use std::f64::consts::PI;

use crate::common::{self, bits, each_case, noise, ran_alone, reference};
use residuum::operator::Boundary;
use residuum::simulation::cases::{
    cavity, differences_from_ghia, taylor_green, taylor_green_decay, taylor_green_velocity,
};
use residuum::simulation::{
    Flow, FlowSetup, Heat, HeatSetup, Interpolation, Obstacles, PressureStart, Splitting, TimeAverage, Trace, Wall,
    WaveSetup, Waves,
};
use residuum::{Device, Error, Format, Real, Stopping, Vector, measure};

/// A mode of the grid, and the eigenvalue of the Laplacian (4 in the middle) that it belongs to.
fn mode([width, height]: [usize; 2], [k, l]: [f64; 2], boundary: Boundary) -> (Vec<f64>, f64) {
    let along = |i: usize, n: usize, k: f64| match boundary {
        Boundary::Zero => (k * PI * (i as f64 + 1.0) / (n as f64 + 1.0)).sin(),
        Boundary::Reflecting => (k * PI * (i as f64 + 0.5) / n as f64).cos(),
        Boundary::Periodic => (2.0 * k * PI * i as f64 / n as f64).cos(),
    };
    let eigenvalue = |n: usize, k: f64| {
        let angle = match boundary {
            Boundary::Zero => k * PI / (2.0 * (n as f64 + 1.0)),
            Boundary::Reflecting => k * PI / (2.0 * n as f64),
            Boundary::Periodic => k * PI / n as f64,
        };
        4.0 * angle.sin().powi(2)
    };
    let values = (0..width * height).map(|c| along(c % width, width, k) * along(c / width, height, l));
    (values.collect(), eigenvalue(width, k) + eigenvalue(height, l))
}

/// A solve as exact as `f64` lets it be.
fn tight() -> Stopping {
    Stopping::for_precision::<f64>().with_rtol(1e-15)
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

const BOUNDARIES: [Boundary; 3] = [Boundary::Zero, Boundary::Reflecting, Boundary::Periodic];

#[test]
fn heat_modes_decay_by_the_discrete_formula() {
    let (size, s) = ([37, 22], 0.8);
    for boundary in BOUNDARIES {
        for format in [Format::OnTheFly, Format::EllpackR, Format::Dia] {
            let (start, lambda) = mode(size, [3.0, 2.0], boundary);
            let mut setup = HeatSetup::new::<f64>(size, s);
            (setup.boundary, setup.format, setup.stopping) = (boundary, format, tight());
            let mut heat = Heat::new(&Device::host(), &setup, &start).unwrap();
            let mut factor = 1.0;
            for _ in 0..5 {
                let _ = heat.step().unwrap();
                factor /= 1.0 + s * lambda;
                let wanted: Vec<f64> = start.iter().map(|v| v * factor).collect();
                let found = heat.temperature().to_vec().unwrap();
                assert!(
                    distance(&found, &wanted) < 1e-12,
                    "{boundary:?} {format}: {:e}",
                    distance(&found, &wanted)
                );
            }
            for _ in 0..5 {
                heat.step_back().unwrap();
            }
            assert!(distance(&heat.temperature().to_vec().unwrap(), &start) < 1e-10, "{boundary:?} {format}");
        }
    }
}

#[test]
fn insulated_pictures_keep_their_heat_and_cold_rims_take_it() {
    let picture: Vec<f64> = noise::<f64>(30 * 20, 4).iter().map(|v| v + 1.0).collect();
    let heat = |boundary| {
        let mut setup = HeatSetup::new::<f64>([30, 20], 2.5);
        (setup.boundary, setup.stopping) = (boundary, tight());
        let mut heat = Heat::new(&Device::host(), &setup, &picture).unwrap();
        let before = heat.temperature().sum().unwrap();
        for _ in 0..10 {
            let _ = heat.step().unwrap();
        }
        heat.temperature().sum().unwrap() / before
    };
    for boundary in [Boundary::Reflecting, Boundary::Periodic] {
        assert!((heat(boundary) - 1.0).abs() < 1e-13, "{boundary:?}");
    }
    assert!(heat(Boundary::Zero) < 0.95);
}

#[test]
fn waves_follow_their_discrete_dispersion() {
    let (size, gamma) = ([33, 18], 0.9);
    for boundary in BOUNDARIES {
        for average in [TimeAverage::NewAndPrevious, TimeAverage::NewAndPresent] {
            let (start, lambda) = mode(size, [2.0, 3.0], boundary);
            let mut setup = WaveSetup::new::<f64>(size, gamma);
            (setup.boundary, setup.average, setup.stopping) = (boundary, average, tight());
            let mut waves = Waves::new(&Device::host(), &setup, &start).unwrap();
            let a = gamma * lambda / 2.0;
            let (mut before, mut now) = (1.0, 1.0);
            for _ in 0..40 {
                let _ = waves.step().unwrap();
                let new = match average {
                    TimeAverage::NewAndPrevious => 2.0 * now / (1.0 + a) - before,
                    TimeAverage::NewAndPresent => ((2.0 - a) * now - before) / (1.0 + a),
                };
                (before, now) = (now, new);
                let wanted: Vec<f64> = start.iter().map(|v| v * now).collect();
                let found = waves.surface().to_vec().unwrap();
                assert!(
                    distance(&found, &wanted) < 1e-11,
                    "{boundary:?} {average:?}: {:e}",
                    distance(&found, &wanted)
                );
            }
        }
    }
}

#[test]
fn waves_keep_their_energy_or_lose_it() {
    let block = |c: usize| (8..14).contains(&(c % 40)) && (5..20).contains(&(c / 40));
    let obstacles = Obstacles::new([40, 30], (0..1200).map(block).collect()).unwrap();
    let energies = |average, boundary, obstacles: Option<Obstacles>| {
        let mut setup = WaveSetup::new::<f64>([40, 30], 0.7);
        (setup.average, setup.boundary, setup.obstacles, setup.stopping) = (average, boundary, obstacles, tight());
        let mut waves = Waves::new(&Device::host(), &setup, &[0.0; 1200]).unwrap();
        waves.disturb([25.0, 12.0], 5.0, 1.0).unwrap();
        let before = waves.energy().unwrap();
        for _ in 0..300 {
            let _ = waves.step().unwrap();
        }
        let left = waves.surface().to_vec().unwrap();
        assert!(setup.obstacles.is_none() || (0..1200).all(|c| !block(c) || left[c] == 0.0));
        waves.energy().unwrap() / before
    };
    for obstacles in [None, Some(obstacles)] {
        for boundary in BOUNDARIES {
            let kept = energies(TimeAverage::NewAndPrevious, boundary, obstacles.clone());
            assert!((kept - 1.0).abs() < 1e-10, "{boundary:?}: {kept}");
        }
    }
    assert!(energies(TimeAverage::NewAndPresent, Boundary::Reflecting, None) < 0.5);
}

/// Root of the mean square of the error of `u` when the vortex has decayed for a time of about a quarter.
fn vortex_error(side: usize, device: &Device) -> f64 {
    let viscosity = 0.02;
    let mut setup = taylor_green::<f64>(side, viscosity);
    setup.stopping = Stopping::for_precision::<f64>().with_rtol(1e-10);
    let (step, cell) = (setup.step, setup.cell);
    let mut flow = Flow::<f64>::new(device, setup).unwrap();
    flow.set_velocity(&taylor_green_velocity).unwrap();
    let steps = (0.25 / step).round() as usize;
    for _ in 0..steps {
        let report = flow.step().unwrap();
        assert!(report.converged(), "{report}");
    }
    let decay = taylor_green_decay(viscosity, steps as f64 * step);
    let found = flow.velocity()[0].to_vec().unwrap();
    let square = |(c, found): (usize, &f64)| {
        let (x, y) = ((c % side) as f64 * cell, ((c / side) as f64 + 0.5) * cell);
        (found - decay * taylor_green_velocity(x, y)[0]).powi(2)
    };
    (found.iter().enumerate().map(square).sum::<f64>() / found.len() as f64).sqrt()
}

#[test]
fn the_vortex_of_taylor_and_green_decays_at_second_order() {
    let errors = [24, 48, 96].map(|side| vortex_error(side, &Device::host()));
    println!("errors of the vortex: {errors:?}");
    for pair in errors.windows(2) {
        let order = (pair[0] / pair[1]).log2();
        assert!((1.8..3.0).contains(&order), "order {order}: {errors:?}");
    }
    assert!(errors[2] < 1e-3);
}

/// A force of the shape of the vortex holds it at the velocity at which viscosity takes as much: `f / (2 pi² viscosity)`.
#[test]
fn a_force_holds_the_vortex_against_viscosity() {
    let (viscosity, strength) = (0.05, 0.6);
    let error = |side: usize| {
        let mut setup = taylor_green::<f64>(side, viscosity);
        setup.stopping = Stopping::for_precision::<f64>().with_rtol(1e-8);
        let steps = (6.0 / setup.step) as usize;
        let mut flow = Flow::<f64>::new(&Device::host(), setup).unwrap();
        let force = |x: f64, y: f64| taylor_green_velocity(x, y).map(|v| strength * v);
        flow.set_force(Some(&force)).unwrap();
        for _ in 0..steps {
            assert!(flow.step().unwrap().converged());
        }
        // The integral of the squared velocity is a half.
        let speed = strength / (2.0 * PI * PI * viscosity);
        let off = (4.0 * flow.energy().unwrap()).sqrt() / speed - 1.0;
        println!("{side}: {off:e} of {speed}");
        flow.set_force(None).unwrap();
        let before = flow.energy().unwrap();
        let _ = flow.step().unwrap();
        assert!(flow.energy().unwrap() < before);
        off.abs()
    };
    let errors = [16, 32].map(error);
    assert!(errors[1] < 8e-3 && errors[0] / errors[1] > 2.0, "{errors:?}");
    let mut flow = Flow::<f64>::new(&Device::host(), taylor_green::<f64>(16, viscosity)).unwrap();
    let wrong: &dyn Fn(f64, f64) -> [f64; 2] = &|_, _| [f64::NAN, 0.0];
    assert!(matches!(flow.set_force(Some(wrong)), Err(Error::NotFinite { .. })));
}

/// The paper's step adds the changes of viscosity and transport: it grows where the flow moves a cell a step, and the step of this crate
/// never does.
#[test]
fn the_step_of_the_paper_grows_and_ours_does_not() {
    let growth = |splitting: Splitting, cells_a_step: f64| {
        let side = 32;
        let cell = 1.0 / side as f64;
        let step = cells_a_step * cell;
        let mut setup = FlowSetup::new::<f64>([side; 2], cell, step, 0.2 * cell * cell / step);
        (setup.wall, setup.splitting) = (Wall::FreeSlip, splitting);
        setup.stopping = Stopping::for_precision::<f64>().with_rtol(1e-6);
        let mut flow = Flow::<f64>::new(&Device::host(), setup).unwrap();
        flow.set_velocity(&taylor_green_velocity).unwrap();
        let first = flow.energy().unwrap();
        let mut most = 0.0_f64;
        for _ in 0..200 {
            let _ = flow.step().unwrap();
            let energy = flow.energy().unwrap() / first;
            if energy.is_nan() || energy > 1e6 {
                return f64::INFINITY;
            }
            most = most.max(energy);
        }
        most
    };
    for cells in [0.25, 1.0, 2.0, 4.0] {
        let [ours, theirs] = [Splitting::Sequential, Splitting::Additive].map(|splitting| growth(splitting, cells));
        println!("{cells} cells a step: most energy {ours} (one after the other), {theirs} (added)");
        assert!(ours <= 1.0 + 1e-12, "{cells}: {ours}");
        if cells == 0.25 {
            assert!(theirs <= 1.0 + 1e-12, "{theirs}");
        }
    }
    assert!(growth(Splitting::Additive, 2.0) > 1.5);
}

#[test]
fn a_lid_driven_cavity_is_that_of_ghia() {
    let mut setup = cavity::<f64>(64, 100.0);
    setup.stopping = loose();
    let steps = (16.0 / setup.step).ceil() as usize;
    let mut flow = Flow::<f64>::new(&Device::host(), setup).unwrap();
    for _ in 0..steps {
        let _ = flow.step().unwrap();
    }
    let differences = differences_from_ghia(&flow, 100.0).unwrap();
    println!("greatest differences from Ghia, Ghia and Shin: {differences:?}");
    assert!(differences.iter().all(|difference| *difference < 0.01), "{differences:?}");
    assert!(flow.divergence().unwrap() < 1e-2);
}

/// Enough for a flow that comes to rest.
fn loose() -> Stopping {
    Stopping::for_precision::<f64>().with_rtol(1e-4).with_max_iterations(200)
}

#[test]
fn the_pressure_takes_the_divergence_away() {
    let mut solid = vec![false; 32 * 24];
    for c in 0..solid.len() {
        let (x, y) = ((c % 32) as f64 - 12.0, (c / 32) as f64 - 10.0);
        solid[c] = x * x + y * y < 20.0 || c % 32 == 24;
    }
    for obstacles in [None, Some(Obstacles::new([32, 24], solid).unwrap())] {
        let mut setup = FlowSetup::new::<f64>([32, 24], 1.0 / 24.0, 0.01, 1e-3);
        setup.stopping = Stopping::for_precision::<f64>().with_rtol(1e-13);
        setup.obstacles = obstacles;
        let mut flow = Flow::<f64>::new(&Device::host(), setup).unwrap();
        for _ in 0..3 {
            flow.push([6.0, 6.0], 4.0, [3.0, -2.0]).unwrap();
            flow.push([28.0, 12.0], 3.0, [1.0, 1.0]).unwrap();
            let report = flow.step().unwrap();
            // Walls let nothing through, so there is nothing in the null space but rounding.
            assert!(report.projected.unwrap() < 1e-12, "{report}");
        }
        let speed = flow.velocity()[0].norm2().unwrap();
        assert!(speed > 1.0 && flow.divergence().unwrap() < 1e-10, "{:e}", flow.divergence().unwrap());
    }
}

#[test]
fn dye_stays_between_its_bounds_and_goes_with_the_flow() {
    for interpolation in [Interpolation::Linear, Interpolation::Cubic] {
        let mut setup = FlowSetup::new::<f64>([48, 48], 1.0 / 48.0, 0.02, 1e-4);
        setup.interpolation = interpolation;
        let mut flow = Flow::<f64>::new(&Device::host(), setup).unwrap();
        flow.inject([12.0, 24.0], 6.0, 1.0).unwrap();
        let middle = |dye: &[f64]| {
            let total: f64 = dye.iter().sum();
            dye.iter().enumerate().map(|(c, v)| (c % 48) as f64 * v).sum::<f64>() / total
        };
        let before = middle(&flow.dye().to_vec().unwrap());
        for _ in 0..20 {
            flow.push([12.0, 24.0], 8.0, [0.1, 0.0]).unwrap();
            let _ = flow.step().unwrap();
        }
        let dye = flow.dye().to_vec().unwrap();
        assert!(dye.iter().all(|v| (0.0..=1.0).contains(v)), "{interpolation:?}");
        assert!(middle(&dye) > before + 3.0, "{interpolation:?}: {}", middle(&dye) - before);
    }
}

/// Fields of all simulations after some steps, with what a user does in between.
fn fields<T: Real>(device: &Device, steps: usize) -> Vec<Vec<u64>> {
    let (width, height) = (37, 29);
    let n = width * height;
    let picture: Vec<T> = noise::<T>(n, 9);
    let disc = |c: usize| ((c % width) as f64 - 20.0).powi(2) + ((c / width) as f64 - 14.0).powi(2) < 30.0;
    let obstacles = Obstacles::new([width, height], (0..n).map(disc).collect()).unwrap();
    let mut found = Vec::new();
    for (boundary, format) in [(Boundary::Zero, Format::OnTheFly), (Boundary::Reflecting, Format::EllpackR)] {
        let mut setup = HeatSetup::new::<T>([width, height], 1.5);
        (setup.boundary, setup.format) = (boundary, format);
        let mut heat = Heat::new(device, &setup, &picture).unwrap();
        for _ in 0..steps {
            let _ = heat.step().unwrap();
        }
        heat.step_back().unwrap();
        found.push(bits(&heat.temperature().to_vec().unwrap()));
    }
    for (average, solid) in [(TimeAverage::NewAndPrevious, None), (TimeAverage::NewAndPresent, Some(&obstacles))] {
        let mut setup = WaveSetup::new::<T>([width, height], 0.6);
        (setup.average, setup.obstacles, setup.stopping) = (average, solid.cloned(), Stopping::after(5));
        let mut waves = Waves::new(device, &setup, &picture).unwrap();
        for k in 0..steps {
            waves.disturb([5.0 + k as f64, 7.5], 4.0, 0.5).unwrap();
            let _ = waves.step().unwrap();
        }
        found.push(bits(&waves.surface().to_vec().unwrap()));
    }
    let rules = [
        (Interpolation::Linear, Trace::Euler, Wall::NoSlip { lid: 0.7 }, None),
        (Interpolation::Cubic, Trace::Midpoint, Wall::FreeSlip, Some(&obstacles)),
        (Interpolation::Cubic, Trace::Euler, Wall::NoSlip { lid: 0.0 }, Some(&obstacles)),
        (Interpolation::Linear, Trace::Midpoint, Wall::FreeSlip, None),
    ];
    for (interpolation, trace, wall, solid) in rules {
        let mut setup = FlowSetup::new::<T>([width, height], 1.0 / 29.0, 0.02, 1e-3);
        (setup.interpolation, setup.trace, setup.wall) = (interpolation, trace, wall);
        setup.obstacles = solid.cloned();
        found.extend(flow_fields(device, setup, &picture, steps, [2.5, -1.0]));
    }
    // The step of the paper, with forces.
    let mut setup = FlowSetup::new::<T>([width, height], 1.0 / 29.0, 0.02, 1e-3);
    (setup.splitting, setup.pressure_start) = (Splitting::Additive, PressureStart::Last);
    setup.obstacles = Some(obstacles.clone());
    found.extend(flow_fields(device, setup, &picture, steps, [2.5, -1.0]));
    // Rows in which a processor moves many cells at once, at rest, slowly, and by more than the height of the box.
    let disc = |c: usize| ((c % 331) as f64 - 200.0).powi(2) + ((c / 331) as f64 - 20.0).powi(2) < 60.0;
    let obstacles = Obstacles::new([331, 37], (0..331 * 37).map(disc).collect()).unwrap();
    for (solid, push) in [(None, [2.5, -1.0]), (Some(&obstacles), [-0.4, 0.3]), (Some(&obstacles), [-40.0, 60.0])] {
        let mut setup = FlowSetup::new::<T>([331, 37], 1.0 / 37.0, 0.02, 1e-3);
        setup.obstacles = solid.cloned();
        found.extend(flow_fields(device, setup, &noise::<T>(331 * 37, 5), steps, push));
    }
    found
}

/// Bits of the fields of a flow that is pushed and dyed.
fn flow_fields<T: Real>(
    device: &Device,
    mut setup: FlowSetup,
    picture: &[T],
    steps: usize,
    push: [f64; 2],
) -> Vec<Vec<u64>> {
    setup.stopping = Stopping::after(4);
    let forced = setup.splitting == Splitting::Additive;
    let mut flow = Flow::<T>::new(device, setup).unwrap();
    if forced {
        flow.set_force(Some(&|x, y| [3.0 * y, -2.0 * x])).unwrap();
    }
    flow.dye_mut().write(picture).unwrap();
    for k in 0..steps {
        flow.push([9.0 + k as f64, 8.0], 6.0, push).unwrap();
        flow.inject([9.0, 20.0], 3.0, 0.25).unwrap();
        let _ = flow.step().unwrap();
    }
    let [u, v] = flow.velocity();
    [u, v, flow.pressure(), flow.dye()]
        .map(|field| {
            let field = field.to_vec().unwrap();
            assert!(field.iter().all(|v| v.is_finite()) && field.iter().any(|v| v.to_f64() != 0.0));
            bits(&field)
        })
        .into()
}

#[test]
fn every_device_has_the_bits_of_the_host_f32() {
    each_case::<f32>(|device| {
        assert!(fields::<f32>(device, 4) == fields::<f32>(&reference::<f32>(device), 4), "{}", device.tuning());
    });
}

#[test]
fn every_device_has_the_bits_of_the_host_f64() {
    each_case::<f64>(|device| {
        assert!(fields::<f64>(device, 4) == fields::<f64>(&reference::<f64>(device), 4), "{}", device.tuning());
    });
}

#[test]
fn steps_after_the_first_allocate_and_build_nothing() {
    if ran_alone(concat!(module_path!(), "::", "steps_after_the_first_allocate_and_build_nothing")) {
        return;
    }
    for device in common::devices() {
        let solid = (0..32 * 32).map(|c| c % 32 == 5).collect();
        let obstacles = Obstacles::new([32, 32], solid).unwrap();
        let picture = noise::<f32>(1024, 1);
        let mut heat = Heat::new(&device, &HeatSetup::new::<f32>([32, 32], 1.0), &picture).unwrap();
        let mut waves = Waves::new(&device, &WaveSetup::new::<f32>([32, 32], 1.0), &picture).unwrap();
        let mut setup = FlowSetup::new::<f32>([32, 32], 1.0 / 32.0, 0.01, 1e-3);
        setup.obstacles = Some(obstacles);
        let mut flow = Flow::<f32>::new(&device, setup).unwrap();
        let mut before = Default::default();
        for k in 0..6 {
            let now = (measure::allocations(), device.programs().built + device.programs().loaded);
            // The second frame may still build what follows a first residual that is not 0.
            if k > 2 {
                assert_eq!(now, before, "frame {k} on {}", device.info().name);
            }
            before = now;
            let _ = heat.step().unwrap();
            let _ = waves.step().unwrap();
            waves.disturb([10.0, 10.0], 3.0, 1.0).unwrap();
            flow.push([16.0, 16.0], 5.0, [1.0, 0.5]).unwrap();
            flow.inject([16.0, 16.0], 5.0, 1.0).unwrap();
            let _ = flow.step().unwrap();
        }
    }
}

#[test]
fn what_cannot_be_simulated_is_refused() {
    let device = Device::host();
    for step in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let heat = Heat::new(&device, &HeatSetup::new::<f64>([4, 4], step), &[0.0; 16]);
        assert!(matches!(heat, Err(Error::Option { name: "step", .. })), "{step}");
        let waves = Waves::new(&device, &WaveSetup::new::<f64>([4, 4], step), &[0.0; 16]);
        assert!(matches!(waves, Err(Error::Option { name: "gamma", .. })), "{step}");
        let flow = Flow::<f64>::new(&device, FlowSetup::new::<f64>([8, 8], 0.125, step, 0.01));
        assert!(matches!(flow, Err(Error::Option { name: "step", .. })), "{step}");
    }
    assert!(matches!(
        Heat::new(&device, &HeatSetup::new::<f64>([4, 4], 1.0), &[0.0; 15]),
        Err(Error::Shape { .. })
    ));
    for size in [[0, 4], [1 << 20, 1 << 20], [usize::MAX, 2]] {
        let heat = Heat::<f64>::new(&device, &HeatSetup::new::<f64>(size, 1.0), &[]);
        assert!(matches!(heat, Err(Error::Option { name: "size", .. })), "{size:?}");
    }
    let flow = |change: &dyn Fn(&mut FlowSetup)| {
        let mut setup = FlowSetup::new::<f64>([8, 8], 0.125, 0.01, 0.01);
        change(&mut setup);
        Flow::<f64>::new(&device, setup).err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert_eq!(flow(&|_| ()), "");
    assert!(flow(&|setup| setup.size = [3, 8]).contains("smaller than 4 x 4"));
    assert!(flow(&|setup| setup.size = [5_000_000, 8]).contains("5000000 cells along a side"));
    assert!(flow(&|setup| setup.viscosity = 1.0).contains("unstable"));
    assert!(flow(&|setup| setup.viscosity = -1.0).contains("viscosity"));
    assert!(flow(&|setup| setup.cell = f64::NAN).contains("cell"));
    assert!(flow(&|setup| setup.wall = Wall::NoSlip { lid: f64::NAN }).contains("lid"));
    let other = Obstacles::new([7, 8], vec![false; 56]).unwrap();
    assert!(flow(&|setup| setup.obstacles = Some(other.clone())).contains("width of the obstacles"));
    let mut good = Flow::<f64>::new(&device, FlowSetup::new::<f64>([8, 8], 0.125, 0.01, 0.01)).unwrap();
    assert!(
        good.push([4.0, 4.0], 0.0, [1.0, 1.0]).is_err() && good.push([4.0, f64::NAN], 1.0, [1.0, 1.0]).is_err()
    );
    assert!(good.inject([4.0, 4.0], 1.0, f64::INFINITY).is_err() && good.set_step(1.0, 1.0).is_err());
    let nan = Vector::from_slice(&device, &[f64::NAN; 16]).unwrap();
    let mut heat = Heat::new(&device, &HeatSetup::new::<f64>([4, 4], 1.0), &[0.0; 16]).unwrap();
    heat.temperature_mut().copy_from(&nan).unwrap();
    assert!(matches!(heat.step(), Err(Error::NotFinite { .. })));
}
