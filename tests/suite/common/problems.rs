//! Matrices, problems and regularizations that several suites run over: the device comparison, the golden file.

use residuum::imaging::{Beam, Grid, Scanner};
use residuum::operator::{Diagonal, LinearOperator, SharedOperator, Subsets};
use residuum::sparse::gallery;
use residuum::{
    Columns, Csr, Device, Format, Matrix, Method, Offsets, Packing, Real, Regularization, Report, Setup, Solver,
    Stop, Stopping, Storage, Transposed, Vector,
};

use super::{bits, noise, overlapping};

/// Parts of a result that must not differ between devices, work-groups, look intervals and numbers of right-hand sides.
pub(crate) type Essence = (Vec<u64>, usize, Stop, Vec<u64>);

pub(crate) fn essence<T: Real>(x: &[T], report: &Report) -> Essence {
    let mut numbers = vec![report.residual, report.true_residual, report.gradient.unwrap_or(0.0)];
    numbers.extend(&report.history);
    numbers.extend(&report.gradient_history);
    (bits(x), report.iterations, report.stop, bits(&numbers))
}

/// A problem, and how it is preconditioned.
#[derive(Clone)]
pub(crate) struct Problem<T> {
    pub(crate) method: Method,
    pub(crate) a: Csr<T>,
    /// Entries of a diagonal preconditioner.
    pub(crate) diagonal: Option<Vec<T>>,
    /// True if that is given as a matrix instead.
    pub(crate) as_matrix: bool,
    pub(crate) reference: Option<Vec<T>>,
    pub(crate) start: Vec<T>,
    /// A lower bound that the answer keeps clear of.
    pub(crate) lower: Option<f64>,
    /// Number of subsets of the rows, and rows of a subset that lie one after another.
    pub(crate) subsets: Option<[usize; 2]>,
}

impl<T: Real> Problem<T> {
    pub(crate) fn new(method: Method, a: &Csr<T>) -> Self {
        let start = vec![T::default(); a.cols()];
        let (diagonal, reference, lower, subsets) = (None, None, None, None);
        Self { method, a: a.clone(), diagonal, as_matrix: false, reference, start, lower, subsets }
    }

    fn operator(&self, device: &Device) -> SharedOperator<T> {
        let transposed = if self.method.takes_rectangles() { Transposed::Copy } else { Transposed::None };
        let storage = Storage::default().with_transposed(transposed);
        match self.subsets {
            Some([count, run]) => Subsets::of_matrix(device, &self.a, storage, count, run).unwrap().shared(),
            None => Matrix::stored(device, &self.a, storage).unwrap().into(),
        }
    }

    /// Solves for each of `b` at once.
    pub(crate) fn solve(&self, device: &Device, b: &[&[T]], stopping: &Stopping) -> Vec<(Vec<T>, Report)> {
        let a = self.operator(device);
        let diagonal = self.diagonal.as_ref().map(|d| Vector::from_slice(device, d).unwrap());
        let diagonal = diagonal.map(|d| Diagonal::new(d).unwrap());
        let entries: Vec<(usize, usize, T)> =
            self.diagonal.iter().flatten().enumerate().map(|(i, d)| (i, i, *d)).collect();
        let as_matrix = Csr::from_triplets(self.a.rows(), self.a.rows(), &entries).unwrap();
        let as_matrix = Matrix::new(device, &as_matrix, Format::Csr).unwrap();
        let mut setup = Setup::new(self.method, stopping.clone()).with_columns(b.len());
        if let Some(diagonal) = &diagonal {
            setup.preconditioner = Some(if self.as_matrix { (&as_matrix).into() } else { diagonal.into() });
        }
        if let Some(lower) = self.lower {
            setup.regularizations = vec![Regularization::none().with_lower(lower); b.len()];
        }
        let mut solver = Solver::with(a, setup).unwrap();
        if let Some(reference) = &self.reference {
            let columns = vec![&reference[..]; b.len()];
            solver.set_reference(Columns::new(device, &columns).unwrap().as_vector()).unwrap();
        }
        let rhs = Columns::new(device, b).unwrap();
        let mut x = Columns::new(device, &vec![&self.start[..]; b.len()]).unwrap();
        let reports = solver.solve_many(&rhs, &mut x).unwrap();
        x.to_vecs().unwrap().into_iter().zip(reports).collect()
    }
}

/// A convection-diffusion matrix: not symmetric.
pub(crate) fn convection<T: Real>(side: usize) -> Csr<T> {
    Csr::from_rows(side * side, side * side, |i, row| {
        let (x, y) = (i % side, i / side);
        let mut put = |at: usize, v: f64| row.push((at as u32, T::from_f64(v)));
        if y > 0 {
            put(i - side, -1.3);
        }
        if x > 0 {
            put(i - 1, -1.5);
        }
        put(i, 4.2);
        if x + 1 < side {
            put(i + 1, -0.5);
        }
        if y + 1 < side {
            put(i + side, -0.7);
        }
    })
    .unwrap()
}

/// Symmetric and indefinite.
pub(crate) fn indefinite<T: Real>(side: usize) -> Csr<T> {
    gallery::poisson_2d::<T>(side, -1.7).unwrap()
}

/// Every method with a problem that suits it, and its variants.
pub(crate) fn problems<T: Real>() -> Vec<Problem<T>> {
    let definite = gallery::poisson_2d::<T>(12, 0.5).unwrap();
    let scaling: Vec<T> = (0..144).map(|i| T::from_f64(0.2 + 0.1 * f64::from(i % 3))).collect();
    let tall = overlapping::<T>(150, 40, 700, 3);
    let wide = tall.transpose();
    let convection = convection::<T>(12);
    let mut found = Vec::new();
    let square = [
        Method::Cg,
        Method::SteepestDescent,
        Method::Chebyshev { smallest: 0.5, largest: 8.5 },
        Method::Stationary { omega: 0.2 },
    ];
    for method in square {
        found.push(Problem::new(method, &definite));
    }
    found.push(Problem::new(Method::Minres, &indefinite(12)));
    found.push(Problem::new(Method::BiCgStab, &convection));
    found.push(Problem::new(Method::Gmres { restart: 9 }, &convection));
    found.push(Problem::new(Method::Gmres { restart: 30 }, &indefinite(12)));
    for (method, a) in [
        (Method::Gmres { restart: 5 }, &convection),
        (Method::Cg, &definite),
        (Method::BiCgStab, &convection),
        (Method::Chebyshev { smallest: 0.05, largest: 5.0 }, &definite),
        (Method::Stationary { omega: 0.5 }, &definite),
    ] {
        for as_matrix in [false, true] {
            found.push(Problem { diagonal: Some(scaling.clone()), as_matrix, ..Problem::new(method, a) });
        }
    }
    for method in [Method::Cgls { damp: 0.0 }, Method::Lsqr { damp: 0.0 }, Method::Lsmr { damp: 0.0 }] {
        found.push(Problem::new(method, &tall));
    }
    for method in [Method::Cgls { damp: 0.7 }, Method::Lsqr { damp: 0.7 }, Method::Lsmr { damp: 0.7 }] {
        let reference = Some(noise(40, 71));
        found.push(Problem { reference, start: noise(40, 72), ..Problem::new(method, &tall) });
    }
    found.push(Problem::new(Method::Cgne, &wide));
    found.push(Problem::new(Method::Cgnr, &tall));
    for as_matrix in [false, true] {
        let diagonal = Some(scaling.clone());
        found.push(Problem { diagonal, as_matrix, ..Problem::new(Method::FlexibleCg, &definite) });
    }
    for method in [Method::Fista, Method::Pdhg] {
        found.push(Problem::new(method, &tall));
    }
    // Without negative entries.
    let mut positive = gallery::poisson_2d::<T>(8, 5.0).unwrap();
    positive.values_mut().iter_mut().for_each(|v| *v = v.abs());
    for omega in [1.0, 1.9] {
        found.push(Problem::new(Method::Sirt { omega }, &positive));
    }
    for method in [Method::Mrnsd, Method::Nnfcgls { restart: 7 }] {
        found.push(Problem { lower: Some(-10.0), ..Problem::new(method, &tall) });
    }
    for subsets in [None, Some([3, 4])] {
        found.push(Problem { subsets, ..Problem::new(Method::Sart { omega: 1.0 }, &positive) });
    }
    found.push(Problem::new(Method::BiCgStab2, &convection));
    for as_matrix in [false, true] {
        found.push(Problem {
            diagonal: Some(scaling.clone()),
            as_matrix,
            ..Problem::new(Method::BiCgStab2, &convection)
        });
    }
    found.push(Problem::new(Method::Mlem, &positive));
    found
}

/// Matrices with empty rows, one long row, no rows, rows of every length class.
pub(crate) fn matrices<T: Real>() -> Vec<(&'static str, Csr<T>)> {
    let uneven = Csr::from_rows(70, 3000, |i, row| {
        let length = match i {
            5 => 2900,
            i if i % 7 == 0 => 0,
            i => i % 20,
        };
        row.extend((0..length as u32).map(|j| (j, T::from_f64((f64::from(j) + i as f64).sin()))));
    });
    let long = 9000;
    vec![
        ("poisson", gallery::poisson_2d::<T>(61, 0.0).unwrap()),
        ("uneven", uneven.unwrap()),
        ("mean 12", overlapping::<T>(500, 90, 6000, 1)),
        ("mean 20", overlapping::<T>(300, 90, 6000, 2)),
        ("mean 40", overlapping::<T>(100, 90, 4000, 3)),
        ("mean 90", overlapping::<T>(100, long, 9000, 4)),
        ("one entry", Csr::from_triplets(1, 1, &[(0, 0, T::from_f64(2.5))]).unwrap()),
        ("no rows", Csr::from_triplets(0, 5, &[]).unwrap()),
        ("no entries", Csr::from_triplets(4, 5, &[]).unwrap()),
    ]
}

/// Every format with its parameters, and those with offsets once more with 64-bit ones.
pub(crate) fn storages<T: Real>(a: &Csr<T>) -> Vec<Storage> {
    let chunk = 32; // the least rows of a reduction chunk: a window that every matrix has
    let pinned =
        (2..=8).map(|block| Format::Bsr { block }).chain([1, 8, chunk].map(|sigma| Format::Sell { sigma }));
    let formats: Vec<Format> = Format::ALL.iter().copied().chain(pinned).chain([Format::Auto]).collect();
    let plain = formats.iter().map(|format| Storage::default().with_format(*format));
    let wide = [Format::Coo, Format::Csr, Format::CsrScalar, Format::CsrAdaptive];
    let wide = wide.map(|format| Storage::default().with_format(format).with_offsets(Offsets::Wide));
    let stored = |s: &Storage| s.format != Format::Dense || a.rows() * a.cols() < 1_000_000;
    plain.chain(wide).filter(stored).map(|s| s.with_transposed(Transposed::Copy)).collect()
}

/// A matrix with too many columns for 16 bits, unless they are counted from the row; no two values are alike.
pub(crate) fn near_the_diagonal<T: Real>() -> Csr<T> {
    let near = Csr::from_rows(70, 70_000, |i, row| {
        let columns = (i % 9..i % 9 + 2 + i % 11).map(|k| (7 * k) as u32);
        row.extend(columns.map(|j| (j, T::from_f64(0.1 * f64::from(j) + i as f64 * 0.37))));
    });
    near.unwrap()
}

/// The formats whose entries can be packed, packed.
pub(crate) fn packed_storages() -> Vec<Storage> {
    use Format::{Coo, Csr, CsrAdaptive, CsrScalar, Dia, Ellpack, EllpackR, Hyb, Sell};
    let formats =
        [Coo, Csr, CsrScalar, CsrAdaptive, Ellpack, EllpackR, Sell { sigma: 1 }, Sell { sigma: 32 }, Hyb, Dia];
    let packed = |format| {
        Storage::default().with_format(format).with_packing(Packing::Always).with_transposed(Transposed::Copy)
    };
    let wide = packed(CsrAdaptive).with_offsets(Offsets::Wide);
    formats.map(packed).into_iter().chain([wide]).collect()
}

/// Scanners with steep and flat rays, rays beside the image, and images with one and with several lanes to a pixel.
pub(crate) fn scanners() -> Vec<(Scanner, Grid)> {
    let angles: Vec<f64> = (0..11).map(|k| f64::from(k) * 33.3 - 20.0).collect();
    let fan = Beam::Fan { source_origin: 70.0, source_detector: 95.0 };
    [(Beam::Parallel, 21), (fan, 40), (Beam::Parallel, 600)]
        .map(|(beam, side)| {
            let angles = if side > 100 { angles[..3].to_vec() } else { angles.clone() };
            let scanner = Scanner { beam, pixels: 45, pitch: 1.3, offset: 0.7, angles };
            (scanner, Grid { side, pixel: 40.0 / side as f64 })
        })
        .to_vec()
}

/// A regularization with everything in it, for an image of `width`.
pub(crate) fn everything(width: usize) -> Regularization {
    Regularization::none()
        .with_tikhonov(0.01)
        .with_smooth(0.05)
        .with_variation(0.2)
        .with_epsilon(0.05)
        .with_lower(-0.2)
        .with_upper(0.4)
        .with_bound_weight(3.0)
        .with_width(width)
}

/// A regularization with everything that PDHG minimises, for an image of `width`.
pub(crate) fn everything_exact(width: usize) -> Regularization {
    Regularization::none()
        .with_tikhonov(0.01)
        .with_variation(0.2)
        .with_directional(0.1)
        .with_direction([0.6, -0.8])
        .with_lower(-0.2)
        .with_upper(0.4)
        .with_width(width)
}
