//! Filtered back-projection on the host: `cl/tomography/fbp.cl`.

use super::{FbpOps, MIDDLE, RIGHT, RIGHT_OFF, UP, UP_OFF, VIEW_WORDS, Views};
use crate::backend::Host;
use crate::backend::run::Run;
use crate::backend::sums::summing;
use crate::error::Result;
use crate::memory::Memory;
use crate::number::{Accumulator, Real};
use crate::threads;

/// `add_views` of `cl/tomography/fbp.cl`, a row of pixels at a time.
fn add_views<T: Real, A: Accumulator<T>>(views: &Views<T>, words: &[T], filtered: &[T], x: &mut [T]) {
    let Views { side, pixels, fan, .. } = *views;
    let number = |count: usize| T::from_f64(count as f64);
    let one = T::from_f64(1.0);
    let last_place = number(pixels - 1);
    let half_side = (number(side) - one) * T::from_f64(0.5);
    threads::each(threads::ChunksMut(x, side), 1, |row, line| {
        let up = half_side - number(row);
        let mut sums = vec![A::from_real(T::default()); side];
        for (view, filtered) in words.chunks_exact(VIEW_WORDS).zip(filtered.chunks_exact(pixels + 1)) {
            for (column, sum) in sums.iter_mut().enumerate() {
                let right = number(column) - half_side;
                let mut place = right * view[RIGHT] + up * view[UP];
                let mut weight = one;
                if fan {
                    let distance = one + (right * view[RIGHT_OFF] + up * view[UP_OFF]);
                    let nearness = A::from_real(one).div(A::from_real(distance)).to_real();
                    place = place * nearness;
                    weight = nearness * nearness;
                }
                place = place + view[MIDDLE];
                if !(place >= T::default() && place <= last_place) {
                    continue;
                }
                let left = place.to_f64() as usize;
                let share_of_next = place - number(left);
                let value = filtered[left] + share_of_next * (filtered[left + 1] - filtered[left]);
                *sum = sum.add(A::from_real(weight * value));
            }
        }
        line.iter_mut().zip(sums).for_each(|(pixel, sum)| *pixel = sum.to_real());
    });
}

impl<T: Real> FbpOps<T> for Host {
    fn add_views(&self, run: Run<'_>, views: &Views<T>, filtered: &Memory<T>, x: &mut Memory<T>) -> Result<()> {
        let (words, filtered, x) = (views.words.host()?, filtered.host()?, x.host_mut()?);
        summing!(run, T, add_views(views, words, filtered, x));
        Ok(())
    }
}
