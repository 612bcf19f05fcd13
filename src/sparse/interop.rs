//! From and to `sprs`.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;

use super::Csr;
use crate::error::{Error, Result};
use crate::number::Real;
use crate::threads;
use sprs::{CsMat, CsMatBase, CsMatI, CsMatViewI, SpIndex};

/// Matrices that functions of this crate take where they ask for one: [`Csr`], and those of `sprs` in row or column order, with indices of any
/// type, owned or views. One of `sprs` is copied to a [`Csr`] by every call, once: what several calls take is better made a [`Csr`] before
/// ([`Csr::from_sprs`], or `Csr::try_from`, which copies nothing).
///
/// ```
/// use residuum::precond::{RowOrdering, Sweep, SweepOptions};
/// use residuum::{Device, Format, Matrix};
///
/// # fn main() -> residuum::Result<()> {
/// let a: sprs::CsMat<f64> = sprs::CsMat::eye(9);
/// let device = Device::host();
/// let matrix = Matrix::new(&device, &a, Format::Auto)?;
/// let preconditioner = Sweep::new(&device, &a.to_csc(), SweepOptions::ssor(1.0).with_ordering(RowOrdering::Rows))?;
/// # let _ = (matrix, preconditioner);
/// # Ok(())
/// # }
/// ```
pub trait AsCsr<T: Real> {
    /// The matrix, borrowed if it is one already.
    ///
    /// # Errors
    /// [`Error::Structure`] when a dimension exceeds 32 bits.
    fn as_csr(&self) -> Result<Cow<'_, Csr<T>>>;
}

impl<T: Real> AsCsr<T> for Csr<T> {
    fn as_csr(&self) -> Result<Cow<'_, Csr<T>>> {
        Ok(Cow::Borrowed(self))
    }
}

impl<T, I, O, Offsets, Indices, Values> AsCsr<T> for CsMatBase<T, I, Offsets, Indices, Values, O>
where
    T: Real,
    I: SpIndex,
    O: SpIndex,
    Offsets: Deref<Target = [O]>,
    Indices: Deref<Target = [I]>,
    Values: Deref<Target = [T]>,
{
    fn as_csr(&self) -> Result<Cow<'_, Csr<T>>> {
        Csr::from_sprs(self).map(Cow::Owned)
    }
}

impl<T: Real, A: AsCsr<T> + ?Sized> AsCsr<T> for &A {
    fn as_csr(&self) -> Result<Cow<'_, Csr<T>>> {
        (**self).as_csr()
    }
}

impl<T: Real, A: AsCsr<T> + ?Sized> AsCsr<T> for Arc<A> {
    fn as_csr(&self) -> Result<Cow<'_, Csr<T>>> {
        (**self).as_csr()
    }
}

impl<T: Real> AsCsr<T> for Cow<'_, Csr<T>> {
    fn as_csr(&self) -> Result<Cow<'_, Csr<T>>> {
        Ok(Cow::Borrowed(&**self))
    }
}

impl<T: Real> Csr<T> {
    /// Copies a matrix of `sprs`, in row or in column order, with indices of any type, its own or a view. Repeated or unsorted entries cannot
    /// occur in one. An owned matrix with indices of `u32` and offsets of `usize` in row order is taken over without a copy by `Csr::try_from`.
    ///
    /// ```
    /// use residuum::{Csr, Device, Format, Matrix, Method, Setup, Solver, Stopping, Vector};
    ///
    /// # fn main() -> residuum::Result<()> {
    /// // A rod of 50 pieces that is held at both ends, built by sprs.
    /// let mut entries = sprs::TriMat::new((50, 50));
    /// for i in 0..50 {
    ///     entries.add_triplet(i, i, 2.0);
    ///     if i > 0 {
    ///         entries.add_triplet(i, i - 1, -1.0);
    ///         entries.add_triplet(i - 1, i, -1.0);
    ///     }
    /// }
    /// let a = Csr::from_sprs(&entries.to_csr::<usize>())?;
    /// let device = Device::host();
    /// let matrix = Matrix::new(&device, &a, Format::Auto)?;
    /// let (b, mut x) = (Vector::from_slice(&device, &[1.0; 50])?, Vector::zeros(&device, 50)?);
    /// let report = Solver::with(&matrix, Setup::new(Method::Cg, Stopping::for_precision::<f64>()))?.solve(&b, &mut x)?;
    /// assert!(report.converged());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Structure`] when a dimension exceeds 32 bits.
    pub fn from_sprs<I, O, Offsets, Indices, Values>(
        matrix: &CsMatBase<T, I, Offsets, Indices, Values, O>,
    ) -> Result<Self>
    where
        I: SpIndex,
        O: SpIndex,
        Offsets: Deref<Target = [O]>,
        Indices: Deref<Target = [I]>,
        Values: Deref<Target = [T]>,
    {
        let (rows, cols) = (matrix.rows(), matrix.cols());
        Self::check_dimensions(rows, cols)?;
        let (outer, inner) = if matrix.is_csr() { (rows, cols) } else { (cols, rows) };
        // Offsets of a slice may begin above 0.
        let offsets = matrix.proper_indptr().iter().map(|offset| offset.index()).collect();
        let indices = threads::numbers(matrix.indices(), threads::LEAST, |_, index| index.index() as u32);
        let by_outer = Self::new(outer, inner, offsets, indices, matrix.data().to_vec())?;
        Ok(if matrix.is_csr() { by_outer } else { by_outer.transpose() })
    }

    /// Copies to a matrix of `sprs` in row order.
    pub fn to_sprs(&self) -> CsMat<T> {
        CsMat::new(
            (self.rows(), self.cols()),
            self.offsets().to_vec(),
            threads::numbers(self.indices(), threads::LEAST, |_, &j| j as usize),
            self.values().to_vec(),
        )
    }

    /// The matrix as `sprs` sees it, without a copy.
    pub fn as_sprs(&self) -> CsMatViewI<'_, T, u32, usize> {
        CsMatViewI::new((self.rows(), self.cols()), self.offsets(), self.indices(), self.values())
    }
}

/// Takes the arrays over without a copy; a matrix in column order is turned into row order.
impl<T: Real> TryFrom<CsMatI<T, u32, usize>> for Csr<T> {
    type Error = Error;

    fn try_from(matrix: CsMatI<T, u32, usize>) -> Result<Self> {
        if !matrix.is_csr() {
            return Self::from_sprs(&matrix);
        }
        let (rows, cols) = (matrix.rows(), matrix.cols());
        let (offsets, indices, values) = matrix.into_raw_storage();
        Self::new(rows, cols, offsets, indices, values)
    }
}

/// Hands the arrays over without a copy.
impl<T: Real> From<Csr<T>> for CsMatI<T, u32, usize> {
    fn from(matrix: Csr<T>) -> Self {
        let shape = (matrix.rows(), matrix.cols());
        let (offsets, indices, values) = matrix.into_parts();
        Self::new(shape, offsets, indices, values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Csr<f64> {
        Csr::from_triplets(3, 4, &[(0, 1, 1.0), (0, 3, 2.0), (2, 0, 3.0)]).expect("valid")
    }

    #[test]
    fn both_storage_orders_of_sprs_come_back() {
        let a = example();
        let there = a.to_sprs();
        assert_eq!(Csr::from_sprs(&there).expect("same"), a);
        assert_eq!(Csr::from_sprs(&there.to_csc()).expect("same"), a);
        // Views, of a part of the rows and of the transposed matrix.
        assert_eq!(Csr::from_sprs(&there.view()).expect("same"), a);
        assert_eq!(Csr::from_sprs(&there.transpose_view()).expect("transposed"), a.transpose());
        let slice = Csr::from_sprs(&there.slice_outer(1..3)).expect("rows 1 and 2");
        assert_eq!((slice.rows(), slice.offsets(), slice.values()), (2, &[0, 0, 1][..], &[3.0][..]));
        let empty = Csr::from_sprs(&CsMat::<f32>::zero((0, 5))).expect("no rows");
        assert_eq!((empty.rows(), empty.cols(), empty.nnz()), (0, 5, 0));
    }

    #[test]
    fn indices_of_every_type_are_taken() {
        fn with<I: SpIndex, O: SpIndex>() {
            let (offsets, indices) = ([0, 2, 2, 3].map(O::from_usize), [1, 3, 0].map(I::from_usize));
            let there = CsMatI::<f64, I, O>::new((3, 4), offsets.to_vec(), indices.to_vec(), vec![1.0, 2.0, 3.0]);
            assert_eq!(Csr::from_sprs(&there).expect("same"), example());
            assert_eq!(Csr::from_sprs(&there.to_csc()).expect("same"), example());
        }
        with::<u16, u16>();
        with::<i32, i32>();
        with::<u32, usize>();
        with::<i64, u32>();
        with::<u64, i32>();
    }

    #[test]
    fn arrays_change_hands_without_a_copy() {
        let a = example();
        let (kept, at) = (a.clone(), a.values().as_ptr());
        assert_eq!(a.as_sprs().data().as_ptr(), at);
        assert_eq!(Csr::from_sprs(&a.as_sprs()).expect("same"), kept);
        let there = CsMatI::from(a);
        assert_eq!(there.data().as_ptr(), at);
        let by_columns = there.to_csc();
        let back = Csr::try_from(there).expect("same");
        assert!(back.values().as_ptr() == at && back == kept);
        assert_eq!(Csr::try_from(by_columns).expect("same"), kept);
    }

    /// Functions that take a matrix take one of `sprs`, with the same bits.
    #[test]
    fn functions_take_matrices_of_sprs() {
        use std::ops::ControlFlow;

        use crate::operator::{LinearOperator, SplitRows};
        use crate::precond::{Ainv, AinvOptions, Preconditioner, Sweep, SweepOptions};
        use crate::sparse::{Ordering, Permutation, gallery};
        use crate::{
            Device, Examination, Format, Matrix, Method, Setup, Stopping, Vector, io, solve_with_fallbacks,
        };
        let device = Device::host();
        let a = gallery::poisson_2d::<f64>(9, 0.1).expect("valid");
        let (rows, columns) = (a.to_sprs(), a.to_sprs().to_csc());
        let x = Vector::from_slice(&device, &(0..81).map(f64::from).collect::<Vec<_>>()).expect("memory");
        let bits = |operator: &dyn LinearOperator<f64>| {
            let mut y = Vector::zeros(&device, 81).expect("memory");
            operator.apply(&x, &mut y).expect("a product");
            y.to_vec().expect("memory").iter().map(|v| v.to_bits()).collect::<Vec<_>>()
        };
        fn all(
            device: &Device,
            a: &impl AsCsr<f64>,
            bits: &dyn Fn(&dyn LinearOperator<f64>) -> Vec<u64>,
        ) -> Vec<Vec<u64>> {
            let matrix = Matrix::with_transpose(device, a, Format::Auto).expect("a matrix");
            matrix.update_values(a).expect("the same places");
            let sweep = Sweep::new(device, a, SweepOptions::ssor(1.2)).expect("a sweep");
            let inverse = Ainv::new(device, a, AinvOptions::sainv(0.1)).expect("an inverse");
            let named = "ic0".parse::<Preconditioner>().expect("a name").build(device, a).expect("factors");
            let order = Permutation::of(a, Ordering::ReverseCuthillMckee).expect("an order");
            let order = order.order().iter().map(|place| u64::from(*place)).collect();
            let split = SplitRows::new(device, a).expect("a matrix");
            let found = format!("{:?}", Examination::of(a).expect("a matrix")).bytes().map(u64::from).collect();
            let (b, mut x) = (Vector::filled(device, 81, 1.0), Vector::zeros(device, 81));
            let vectors = (b.as_ref().expect("memory"), x.as_mut().expect("memory"));
            let setup = Setup::new(Method::Cg, Stopping::for_precision::<f64>());
            let chain = [Some(Preconditioner::Jacobi)];
            let solved = solve_with_fallbacks((&matrix, a, None), &setup, &chain, vectors, &mut |_| {
                ControlFlow::Continue(())
            });
            assert!(solved.expect("a solve").report.converged());
            let answer = x.expect("memory").to_vec().expect("memory").iter().map(|v| v.to_bits()).collect();
            let folder = tempfile::tempdir().expect("a folder");
            let [market, archive] = ["a.mtx", "a.npz"].map(|name| folder.path().join(name));
            io::matrix_market::write_matrix(&market, a).expect("a file");
            io::npz::write_matrix(&archive, a).expect("a file");
            let files = [market, archive].map(|path| {
                let back: Csr<f64> = io::read_matrix(&path, &mut |_, _| ()).expect("a matrix");
                back.values().iter().map(|v| v.to_bits()).collect()
            });
            let most = "fsai"
                .parse::<Preconditioner>()
                .expect("a name")
                .most_bytes(a)
                .expect("a matrix")
                .into_iter()
                .collect();
            let products: [&dyn LinearOperator<f64>; 5] = [&matrix, &sweep, &inverse, &*named.operator, &split];
            let mut all: Vec<Vec<u64>> = products.into_iter().map(bits).collect();
            all.extend([order, found, answer, most]);
            all.extend(files);
            all
        }
        let wanted = all(&device, &a, &bits);
        assert_eq!(all(&device, &rows, &bits), wanted);
        assert_eq!(all(&device, &columns, &bits), wanted);
        assert_eq!(all(&device, &rows.view(), &bits), wanted);
        assert_eq!(all(&device, &&a, &bits), wanted);
    }

    #[test]
    fn what_has_more_than_32_bits_of_columns_is_refused() {
        let wide = CsMat::<f64>::zero((1, (1 << 32) + 1));
        assert!(matches!(Csr::from_sprs(&wide), Err(Error::Structure { .. })));
    }
}
