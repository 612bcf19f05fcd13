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

/// Declares functions whose bodies are compiled for the widest instructions too. All that a body calls in its loops must always be
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
