//! Products of finite elements on a device: `cl/pde/elements.cl` and `cl/pde/element_sums.cl`.

use std::fmt::{Display, Formatter, Result as FmtResult};

use super::{Batch, ElementOps, NO_COEFFICIENT, Sums};
use crate::backend::OpenCl;
use crate::backend::run::Run;
use crate::device_info::DeviceKind;
use crate::error::Result;
use crate::kernels::kernels;
use crate::memory::Memory;
use crate::number::{Precision, Real};
use crate::ocl::Defines;
use crate::tuning::{Case, Family, LaunchQuery, SizeClass};

kernels! {
    file pde/elements, after [common];
    constants [{NO_COEFFICIENT}];
    options { shape: CellOptions, table: Literals => TABLE }
    /// Products of the cells of a batch.
    kernel apply_elements<T> given(points: usize, geometries: usize, hanging: usize)
        (count: uint, start: uint, batches: uint, free: uint, ids: in_uint[count * points.pow(3)],
        geometry: in_real[geometries], x: in_real[free], hung: in_real[hanging], parts: out_real[start + count * points.pow(3)],
        y: out_real[free]);
}

kernels! {
    file pde/element_sums, after [common];
    options { shared: bool => SHARED, combined: bool => COMBINED }
    /// Sums of parts, and combinations.
    kernel sum_elements<T> given(total: usize, terms: usize)
        (n: uint, span: uint, offsets: in_uint, places: in_uint, parts: in_real[total], rows: in_uint, columns: in_uint[terms],
        factors: in_real[terms], values: in_real[1], to: out_real[n]);
}

#[cfg(any(test, feature = "tuner"))]
pub(in crate::backend) static FILES: &[&crate::ocl::File] = &[&elements::FILE, &element_sums::FILE];

/// Options of a program for cells of one kind.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CellOptions {
    points: usize,
    mapped: bool,
    hanging: bool,
    wide: usize,
    sets: usize,
}

impl CellOptions {
    fn define(&self, defines: &mut Defines) {
        let Self { points, mapped, hanging, wide, sets } = *self;
        let (mapped, hanging) = (usize::from(mapped), usize::from(hanging));
        let all = [("POINTS", points), ("MAPPED", mapped), ("HANGING", hanging), ("WIDE", wide), ("SETS", sets)];
        all.into_iter().for_each(|(name, value)| defines.set(name, value));
    }
}

/// Numbers in the text of a program, to the last bit: loads of them would be as many as multiplications.
#[derive(Clone, Debug, Default)]
pub(crate) struct Literals(String);

impl Literals {
    fn of<T: Real>(numbers: &[T]) -> Self {
        let suffix = if T::PRECISION == Precision::Single { "f" } else { "" };
        let literals: Vec<String> = numbers.iter().map(|number| literal(number.to_f64()) + suffix).collect();
        Self(literals.join(","))
    }
}

impl Display for Literals {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        f.write_str(&self.0)
    }
}

/// A number that is not tiny as a hexadecimal constant.
fn literal(number: f64) -> String {
    let bits = number.to_bits();
    let (sign, exponent) = (if number < 0.0 { "-" } else { "" }, (bits >> 52 & 0x7ff) as i32 - 1023);
    if number == 0.0 { "0x0p0".into() } else { format!("{sign}0x1.{:013x}p{exponent}", bits & ((1 << 52) - 1)) }
}

/// Cells that a group works on at once.
#[derive(Clone, Copy)]
struct Share {
    /// Cells of an item.
    wide: usize,
    sets: usize,
    /// Batches of `wide * sets` cells.
    batches: usize,
}

impl OpenCl {
    /// Shares out the cells of a batch among groups of `work_group` items.
    fn share_cells<T: Real>(&self, batch: &Batch<T>, work_group: usize) -> Share {
        let Batch { points, mapped, count, .. } = *batch;
        let info = self.context.info();
        let buffers = if mapped { 3 } else { 2 };
        let bytes = buffers * points * points * (points | 1) * T::PRECISION.bytes();
        let fits = |cells: usize, part: u64| (cells * bytes) as u64 <= info.local_memory / part;
        if work_group == 1 || info.kind == DeviceKind::Cpu {
            // An item runs over cells that lie interleaved, which a vector register holds.
            let wide = if fits(8, 2) { 8 } else { 1 };
            let batches = count.div_ceil(wide).div_ceil(16 * self.units()).clamp(1, 64);
            return Share { wide, sets: 1, batches };
        }
        // Cells for all items, as long as two groups fit into local memory.
        let most = work_group / (points * points);
        let sets = (1..=most.max(1)).rev().find(|sets| fits(*sets, 2)).unwrap_or(1);
        Share { wide: 1, sets, batches: 1 }
    }
}

impl<T: Real> ElementOps<T> for OpenCl {
    fn apply_elements(
        &self,
        run: Run<'_>,
        batch: &Batch<T>,
        free: usize,
        [x, hung]: [&Memory<T>; 2],
        parts: &mut Memory<T>,
        y: &mut Memory<T>,
    ) -> Result<()> {
        use elements::apply_elements::{Args, launch, prepare};
        let Batch { points, count, start, mapped, .. } = *batch;
        let on = &self.context;
        let (n, plane) = (count * points.pow(3), points * points);
        let case =
            Case { family: Family::Elements, reading: None, precision: T::PRECISION, size: SizeClass::of(n) };
        let asked = LaunchQuery { case, n, chunk: plane, shared: plane, longest: 0, columns: 1 };
        let common = self.common::<T>(run, self.parameters(run, &asked).work_group, 1);
        let Share { wide, sets, batches } = self.share_cells(batch, common.work_group);
        // There is one number more than hang.
        let hanging = hung.len() > 1;
        let part = (points + 16 * usize::from(mapped) + 32 * usize::from(hanging) + 64 * wide) as u32;
        let kernel = self.kernel("apply_elements", common, part, || {
            let shape = CellOptions { points, mapped, hanging, wide, sets };
            prepare(
                on,
                common,
                &elements::Options {
                    shape,
                    table: Literals::of(&batch.tables[..if mapped { 2 * plane } else { plane }]),
                },
            )
        })?;
        let args = Args {
            points,
            geometries: count * if mapped { 6 * points.pow(3) } else { 3 },
            hanging: hung.len(),
            count,
            start,
            batches,
            free,
            ids: batch.ids.buffer(on)?,
            geometry: batch.geometry.buffer(on)?,
            x: x.buffer(on)?,
            hung: hung.buffer(on)?,
            parts: parts.buffer_mut(on)?,
            y: y.buffer_mut(on)?,
        };
        launch(&kernel, count.div_ceil(wide * sets * batches), args)
    }

    fn sum_elements(
        &self,
        run: Run<'_>,
        sums: &Sums<T>,
        parts: &Memory<T>,
        values: &Memory<T>,
        to: &mut Memory<T>,
    ) -> Result<()> {
        use element_sums::sum_elements::{Args, launch, prepare};
        let (on, n) = (&self.context, sums.rows);
        let (common, groups, span) = self.without_barriers::<T>(run, n);
        let options = element_sums::Options { shared: sums.shared.is_some(), combined: sums.combined.is_some() };
        let part = u32::from(options.shared) + 2 * u32::from(options.combined);
        let kernel = self.kernel("sum_elements", common, part, || prepare(on, common, &options))?;
        let none = self.no_words()?;
        let (offsets, places) = match &sums.shared {
            Some([offsets, places]) => (offsets.buffer(on)?, places.buffer(on)?),
            None => (&*none, &*none),
        };
        let (rows, columns, factors, terms) = match &sums.combined {
            Some(([rows, columns], factors)) => {
                (rows.buffer(on)?, columns.buffer(on)?, factors.buffer(on)?, factors.len())
            }
            None => (&*none, &*none, parts.buffer(on)?, 0),
        };
        let args = Args {
            total: usize::from(options.shared),
            terms,
            n,
            span,
            offsets,
            places,
            parts: parts.buffer(on)?,
            rows,
            columns,
            factors,
            values: values.buffer(on)?,
            to: to.buffer_mut(on)?,
        };
        launch(&kernel, groups, args)
    }
}

#[cfg(test)]
mod tests {
    use super::literal;

    #[test]
    fn literals_have_every_bit() {
        assert_eq!(literal(1.0), "0x1.0000000000000p0");
        assert_eq!(literal(-0.75), "-0x1.8000000000000p-1");
        assert_eq!(literal(f64::from(0.1f32)), "0x1.99999a0000000p-4");
        assert_eq!(literal(0.0), "0x0p0");
    }
}
