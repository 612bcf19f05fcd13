//! A penalty of a user's own: `weight sum_p sqrt(|D x|_p² + edge²)` in an image, by operations of the library.

use residuum::operator::LinearOperator;
use residuum::sparse::gallery;
use residuum::{Device, Format, Matrix, Penalty, Pointwise, Real, Result, Vector};

pub(crate) struct Edges<T: Real> {
    differences: [Matrix<T>; 2],
    weigh: Pointwise<T, 3, 2>,
    of_x: [Vector<T>; 2],
    of_v: Vector<T>,
    weighted: Vector<T>,
    back: Vector<T>,
    pub(crate) weight: T,
    edge: T,
    columns: usize,
    curved: bool,
}

impl<T: Real> Edges<T> {
    pub(crate) fn new(device: &Device, shape: [usize; 2], [weight, edge]: [f64; 2], columns: usize) -> Self {
        let n = columns * shape[0] * shape[1];
        let matrix = |axis| {
            let d = gallery::differences::<T>([shape[0], shape[1], 1], axis).unwrap();
            Matrix::with_transpose(device, &d, Format::Csr).unwrap()
        };
        let vector = || Vector::zeros(device, n).unwrap();
        let text = "quotient(p0 * x2, root(x0 * x0 + x1 * x1 + p1))";
        let weigh = Pointwise::new(device, text, |m, [a, b, v], [weight, least]: [T; 2]| {
            m.quotient(weight * v, m.root(a * a + b * b + least))
        });
        Self {
            differences: [matrix(0), matrix(1)],
            weigh: weigh.unwrap(),
            of_x: [vector(), vector()],
            of_v: vector(),
            weighted: vector(),
            back: vector(),
            weight: T::from_f64(weight),
            edge: T::from_f64(edge),
            columns,
            curved: true,
        }
    }

    /// With or without telling the solver of its curvature.
    pub(crate) fn with_curvature(self, curved: bool) -> Self {
        Self { curved, ..self }
    }

    fn product(&mut self, x: &Vector<T>, v: &Vector<T>, out: &mut Vector<T>) -> Result<()> {
        let Self { differences, weigh, of_x, of_v, weighted, back, weight, edge, columns, .. } = self;
        out.fill(T::default())?;
        for (d, of_x) in differences.iter().zip(&mut *of_x) {
            d.apply_columns(*columns, x, of_x)?;
        }
        let [across, down] = of_x;
        for d in differences {
            d.apply_columns(*columns, v, of_v)?;
            weigh.apply([across, down, of_v], [*weight, *edge * *edge], weighted)?;
            d.apply_adjoint_columns(*columns, weighted, back)?;
            out.axpby(T::from_f64(1.0), back, T::from_f64(1.0))?;
        }
        Ok(())
    }
}

impl<T: Real> Penalty<T> for Edges<T> {
    fn gradient(&mut self, x: &Vector<T>, out: &mut Vector<T>) -> Result<()> {
        self.product(x, x, out)
    }
    fn has_curvature(&self) -> bool {
        self.curved
    }
    fn curvature(&mut self, x: &Vector<T>, v: &Vector<T>, out: &mut Vector<T>) -> Result<()> {
        assert!(self.curved, "a curvature that it says not to have");
        self.product(x, v, out)
    }
    fn norm_bound(&self) -> f64 {
        8.0 * self.weight.to_f64() / self.edge.to_f64()
    }
    fn columns(&self) -> usize {
        self.columns
    }
}
