//! Setters of options structs.
//!
//! Such structs are `#[non_exhaustive]`, so that a new option breaks no program: users write
//! `Stopping::for_precision::<f64>().with_rtol(1e-6)`.

/// Declares public setters inside an `impl`. Each takes the struct and returns it with one field replaced. A line
/// `with_rtol: rtol(f64)` takes a value of that type; `with_rule: rule(impl StopRule)` takes whatever turns into an
/// `Option` of that type, so both a value and `None`.
macro_rules! setters {
    () => {};
    ($setter:ident: $field:ident(impl $type:ty), $($rest:tt)*) => {
        #[doc = concat!("Sets [`", stringify!($field), "`](Self::", stringify!($field), "); takes a value or `None`.")]
        #[must_use]
        pub fn $setter(self, $field: impl Into<Option<$type>>) -> Self {
            Self { $field: $field.into(), ..self }
        }

        $crate::setters::setters! { $($rest)* }
    };
    ($setter:ident: $field:ident($type:ty), $($rest:tt)*) => {
        #[doc = concat!("Sets [`", stringify!($field), "`](Self::", stringify!($field), ").")]
        #[must_use]
        pub fn $setter(self, $field: $type) -> Self {
            Self { $field, ..self }
        }

        $crate::setters::setters! { $($rest)* }
    };
}
pub(crate) use setters;
