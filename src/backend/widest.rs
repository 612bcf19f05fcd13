//! Loops of the host back end in the widest vector instructions that the processor has, chosen at run time.
//!
//! A crate is compiled for the oldest processors that it is meant for: on x86-64 that is SSE2, 16 bytes at a time. Wider instructions
//! change no bit: each operation on each number stays the same, since multiplication and addition are never contracted.

pub(super) use pulp::NullaryFnOnce;

/// Does `work`, compiled once more for AVX2, where the processor has that.
#[inline(always)]
pub(super) fn run_widest<W: NullaryFnOnce>(work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    if let Some(avx2) = pulp::x86::V3::try_new() {
        return avx2.vectorize(work);
    }
    work.call()
}

/// Declares functions whose bodies are compiled for the widest instructions too. All that a body calls in its hot loops must always be
/// inlined: a call of its own keeps the instructions that it was compiled with. Of generics come lifetimes, types, numbers.
macro_rules! widest {
    ($(
        $(#[$meta:meta])*
        $vis:vis fn $name:ident<
            $($life:lifetime),* ; $($type:ident: $bound:path),* $(; $(const $number:ident),*)?
        >($($arg:ident: $ty:ty),* $(,)?) -> $ret:ty $body:block
    )+) => {$(
        $(#[$meta])*
        $vis fn $name<$($life,)* $($type: $bound,)* $($(const $number: usize),*)?>($($arg: $ty),*) -> $ret {
            struct Work<$($life,)* $($type: $bound,)* $($(const $number: usize),*)?>(
                $($ty,)*
                std::marker::PhantomData<($($type,)*)>,
            );
            impl<$($life,)* $($type: $bound,)* $($(const $number: usize),*)?> $crate::backend::widest::NullaryFnOnce
                for Work<$($life,)* $($type,)* $($($number),*)?>
            {
                type Output = $ret;

                #[inline(always)]
                fn call(self) -> $ret {
                    let Self($($arg,)* _) = self;
                    $body
                }
            }
            $crate::backend::widest::run_widest(Work::<$($type,)* $($($number),*)?>($($arg,)* std::marker::PhantomData))
        }
    )+};
}
pub(super) use widest;

#[cfg(test)]
mod tests {
    use super::super::sums::chunk_sums;
    use crate::number::{Pair, Sum};
    use crate::reduction::fold;

    widest! {
        fn squares<'v; T: crate::Real; const K>(x: &'v [T; K], to: &'v mut [T; K]) -> () {
            for k in 0..K {
                to[k] = x[k] * x[k] + x[k];
            }
        }
    }

    #[test]
    fn wide_instructions_contract_nothing() {
        // With a fused multiplication the last one would be 2^-46 larger.
        let x = [1.0 + f32::EPSILON, 1.0 / 3.0, -3.0, 1e-30, 0.1, 1e20, -0.0, 1.0 + 3.0 * f32::EPSILON];
        let mut found = [0.0; 8];
        squares(&x, &mut found);
        for (x, found) in x.iter().zip(found) {
            let square = std::hint::black_box(x * x);
            assert_eq!((square + x).to_bits(), found.to_bits(), "{x}");
        }
    }

    /// Sums of products in the tree that the contract says, lane by lane.
    fn plain<A: crate::number::Accumulator<f32>>(lanes: usize, x: &[f32], y: &[f32]) -> Sum {
        let mut sums = vec![A::default(); lanes];
        for (i, (x, y)) in x.iter().zip(y).enumerate() {
            sums[i % lanes] = sums[i % lanes].add(A::product(*x, *y));
        }
        Sum(fold(&mut sums, A::add).to_bits())
    }

    #[test]
    fn sums_follow_the_tree_for_every_number_of_elements() {
        let x: Vec<f32> = (0..5000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 8) as f32 / 1e6 - 8.0).collect();
        let y: Vec<f32> = x.iter().rev().map(|x| x * 1.7 - 1.0).collect();
        for lanes in [32, 64, 128, 256, 512, 1024] {
            for n in [0, 1, 31, lanes - 1, lanes, lanes + 1, 2 * lanes, 3 * lanes + 7] {
                let (x, y) = (&x[..n], &y[..n]);
                let doubles =
                    chunk_sums(lanes, [x, y], |[x, y]| [f64::from(x) * f64::from(y), f64::from(x) * f64::from(x)]);
                assert_eq!(doubles, [plain::<f64>(lanes, x, y), plain::<f64>(lanes, x, x)], "{lanes} {n}");
                let [pair] =
                    chunk_sums(lanes, [x, y], |[x, y]| [<Pair as crate::number::Accumulator<f32>>::product(x, y)]);
                assert_eq!(pair, plain::<Pair>(lanes, x, y), "{lanes} {n}");
            }
        }
    }
}
