//! `kernels!`: each file of kernels is declared once, beside the code that launches it.

use crate::error::{Error, Result};
use crate::number::Real;
use crate::number::sealed::Number;
use crate::ocl::Arg;

/// Declares the kernels of one file of `cl/` in a module of its name.
///
/// ```text
/// kernels! {
///     file linear/product, after [common, fold, format, row];
///     constants [stop::{RUNNING}, PLUS = Combine::Plus];
///     options { matrix: MatrixOptions, edges: u32 => EDGES }
///     shape { n, chunk }
///     /// `y = A x`.
///     kernel multiply<T> given(cols: usize) (n: uint, x: in_real[cols], y: out_real[n as usize]);
/// }
/// ```
///
/// `after` names the texts that stand before the file, `constants` the numbers of the host that it uses ([`constants!`]), `options` its compile-time constants beside those of
/// [`Common`](super::Common) (`field: type => MACRO`, or a block of several without `=>`), `shape` the fields of its `shape_t`,
/// and `given` numbers that lengths depend on and the kernel does not take. Arguments are `name: kind[least length]`:
/// `uint`, `real` and `shape` by value; `in_real`, `in_uint`, `in_int`, `in_sum` read-only buffers; `out_real`, `out_sum`, `out_int`
/// buffers that are written, and perhaps read. The precision is called `T`.
///
/// Each kernel has `prepare`, `launch`, which checks the length of every buffer, and its named arguments `Args`. A unit
/// test compares the declaration with the file.
macro_rules! kernels {
    (
        file $room:ident/$file:ident, after [$($after:ident),*];
        $(constants [$($constants:tt)*];)?
        $(options { $($option:ident: $type:ty $(=> $macro:ident)?),* $(,)? })?
        $(shape { $($field:ident),* $(,)? })?
        $($(#[$doc:meta])* kernel $kernel:ident $(<$t:ident>)? $(given($($given:ident: $what:ty),+))?
            ($($arg:ident: $kind:ident $([$len:expr])?),+ $(,)?);)+
    ) => {
        pub(super) mod $file {
            #[allow(unused_imports)]
            use super::*;

            /// The file and what stands before it.
            pub(crate) static FILE: $crate::ocl::File = $crate::kernels::texts::kernel_file!(
                $room/$file,
                after &[$(&$crate::kernels::texts::$after),*],
                $crate::kernels::constants!($($($constants)*)?)
            );

            /// Compile-time constants of the file.
            #[derive(Clone, Debug, Default)]
            pub(crate) struct Options {
                $($(pub(crate) $option: $type),*)?
            }

            impl Options {
                #[allow(unused_variables)]
                fn define(&self, defines: &mut $crate::ocl::Defines) {
                    $($($crate::kernels::kernels!(@define defines self.$option $($macro)?);)*)?
                }
            }

            $(/// `shape_t` of the file.
            #[derive(Clone, Copy, Debug)]
            pub(crate) struct Shape {
                $(pub(crate) $field: usize),*
            }

            impl Shape {
                fn argument(self) -> $crate::ocl::Arg {
                    let mut words = [0; $crate::ocl::MOST_WORDS];
                    const { assert!([$(stringify!($field)),*].len() <= $crate::ocl::MOST_WORDS) };
                    let fields = [$(self.$field),*];
                    for (word, field) in words.iter_mut().zip(fields) {
                        *word = field as u32;
                    }
                    $crate::ocl::Arg::Words { words, count: fields.len() }
                }
            })?

            $($(#[$doc])*
            pub(crate) mod $kernel {
                #[allow(unused_imports)]
                use super::*;

                static SIGNATURE: $crate::ocl::Signature = $crate::ocl::Signature {
                    name: stringify!($kernel),
                    file: &FILE,
                    args: &[$((stringify!($arg), $crate::kernels::kernels!(@c $kind))),+],
                    checked: &[$($($crate::kernels::kernels!(@checked $arg $len),)?)+],
                };

                /// Arguments of a launch.
                pub(crate) struct Args<'a $(, $t: $crate::number::Real)?> {
                    $($(pub(crate) $given: $what,)+)?
                    $(pub(crate) $arg: $crate::kernels::kernels!(@rust 'a $kind),)+
                }

                #[cfg(test)]
                pub(super) fn signature() -> &'static $crate::ocl::Signature {
                    &SIGNATURE
                }

                /// Builds or finds the kernel with these options.
                pub(crate) fn prepare(
                    context: &std::sync::Arc<$crate::ocl::Context>,
                    common: $crate::kernels::Common,
                    options: &Options,
                ) -> $crate::error::Result<$crate::ocl::Prepared> {
                    let mut defines = common.defines(context);
                    options.define(&mut defines);
                    context.prepare(&SIGNATURE, &defines, common.work_group)
                }

                /// Checks the length of every buffer, and queues the kernel in `groups` work-groups.
                pub(crate) fn launch$(<$t: $crate::number::Real>)?(
                    kernel: &$crate::ocl::Prepared,
                    groups: usize,
                    args: Args<'_ $(, $t)?>,
                ) -> $crate::error::Result<()> {
                    let Args { $($($given,)+)? $($arg),+ } = args;
                    $($(
                        $crate::kernels::long_enough(
                            concat!(stringify!($kernel), ": ", stringify!($arg)),
                            $len as usize,
                            $arg.len(),
                        )?;
                    )?)+
                    kernel.launch(&SIGNATURE, groups, &[$($crate::kernels::kernels!(@arg $kind $arg)),+])
                }
            })+

            #[cfg(test)]
            mod tests {
                #[test]
                fn declarations_are_those_of_the_file() {
                    let mut defines = $crate::ocl::Defines::default();
                    super::Options::default().define(&mut defines);
                    let shape: &[&str] = &[$($(stringify!($field)),*)?];
                    let signatures = [$(super::$kernel::signature()),+];
                    $crate::kernels::check::declared(&super::FILE, &defines, shape, &signatures);
                }
            }
        }
    };
    (@define $defines:ident $self:ident.$option:ident) => { $self.$option.define($defines) };
    (@define $defines:ident $self:ident.$option:ident $macro:ident) => {
        $defines.set(stringify!($macro), &$self.$option)
    };
    (@checked $arg:ident $len:expr) => { stringify!($arg) };
    (@c uint) => { "uint" };
    (@c real) => { "real_t" };
    (@c shape) => { "shape_t" };
    (@c in_uint) => { "__global const uint*" };
    (@c in_real) => { "__global const real_t*" };
    (@c in_int) => { "__global const int*" };
    (@c in_sum) => { "__global const acc_t*" };
    (@c out_real) => { "__global real_t*" };
    (@c out_sum) => { "__global acc_t*" };
    (@c out_int) => { "__global int*" };
    (@rust $a:lifetime uint) => { usize };
    (@rust $a:lifetime real) => { T };
    (@rust $a:lifetime shape) => { Shape };
    (@rust $a:lifetime in_uint) => { &$a $crate::ocl::Buffer<u32> };
    (@rust $a:lifetime in_real) => { &$a $crate::ocl::Buffer<T> };
    (@rust $a:lifetime in_int) => { &$a $crate::ocl::Buffer<i32> };
    (@rust $a:lifetime in_sum) => { &$a $crate::ocl::Buffer<$crate::number::Sum> };
    (@rust $a:lifetime out_real) => { &$a mut $crate::ocl::Buffer<T> };
    (@rust $a:lifetime out_sum) => { &$a mut $crate::ocl::Buffer<$crate::number::Sum> };
    (@rust $a:lifetime out_int) => { &$a mut $crate::ocl::Buffer<i32> };
    (@arg uint $arg:ident) => { $crate::ocl::Arg::Uint($arg as u32) };
    (@arg real $arg:ident) => { $crate::kernels::real_argument($arg) };
    (@arg $kind:ident $arg:ident) => { $arg.argument() };
}
pub(crate) use kernels;

/// A number as a kernel argument.
pub(crate) fn real_argument<T: Real>(value: T) -> Arg {
    match value.number() {
        Number::Single(value) => Arg::Float(value),
        Number::Double(value) => Arg::Double(value),
    }
}

/// The check each launch makes of each buffer.
pub(crate) fn long_enough(what: &'static str, needed: usize, found: usize) -> Result<()> {
    if found < needed {
        return Err(Error::Shape { what, expected: needed, found });
    }
    Ok(())
}
