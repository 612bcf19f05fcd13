//! Checks if one launch can do many iterations of a script. If so, lists its calls, with a number for each matrix and vector that they use.

use super::products::Products;
use crate::backend::linear::product::SharedMatrix;
use crate::backend::script::{Blend, Listing, RESIDENT_MATRICES, RESIDENT_VECTORS, ResidentCall, ResidentWork};
use crate::number::Real;
use crate::solver::script::{Alone, Call, Draft, Launch, Operand, OverImage, Script, Space, VectorId};

/// A vector of a resident launch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Held {
    /// One of the script.
    Vector(VectorId),
    /// One between the factors of an operator.
    Between(Operand, usize),
}

/// Products with each operand, in the order of [`Operand::index`].
pub(crate) type Operands<T> = [Option<Products<T>>];

/// Calls of each kind of iteration, and the matrices and vectors that they name by number.
pub(crate) struct Residence<T: Real> {
    pub(crate) listing: Listing,
    pub(crate) matrices: Vec<SharedMatrix<T>>,
    pub(crate) vectors: Vec<Held>,
}

impl<T: Real> Residence<T> {
    /// The residence of `script` with the products of each operand, if each of its calls has a place in a resident launch.
    pub(crate) fn of(plan: &Draft, script: &Script, products: &Operands<T>) -> Option<Self> {
        // The first matrix may be in any format: that of A.
        let matrices = products[Operand::A.index()].as_ref()?.chain()?;
        let mut numbers = Numbers { matrices, vectors: Vec::new() };
        let mut calls = Vec::with_capacity(script.steps.len());
        for step in &script.steps {
            let mut of_step = Vec::new();
            for call in step {
                numbers.take(plan, call, products, &mut of_step)?;
            }
            calls.push(of_step);
        }
        let Numbers { matrices, vectors } = numbers;
        let fits = matrices.len() <= RESIDENT_MATRICES && vectors.len() <= RESIDENT_VECTORS;
        let listing = Listing::new(calls, &plan.programs).filter(|_| fits)?;
        Some(Self { listing, matrices, vectors })
    }
}

/// Matrices and vectors by the numbers that calls name them by.
struct Numbers<T: Real> {
    matrices: Vec<SharedMatrix<T>>,
    vectors: Vec<Held>,
}

impl<T: Real> Numbers<T> {
    /// Adds what a resident launch does for `call` to `calls`, if it can.
    fn take(
        &mut self,
        plan: &Draft,
        call: &Call,
        products: &Operands<T>,
        calls: &mut Vec<ResidentCall>,
    ) -> Option<()> {
        let block = Some(call.block);
        let work = match &call.launch {
            Launch::Scalars => ResidentWork::Scalars,
            Launch::Alone(Alone::Image(call)) => self.over_image(*call, plan.len(Space::Cols))?,
            Launch::Alone(_) | Launch::Basis(..) | Launch::Pixels(_) => return None,
            Launch::Update { space, pass, vectors } => {
                let mut numbers = [0; _];
                for (k, number) in numbers.iter_mut().enumerate().filter(|(k, _)| pass.takes(*k)) {
                    *number = self.vector(Held::Vector(vectors[k]))?;
                }
                ResidentWork::Pass { n: plan.len(*space), pass: pass.clone(), vectors: numbers }
            }
            Launch::Product { of, x, w, z, y, blend, .. } => {
                let chain = products[of.index()].as_ref()?.chain()?;
                let (last, before) = chain.split_last()?;
                let mut x = self.vector(Held::Vector(*x))?;
                for (k, factor) in before.iter().enumerate() {
                    let y = self.vector(Held::Between(*of, k))?;
                    calls.push(ResidentCall {
                        block: None,
                        work: self.product(factor, [x, x, x, y], Blend::PLAIN)?,
                    });
                    x = y;
                }
                let [w, z, y] = [w, z, y].map(|v| self.vector(Held::Vector(*v)));
                self.product(last, [x, w?, z?, y?], *blend)?
            }
        };
        calls.push(ResidentCall { block, work });
        Some(())
    }

    /// A call over an image of `n` pixels.
    fn over_image(&mut self, call: OverImage, n: usize) -> Option<ResidentWork> {
        let (OverImage::Ascend { field, .. } | OverImage::Subtract { field, .. }) = call;
        let image = field.variation(n);
        let [px, py] = field.p;
        let mut numbers = |v: VectorId| self.vector(Held::Vector(v));
        // Without a direction any vector may stand for q.
        let (px, py, q) = (numbers(px)?, numbers(py)?, numbers(field.q.unwrap_or(px))?);
        Some(match call {
            OverImage::Ascend { x, last_x, .. } => {
                ResidentWork::Ascent { image, vectors: [px, py, q, numbers(x)?, numbers(last_x)?] }
            }
            OverImage::Subtract { g, .. } => ResidentWork::Subtraction { image, vectors: [px, py, q, numbers(g)?] },
        })
    }

    fn product(&mut self, matrix: &SharedMatrix<T>, vectors: [u8; 4], blend: Blend) -> Option<ResidentWork> {
        let known = self.matrices.iter().position(|known| known.is(matrix));
        let number = known.unwrap_or_else(|| {
            self.matrices.push(matrix.clone());
            self.matrices.len() - 1
        });
        let stored = matrix.read();
        let (rows, stride) = (stored.rows, stored.stride);
        Some(ResidentWork::Product { matrix: u8::try_from(number).ok()?, rows, stride, vectors, blend })
    }

    /// The number of a vector.
    fn vector(&mut self, held: Held) -> Option<u8> {
        if held == Held::Vector(crate::solver::script::B) {
            return None;
        }
        let known = self.vectors.iter().position(|known| *known == held);
        let number = known.unwrap_or_else(|| {
            self.vectors.push(held);
            self.vectors.len() - 1
        });
        // Four bits hold it.
        u8::try_from(number).ok().filter(|number| usize::from(*number) < RESIDENT_VECTORS)
    }
}

#[cfg(test)]
mod tests {
    use super::super::operands::{Operators, factors};
    use super::*;
    use crate::backend::script::Edges;
    use crate::backend::script::resident::{GOES_ON, LENGTH};
    use crate::device::Device;
    use crate::matrix::Matrix;
    use crate::operator::SharedOperator;
    use crate::solver::Method;
    use crate::solver::method::scripts::Task;
    use crate::solver::script::CgnrKernels;
    use crate::solver::script::Neighbours;
    use crate::solver::script::Preconditioning;
    use crate::solver::script::subset_rows;
    use crate::sparse::{Format, gallery};

    /// PDHG with a direction names as many vectors as a launch takes.
    #[test]
    fn pdhg_with_neighbours_has_a_place_and_no_more_meetings() {
        let a = gallery::random::<f64>(30, 60, 300, 3).expect("a matrix");
        let matrix = Matrix::with_transpose(&Device::host(), &a, Format::Csr).expect("it fits");
        let a: SharedOperator<f64> = matrix.into();
        // The vectors that its iterations name, and whether groups go on after each call.
        let place = |neighbours: Neighbours| {
            let mut plan = Draft::new([30, 60], &[30], 1);
            let task = Task {
                preconditioning: Preconditioning::None,
                rows: 30,
                epsilon: f64::EPSILON,
                operator: 0,
                preconditioned: 0,
                neighbours,
                curved: None,
                edges: Edges::default(),
                kernels: CgnrKernels::default(),
                subsets: subset_rows(&a),
            };
            let script = Method::Pdhg.script(&mut plan, &task);
            let operators = Operators { a: &a, preconditioner: None, penalty: None, exponents: [0; 2] };
            let products = factors(&operators, &script, 1, Preconditioning::None).expect("they fit");
            let Residence { listing, vectors, .. } =
                Residence::of(&plan, &script, &products).expect("each call has a place");
            let (list, mut goes_on) = (listing.words, Vec::new());
            let mut at = list[1] as usize;
            while at < list[2] as usize {
                goes_on.push(list[at + GOES_ON]);
                at += list[at + LENGTH] as usize;
            }
            (vectors.len(), goes_on)
        };
        let width = 10;
        assert_eq!(place(Neighbours::default()), (10, vec![0; 4]));
        assert_eq!(place(Neighbours { width, directional: false }), (12, vec![1, 0, 1, 0, 0, 0]));
        assert_eq!(place(Neighbours { width, directional: true }), (RESIDENT_VECTORS, vec![1, 0, 1, 0, 0, 0]));
    }
}
