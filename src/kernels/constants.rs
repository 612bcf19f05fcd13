//! `constants!`: numbers that the host shares with kernels.

/// Constants that the host shares with kernels, by name: `constants!(stop::{RUNNING, CONVERGED}, SLICED = Kind::Sliced)`.
macro_rules! constants {
    (@ $done:tt) => { &$done };
    (@ [$($done:tt)*] $module:ident::{$($name:ident),+ $(,)?} $(, $($rest:tt)*)?) => {
        $crate::kernels::constants!(@ [$($done)* $((stringify!($name), $module::$name as i64),)+] $($($rest)*)?)
    };
    (@ [$($done:tt)*] {$($name:ident),+ $(,)?} $(, $($rest:tt)*)?) => {
        $crate::kernels::constants!(@ [$($done)* $((stringify!($name), $name as i64),)+] $($($rest)*)?)
    };
    (@ [$($done:tt)*] $name:ident = $value:expr $(, $($rest:tt)*)?) => {
        $crate::kernels::constants!(@ [$($done)* (stringify!($name), $value as i64),] $($($rest)*)?)
    };
    ($($all:tt)*) => { $crate::kernels::constants!(@ [] $($all)*) };
}
pub(crate) use constants;
