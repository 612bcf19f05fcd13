//! The vocabulary on an OpenCL device: each word becomes launches of the kernels of the same name.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use super::witness::Seen;
use super::{
    AnyStored, Blend, CgVectors, CgnrShape, CgnrVectors, Memory, PASS_VECTORS, Part, Pass, Reduction, Run,
    SolveState, Statement, StepCall, StepState, Stored, Triangle, Vocabulary,
};
use crate::error::{Result, same_length};
use crate::kernels::{cg, cgnr, pass, product, reduce, scatter, step, sweep, vector};
use crate::number::{Element, Real, Sum};
use crate::ocl::{Buffer, Context, Launch, Variant};
use crate::reduction::{Chunks, MOST_CHUNKS};
use crate::sparse::{Arrangement, Kind, LONG_LANES, MIDDLE_LANES, TILE_SIDE};
use crate::tuning::{Asked, Case, Family, Parameters, Reading, SizeClass};

/// An opened OpenCL device.
#[derive(Debug)]
pub(crate) struct OpenCl {
    pub(crate) context: Arc<Context>,
    /// Chunk sums and result of the reductions that users ask for, made on first use.
    scratch: Mutex<Option<[Buffer<Sum>; 2]>>,
    /// What each group adds to a transposed product, made on first use.
    held: Mutex<Option<Buffer<Sum>>>,
    /// What was compared with the host.
    /// Boxed, because the host back end beside it is small.
    pub(super) seen: Box<Seen>,
}

impl OpenCl {
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self { context, scratch: Mutex::new(None), held: Mutex::new(None), seen: Box::default() }
    }

    /// The variant of a kernel that uses none of the optional constants.
    fn variant<T: Real>(&self, run: Run<'_>, work_group: usize, lanes: usize) -> Variant {
        Variant {
            precision: T::PRECISION,
            accumulation: run.accumulation,
            work_group: self.context.synchronised(work_group) as u32,
            lanes: lanes as u32,
            pixel_lanes: 1,
            format: 0,
            wide: 0,
            block: 1,
            row_lanes: 1,
            other_format: 0,
            other_lanes: 1,
            staged: 0,
            loads: 8,
            columns: 1,
            gather: 1,
            edges: 0,
            part: 0,
            operation: 0,
            blend: 0,
            statements: [NO_STATEMENT; 4],
            touched: 0,
            dots: 0,
            ptx: u32::from(self.context.info().resident_groups > 1),
            registers: 0,
        }
    }

    fn parameters(&self, run: Run<'_>, asked: &Asked) -> Parameters {
        run.tuning.parameters(asked, self.context.info())
    }

    /// How a kernel that multiplies nothing is launched over `chunks`.
    fn plain<T: Real>(&self, run: Run<'_>, family: Family, chunks: Chunks) -> Parameters {
        let case = Case { family, reading: None, precision: T::PRECISION, size: SizeClass::of(chunks.len) };
        let asked = Asked { case, n: chunks.len, chunk: chunks.chunk, shared: 0, longest: 0, columns: 1 };
        self.parameters(run, &asked)
    }

    /// The variant of a kernel that multiplies by `a` in chunks of `chunk` rows and reduces in `lanes` lanes, and how it is
    /// launched; for work on `n` rows in all.
    fn row_variant<T: Real>(
        &self,
        run: Run<'_>,
        family: Family,
        a: &Stored<Self, T>,
        n: usize,
        [chunk, lanes]: [usize; 2],
        columns: usize,
    ) -> (Variant, Parameters) {
        let shared = match a.longer {
            // Neighbouring items take neighbouring rows, 32 of them at once.
            [0, 0] if a.arrangement.kind == Kind::Dense => 32 * a.arrangement.lanes,
            [0, 0] => a.arrangement.lanes,
            [_, 0] => MIDDLE_LANES,
            _ => LONG_LANES,
        };
        let reading = Some(Reading::of(a.arrangement.kind, a.arrangement.lanes));
        let case = Case { family, reading, precision: T::PRECISION, size: SizeClass::of(n) };
        let found = self.parameters(run, &Asked { case, n, chunk, shared, longest: a.longest, columns });
        let plain = self.variant::<T>(run, found.work_group, lanes);
        let variant = Variant {
            format: a.arrangement.kind as u32,
            wide: u32::from(a.arrangement.wide),
            block: a.arrangement.block as u32,
            row_lanes: a.arrangement.lanes as u32,
            other_format: a.arrangement.kind as u32,
            other_lanes: a.arrangement.lanes as u32,
            columns: columns as u32,
            loads: found.loads as u32,
            registers: if plain.ptx == 1 { found.registers as u32 } else { 0 },
            ..plain
        };
        (variant, found.in_groups_of(variant.work_group as usize))
    }

    fn units(&self) -> usize {
        self.context.info().compute_units
    }

    /// Launch of an element-by-element kernel, and the elements of a group.
    fn elements<T: Real>(&self, run: Run<'_>, n: usize) -> (Launch, u32) {
        let chunks = Chunks::of(n);
        let found = self.plain::<T>(run, Family::Vector, chunks);
        let (groups, per_group) = found.share(chunks, self.units());
        // No barriers: any size will do, on any driver.
        let work_group = found.work_group as u32;
        let variant = Variant { work_group, ..self.variant::<T>(run, found.work_group, 1) };
        (Launch { groups, variant }, (per_group * chunks.chunk) as u32)
    }
}

impl OpenCl {
    /// Groups that each hold a result of their own in local memory, and the rows of a group, where it fits there and
    /// adding those of all groups is less work than the product.
    fn holding<T: Real>(&self, run: Run<'_>, a: &Stored<Self, T>) -> Option<(Launch, u32)> {
        let info = self.context.info();
        let places = a.cols.max(1).next_multiple_of(1024);
        // Half of it, so that two groups find room on a compute unit.
        if (places * T::PRECISION.bytes()) as u64 > info.local_memory / 2 {
            return None;
        }
        let groups = 2 * info.compute_units.max(1);
        if groups * a.cols > a.values.len() {
            return None;
        }
        let span = a.rows.div_ceil(groups).max(1);
        let work_group = self.plain::<T>(run, Family::Scatter, Chunks::of(a.rows)).work_group;
        let variant = Variant { block: places as u32, ..self.variant::<T>(run, work_group, 1) };
        Some((Launch { groups: a.rows.div_ceil(span), variant }, span as u32))
    }

    fn scatter_held<T: Real>(
        &self,
        run: Run<'_>,
        a: &Stored<Self, T>,
        launch: Launch,
        span: u32,
        x: &Buffer<T>,
        y: &mut Buffer<T>,
    ) -> Result<()> {
        let needed = launch.groups * a.cols;
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let held = match &mut *held {
            Some(buffer) if buffer.len() >= needed => buffer,
            // Filled, although the kernel writes all of it: Oclgrind 21 forgets what kernels write to memory that was given
            // back and lent again.
            small => small.insert(self.filled(needed, Sum::default())?),
        };
        let (n, cols) = (a.rows as u32, a.cols as u32);
        let (rows, indices, values) = (&a.pointers, &a.indices, &a.values);
        scatter::scatter_held(&self.context, launch, n, cols, span, rows, indices, values, x, held)?;
        let variant = Variant { block: 1, ..self.variant::<T>(run, run.tuning.work_group, 1) };
        let at_once = if variant.work_group < 8 { variant.work_group } else { variant.work_group / 8 };
        let folding = Launch { groups: a.cols.div_ceil(at_once as usize), variant };
        scatter::fold_held::<T>(&self.context, folding, cols, launch.groups as u32, held, y)
    }
}

impl Vocabulary for OpenCl {
    type Buffer<E: Element> = Buffer<E>;

    fn buffer<'a, E: Element>(&self, memory: &'a Memory<E>) -> Option<&'a Buffer<E>> {
        match memory {
            Memory::OpenCl(buffer) if Arc::ptr_eq(buffer.context(), &self.context) => Some(buffer),
            _ => None,
        }
    }

    fn buffer_mut<'a, E: Element>(&self, memory: &'a mut Memory<E>) -> Option<&'a mut Buffer<E>> {
        match memory {
            Memory::OpenCl(buffer) if Arc::ptr_eq(buffer.context(), &self.context) => Some(buffer),
            _ => None,
        }
    }

    fn memory<E: Element>(buffer: Buffer<E>) -> Memory<E> {
        Memory::OpenCl(buffer)
    }

    fn stored<'a, T: Real>(&self, any: &'a AnyStored<T>) -> Option<&'a Stored<Self, T>> {
        match any {
            AnyStored::OpenCl(stored) if Arc::ptr_eq(stored.values.context(), &self.context) => Some(stored),
            _ => None,
        }
    }

    fn any<T: Real>(stored: Stored<Self, T>) -> AnyStored<T> {
        AnyStored::OpenCl(stored)
    }

    fn upload<E: Element>(&self, data: &[E]) -> Result<Buffer<E>> {
        Buffer::from_slice(&self.context, data)
    }

    fn take<E: Element>(&self, data: Vec<E>) -> Result<Buffer<E>> {
        self.upload(&data)
    }

    fn filled<E: Element>(&self, len: usize, value: E) -> Result<Buffer<E>> {
        Buffer::filled(&self.context, len, value)
    }

    fn write<E: Element>(&self, buffer: &mut Buffer<E>, data: &[E]) -> Result<()> {
        self.context.write(buffer, 0, data)
    }

    fn read<E: Element>(&self, buffer: &Buffer<E>, offset: usize, data: &mut [E]) -> Result<()> {
        self.context.read(buffer, offset, data)
    }

    fn read_both<E: Element, F: Element>(
        &self,
        one: (&Buffer<E>, &mut [E]),
        other: (&Buffer<F>, &mut [F]),
    ) -> Result<()> {
        self.context.read_both(one, other)
    }

    fn copy<E: Element>(&self, source: &Buffer<E>, target: &mut Buffer<E>) -> Result<()> {
        self.context.copy(source, target)
    }

    fn fill<T: Real>(&self, run: Run<'_>, n: usize, value: T, x: &mut Buffer<T>) -> Result<()> {
        let (launch, span) = self.elements::<T>(run, n);
        vector::fill(&self.context, launch, n as u32, span, value, x)
    }

    fn scale<T: Real>(&self, run: Run<'_>, n: usize, alpha: T, x: &Buffer<T>, y: &mut Buffer<T>) -> Result<()> {
        let (launch, span) = self.elements::<T>(run, n);
        vector::scale(&self.context, launch, n as u32, span, alpha, x, y)
    }

    fn rescale<T: Real>(&self, run: Run<'_>, n: usize, alpha: T, x: &mut Buffer<T>) -> Result<()> {
        let (launch, span) = self.elements::<T>(run, n);
        vector::rescale(&self.context, launch, n as u32, span, alpha, x)
    }

    fn axpby<T: Real>(
        &self,
        run: Run<'_>,
        n: usize,
        alpha: T,
        beta: T,
        x: &Buffer<T>,
        y: &mut Buffer<T>,
    ) -> Result<()> {
        let (launch, span) = self.elements::<T>(run, n);
        vector::axpby(&self.context, launch, n as u32, span, alpha, beta, x, y)
    }

    fn multiply_elements<T: Real>(
        &self,
        run: Run<'_>,
        n: usize,
        x: &Buffer<T>,
        y: &Buffer<T>,
        z: &mut Buffer<T>,
    ) -> Result<()> {
        let (launch, span) = self.elements::<T>(run, n);
        vector::multiply_elements(&self.context, launch, n as u32, span, x, y, z)
    }

    fn clamp_elements<T: Real>(&self, run: Run<'_>, n: usize, lower: T, upper: T, x: &mut Buffer<T>) -> Result<()> {
        let (launch, span) = self.elements::<T>(run, n);
        vector::clamp_elements(&self.context, launch, n as u32, span, lower, upper, x)
    }

    fn reduce<T: Real>(
        &self,
        run: Run<'_>,
        n: usize,
        [columns, column]: [usize; 2],
        reduction: Reduction,
        x: &Buffer<T>,
        y: &Buffer<T>,
    ) -> Result<f64> {
        let chunks = Chunks::of(n);
        let work_group = self.plain::<T>(run, Family::Reduce, chunks).work_group;
        let variant = Variant { operation: reduction as u32, ..self.variant::<T>(run, work_group, chunks.lanes) };
        let mut scratch = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        let [sums, result] = match &mut *scratch {
            Some(buffers) => buffers,
            empty => empty.insert([Buffer::new(&self.context, MOST_CHUNKS)?, Buffer::new(&self.context, 1)?]),
        };
        let launch = Launch { groups: chunks.count, variant };
        reduce::reduce_chunks::<T>(
            &self.context,
            launch,
            n as u32,
            chunks.chunk as u32,
            columns as u32,
            column as u32,
            x,
            y,
            sums,
        )?;
        // The second level is the same for every length: one variant serves all.
        let launch = Launch { groups: 1, variant: Variant { lanes: 1, ..variant } };
        reduce::reduce_sums::<T>(&self.context, launch, chunks.count as u32, sums, result)?;
        let mut sum = [Sum::default()];
        self.context.read(result, 0, &mut sum)?;
        Ok(sum[0].value(run.accumulation))
    }

    fn multiply<T: Real>(
        &self,
        run: Run<'_>,
        a: &Stored<Self, T>,
        columns: usize,
        x: &Buffer<T>,
        y: &mut Buffer<T>,
    ) -> Result<()> {
        let chunks = Chunks::of(a.rows);
        // Without a reduction the lanes do not matter: one variant serves all lengths.
        let (variant, found) = self.row_variant(run, Family::Product, a, a.rows, [chunks.chunk, 1], columns);
        let items = found.work_group;
        let (groups, rows) = if let Arrangement { kind: Kind::Backproject, lanes: 1, .. } = a.arrangement {
            let squares = a.rows.isqrt().div_ceil(TILE_SIDE).pow(2);
            (squares.div_ceil(items), items)
        } else {
            let rows = found.rows_of_group(chunks, (items / a.arrangement.lanes).max(1), self.units());
            (a.rows.div_ceil(rows), rows)
        };
        let longer_groups = match a.arrangement.kind {
            Kind::Adaptive => a.longer[0].div_ceil((items / MIDDLE_LANES).max(1)) + a.longer[1],
            _ => 0,
        };
        let launch = Launch { groups: groups + longer_groups, variant };
        let (n, chunk, stride) = (a.rows as u32, rows as u32, a.stride as u32);
        let (rows, indices, values) = (&a.pointers, &a.indices, &a.values);
        product::multiply(&self.context, launch, a.cols, columns, n, chunk, stride, rows, indices, values, x, y)
    }

    fn scatter<T: Real>(&self, run: Run<'_>, a: &Stored<Self, T>, x: &Buffer<T>, y: &mut Buffer<T>) -> Result<()> {
        if let Some((launch, span)) = self.holding::<T>(run, a) {
            return self.scatter_held(run, a, launch, span, x, y);
        }
        self.fill(run, a.cols, T::default(), y)?;
        let (launch, span) = self.elements::<T>(run, a.rows);
        let (rows, indices, values) = (&a.pointers, &a.indices, &a.values);
        scatter::scatter(&self.context, launch, a.cols, a.rows as u32, span, rows, indices, values, x, y)
    }

    fn residual<T: Real>(
        &self,
        run: Run<'_>,
        a: &Stored<Self, T>,
        columns: usize,
        x: &Buffer<T>,
        b: &Buffer<T>,
        r: &mut Buffer<T>,
        sums: &mut Buffer<Sum>,
        place: usize,
    ) -> Result<()> {
        let chunks = Chunks::of(a.rows);
        let cut = [chunks.chunk, chunks.lanes];
        let (variant, _) = self.row_variant(run, Family::StepProduct, a, a.rows, cut, columns);
        let launch = Launch { groups: chunks.count, variant };
        let (n, chunk, stride) = (a.rows as u32, chunks.chunk as u32, a.stride as u32);
        let (rows, indices, values) = (&a.pointers, &a.indices, &a.values);
        let pending = self.pending("residual", run, a, columns, r, None)?;
        product::residual(
            &self.context,
            launch,
            a.cols,
            columns,
            n,
            chunk,
            stride,
            place as u32,
            rows,
            indices,
            values,
            x,
            b,
            r,
            sums,
        )?;
        match pending {
            Some(pending) => self.compare_residual(pending, run, a, columns, [x, b, r], sums, place),
            None => Ok(()),
        }
    }

    fn sweep<T: Real>(
        &self,
        run: Run<'_>,
        levels: Range<usize>,
        widest: usize,
        keep: Option<T>,
        triangle: &Triangle<'_, Self, T>,
        x: &Buffer<T>,
        z: &mut Buffer<T>,
    ) -> Result<()> {
        let found = self.plain::<T>(run, Family::Sweep, Chunks::of(triangle.scale.len()));
        let variant = self.variant::<T>(run, found.work_group, 1);
        let variant = Variant { operation: u32::from(keep.is_some()), ..variant };
        let most = found.most_groups(self.units());
        let groups = if levels.len() > 1 { 1 } else { widest.div_ceil(variant.work_group as usize).clamp(1, most) };
        let Triangle { bounds, list, offsets, indices, values, scale } = *triangle;
        let (first, last, keep) = (levels.start as u32, levels.end as u32, keep.unwrap_or_default());
        let launch = Launch { groups, variant };
        sweep::sweep(&self.context, launch, first, last, keep, bounds, list, offsets, indices, values, scale, x, z)
    }

    fn cg_product<T: Real>(
        &self,
        run: Run<'_>,
        a: &Stored<Self, T>,
        p: &Buffer<T>,
        q: &mut Buffer<T>,
        state: &mut SolveState<Self>,
    ) -> Result<()> {
        let chunks = Chunks::of(a.rows);
        let cut = [chunks.chunk, chunks.lanes];
        let (variant, _) = self.row_variant(run, Family::CgProduct, a, a.rows, cut, 1);
        let launch = Launch { groups: chunks.count + 1, variant };
        let norms = self.cg_norms::<T>(run, chunks.count, state)?;
        cg::cg_product(
            &self.context,
            launch,
            a.rows as u32,
            chunks.chunk as u32,
            a.stride as u32,
            &a.pointers,
            &a.indices,
            &a.values,
            p,
            q,
            &mut state.sums,
            &mut state.control,
            &mut state.status,
            &mut state.history,
        )?;
        self.compare_norms::<T>("CG", run, norms, &state.history)
    }

    fn cg_update<T: Real>(
        &self,
        run: Run<'_>,
        n: usize,
        q: &Buffer<T>,
        x: &mut Buffer<T>,
        r: &mut Buffer<T>,
        p: &mut Buffer<T>,
        state: &mut SolveState<Self>,
    ) -> Result<()> {
        let chunks = Chunks::of(n);
        let found = self.plain::<T>(run, Family::CgUpdate, chunks);
        let (groups, per_group) = found.share(chunks, self.units());
        let launch = Launch { groups, variant: self.variant::<T>(run, found.work_group, chunks.lanes) };
        cg::cg_update(
            &self.context,
            launch,
            n as u32,
            chunks.chunk as u32,
            chunks.count as u32,
            per_group as u32,
            q,
            x,
            r,
            p,
            &mut state.sums,
            &mut state.control,
            &mut state.status,
        )
    }

    fn cg_stays_resident<T: Real>(&self, run: Run<'_>, a: &Stored<Self, T>) -> bool {
        run.tuning.stays_resident(a.rows, a.values.len())
    }

    fn cg_resident<T: Real>(
        &self,
        run: Run<'_>,
        a: &Stored<Self, T>,
        iterations: usize,
        vectors: CgVectors<'_, Self, T>,
        state: &mut SolveState<Self>,
    ) -> Result<()> {
        let CgVectors { x, r, p, q } = vectors;
        let chunks = Chunks::of(a.rows);
        let cut = [chunks.chunk, chunks.lanes];
        let (variant, found) = self.row_variant(run, Family::CgResident, a, a.rows, cut, 1);
        // Every group has the same number of chunks, as many as it can work on side by side or a multiple.
        let at_once = (found.work_group / chunks.lanes).max(1);
        let per_group = chunks.count.div_ceil(run.tuning.resident_groups.max(1)).next_multiple_of(at_once);
        let launch = Launch { groups: chunks.count.div_ceil(per_group), variant };
        cg::cg_resident(
            &self.context,
            launch,
            a.rows as u32,
            chunks.chunk as u32,
            a.stride as u32,
            chunks.count as u32,
            per_group as u32,
            iterations as u32,
            &a.pointers,
            &a.indices,
            &a.values,
            p,
            q,
            x,
            r,
            &mut state.sums,
            &mut state.control,
            &mut state.status,
            &mut state.history,
        )
    }

    fn cgnr_forward<T: Real>(
        &self,
        run: Run<'_>,
        shape: CgnrShape,
        a: &Stored<Self, T>,
        turn: usize,
        mut vectors: CgnrVectors<'_, Self, T>,
        state: &mut SolveState<Self>,
    ) -> Result<()> {
        let (rows, cols) = (Chunks::of(a.rows), Chunks::of(a.cols));
        let cut = [rows.chunk, rows.lanes];
        let (variant, _) = self.row_variant(run, Family::CgnrForward, a, a.rows, cut, shape.columns);
        let variant = Variant {
            gather: 2,
            edges: shape.edges,
            part: shape.part as u32,
            pixel_lanes: cols.lanes as u32,
            ..variant
        };
        let groups = match shape.part {
            Part::All => 1 + rows.count + cols.count,
            Part::Rows => rows.count,
            Part::Pixels => 1 + cols.count,
        };
        let launch = Launch { groups, variant };
        let words = words(rows, cols, shape.width, a.stride);
        let norms = match shape.part {
            Part::Rows => None, // the other part tests
            _ => self.cgnr_norms::<T>(run, shape.columns, [a.rows, a.cols], state)?,
        };
        let (d_old, d_new) = turned(&mut vectors.d, turn);
        cgnr::cgnr_forward(
            &self.context,
            launch,
            shape.columns,
            shape.edges,
            &words,
            &a.pointers,
            &a.indices,
            &a.values,
            vectors.s[turn],
            d_old,
            vectors.x[turn],
            vectors.phi,
            d_new,
            vectors.q,
            &mut state.sums,
            &mut state.control,
            &mut state.status,
            &mut state.history,
        )?;
        self.compare_norms::<T>("CGNR", run, norms, &state.history)
    }

    fn cgnr_backward<T: Real>(
        &self,
        run: Run<'_>,
        shape: CgnrShape,
        at: &Stored<Self, T>,
        turn: usize,
        mut vectors: CgnrVectors<'_, Self, T>,
        state: &mut SolveState<Self>,
    ) -> Result<()> {
        let (rows, cols) = (Chunks::of(at.cols), Chunks::of(at.rows));
        let cut = [cols.chunk, rows.lanes];
        let (variant, _) = self.row_variant(run, Family::CgnrBackward, at, at.rows, cut, shape.columns);
        let variant = Variant {
            gather: 2,
            edges: shape.edges,
            part: shape.part as u32,
            pixel_lanes: cols.lanes as u32,
            ..variant
        };
        let groups = match shape.part {
            Part::All => rows.count + cols.count,
            Part::Rows => rows.count,
            Part::Pixels => cols.count,
        };
        let launch = Launch { groups, variant };
        let words = words(rows, cols, shape.width, at.stride);
        let (r, r_new) = turned(&mut vectors.r, turn);
        let (x, x_new) = turned(&mut vectors.x, turn);
        let (s, s_new) = turned(&mut vectors.s, turn);
        cgnr::cgnr_backward(
            &self.context,
            launch,
            shape.columns,
            shape.edges,
            &words,
            &at.pointers,
            &at.indices,
            &at.values,
            r,
            vectors.q,
            x,
            vectors.d[1 - turn],
            s,
            r_new,
            x_new,
            s_new,
            vectors.phi,
            &mut state.sums,
            &mut state.control,
            &mut state.status,
        )
    }

    fn cgnr_stays_resident<T: Real>(&self, run: Run<'_>, a: &Stored<Self, T>, at: &Stored<Self, T>) -> bool {
        // Both formats are in one program: those that need nothing but where a row starts.
        let simple = |stored: &Stored<Self, T>| {
            use Kind::{Csr, Dense, Ellpack, EllpackR, Sliced, Sorted};
            matches!(stored.arrangement.kind, Csr | EllpackR | Ellpack | Sliced | Sorted | Dense)
                && !stored.arrangement.wide
        };
        simple(a) && simple(at) && run.tuning.stays_resident(a.rows + a.cols, a.values.len() + at.values.len())
    }

    fn cgnr_resident<T: Real>(
        &self,
        run: Run<'_>,
        shape: CgnrShape,
        a: &Stored<Self, T>,
        at: &Stored<Self, T>,
        turns: Range<usize>,
        vectors: CgnrVectors<'_, Self, T>,
        state: &mut SolveState<Self>,
    ) -> Result<()> {
        let info = self.context.info();
        let (rows, cols) = (Chunks::of(a.rows), Chunks::of(a.cols));
        let most = run.tuning.resident_groups.max(1);
        let (rows_each, cols_each) = (rows.count.div_ceil(most).max(1), cols.count.div_ceil(most).max(1));
        // Groups without rows take the pixels where those have less to do.
        let (with_rows, with_cols) = (rows.count.div_ceil(rows_each), cols.count.div_ceil(cols_each));
        let groups = with_rows.max(with_cols).max(most.min(with_rows + cols.count)).max(1);
        let (n, cut) = (a.rows + a.cols, [rows.chunk, rows.lanes]);
        let (row_variant, found) = self.row_variant(run, Family::CgnrResident, a, n, cut, shape.columns);
        // The direction is formed in local memory where it fits beside the sums and a group reads more than all of it.
        let places = (a.cols * shape.columns).next_multiple_of(1024);
        let fits = (places * T::PRECISION.bytes()) as u64 <= info.local_memory / 3;
        let gain = fits && found.work_group > 1 && a.values.len() / groups > a.cols;
        let variant = Variant {
            gather: 2,
            edges: shape.edges,
            pixel_lanes: cols.lanes as u32,
            other_format: at.arrangement.kind as u32,
            other_lanes: at.arrangement.lanes as u32,
            staged: if gain { places as u32 } else { 0 },
            ..row_variant
        };
        let words = words(rows, cols, shape.width, a.stride);
        let CgnrVectors { x: [x0, x1], r: [r0, r1], s: [s0, s1], d: [d0, d1], q, phi } = vectors;
        cgnr::cgnr_resident(
            &self.context,
            Launch { groups, variant },
            shape.columns,
            shape.edges,
            &words,
            at.stride as u32,
            rows_each as u32,
            cols_each as u32,
            turns.len() as u32,
            (turns.start % 2) as u32,
            &a.pointers,
            &a.indices,
            &a.values,
            &at.pointers,
            &at.indices,
            &at.values,
            x0,
            x1,
            r0,
            r1,
            s0,
            s1,
            d0,
            d1,
            q,
            phi,
            &mut state.sums,
            &mut state.control,
            &mut state.status,
            &mut state.history,
        )
    }

    fn step_scalars<T: Real>(&self, run: Run<'_>, call: StepCall, state: &mut StepState<Self>) -> Result<()> {
        let variant = Variant {
            columns: call.columns as u32,
            dots: NO_DOTS,
            ..self.variant::<T>(run, run.tuning.work_group, 1)
        };
        let norms = self.step_norms::<T>("scalars of a step", run, call, state)?;
        let StepState { programs, sums, registers, status, history } = state;
        let launch = Launch { groups: 1, variant };
        pass::step_scalars::<T>(
            &self.context,
            launch,
            call.columns,
            call.sums,
            call.block,
            call.slot,
            programs,
            sums,
            registers,
            status,
            history,
        )?;
        self.compare_norms::<T>("scalars of a step", run, norms, history)
    }

    fn step_product<T: Real>(
        &self,
        run: Run<'_>,
        call: StepCall,
        a: &Stored<Self, T>,
        blend: Blend,
        [x, w, z]: [&Buffer<T>; 3],
        y: &mut Buffer<T>,
        state: &mut StepState<Self>,
    ) -> Result<()> {
        let chunks = Chunks::of(a.rows);
        let [scaled, shifted, square, dot] =
            [blend.scaled, blend.shifted, blend.dots[0], blend.dots[1]].map(u32::from);
        let cut = [chunks.chunk, chunks.lanes];
        let (variant, _) = self.row_variant(run, Family::StepProduct, a, a.rows, cut, call.columns);
        let variant = Variant { blend: scaled | shifted << 1, dots: square | dot << 1, ..variant };
        let shape = [chunks.len, chunks.chunk, a.stride, 0].map(|v| v as u32);
        let shape = [shape[0], shape[1], shape[2], shape[3], call.block, call.slot, 0, 0];
        // One group at least: a program runs even where there are no rows.
        let launch = Launch { groups: chunks.count.max(1), variant };
        let (rows, indices, values) = (&a.pointers, &a.indices, &a.values);
        // The residuals of starts are told from the products of iterations: they come twice in a solve.
        let word = if blend.shifted { "residual of a step" } else { "product of a step" };
        let pending = self.pending(word, run, a, call.columns, y, Some(state))?;
        let norms = self.step_norms::<T>(word, run, call, state)?;
        let StepState { programs, sums, registers, status, history } = state;
        step::step_product(
            &self.context,
            launch,
            a.cols,
            call.columns,
            blend.shifted,
            blend.dots[1],
            call.sums,
            &shape,
            rows,
            indices,
            values,
            x,
            w,
            y,
            z,
            programs,
            sums,
            registers,
            status,
            history,
        )?;
        self.compare_norms::<T>(word, run, norms, history)?;
        match pending {
            Some(pending) => self.compare_step(pending, run, call, a, blend, [x, w, z, y], sums),
            None => Ok(()),
        }
    }

    fn step_vectors<T: Real>(
        &self,
        run: Run<'_>,
        call: StepCall,
        n: usize,
        pass: &Pass,
        vectors: [&mut Buffer<T>; PASS_VECTORS],
        state: &mut StepState<Self>,
    ) -> Result<()> {
        let chunks = Chunks::of(n);
        let found = self.plain::<T>(run, Family::StepVectors, chunks);
        let (groups, per_group) = found.share(chunks, self.units());
        let [read, written] = pass.touched();
        for (k, vector) in vectors.iter().enumerate() {
            if (read | written) >> k & 1 == 1 {
                same_length("a vector of a pass", n * call.columns, vector.len())?;
            }
        }
        let mut statements = [NO_STATEMENT; 4];
        for (word, statement) in statements.iter_mut().zip(&pass.statements) {
            *word = encoded(statement);
        }
        let dots =
            (0..3).map(|k| pass.dots.get(k).map_or(NO_DOT, |d| u32::from(d[0]) | u32::from(d[1]) << 4) << (8 * k));
        let variant = Variant {
            columns: call.columns as u32,
            statements,
            touched: read | written << 8,
            dots: dots.sum(),
            ..self.variant::<T>(run, found.work_group, chunks.lanes)
        };
        let shape = [chunks.len, chunks.chunk, chunks.count, per_group].map(|v| v as u32);
        let shape = [shape[0], shape[1], shape[2], shape[3], call.block, call.slot, 0, 0];
        let launch = Launch { groups: groups.max(1), variant };
        let [v0, v1, v2, v3, v4, v5, v6, v7] = vectors;
        let norms = self.step_norms::<T>("pass of a step", run, call, state)?;
        let StepState { programs, sums, registers, status, history } = state;
        pass::step_vectors(
            &self.context,
            launch,
            call.columns,
            call.sums,
            &shape,
            v0,
            v1,
            v2,
            v3,
            v4,
            v5,
            v6,
            v7,
            programs,
            sums,
            registers,
            status,
            history,
        )?;
        self.compare_norms::<T>("pass of a step", run, norms, history)
    }
}

/// No vector, statement or dot product, in `cl/pass.cl`.
pub(crate) const NONE: u32 = 15;
pub(crate) const NO_STATEMENT: u32 = u32::MAX;
pub(crate) const NO_DOT: u32 = 0xff;
const NO_DOTS: u32 = NO_DOT | NO_DOT << 8 | NO_DOT << 16;

/// A statement as `cl/pass.cl` reads it.
fn encoded(statement: &Statement) -> u32 {
    match statement {
        Statement::Combine { target, terms } => {
            let [a, b, d] = terms.map(|v| v.map_or(NONE, u32::from));
            u32::from(*target) | a << 4 | b << 8 | d << 12
        }
        Statement::Multiply { target, factors: [a, b] } => {
            u32::from(*target) | u32::from(*a) << 4 | u32::from(*b) << 8 | NONE << 12 | 1 << 16
        }
    }
}

/// The buffer that is read in this turn, and the one that is written.
fn turned<'t, E>(pair: &'t mut [&mut Buffer<E>; 2], turn: usize) -> (&'t Buffer<E>, &'t mut Buffer<E>) {
    let [even, odd] = pair;
    if turn == 0 { (even, odd) } else { (odd, even) }
}

/// `shape_t` of `cl/cgnr.cl`.
fn words(rows: Chunks, cols: Chunks, width: usize, stride: usize) -> [u32; 8] {
    [rows.len, rows.chunk, rows.count, cols.len, cols.chunk, cols.count, width, stride].map(|v| v as u32)
}
