//! Tools that several preconditioners share.

mod gathered;
mod levels;
mod places;
mod product;
mod set_up;
mod symmetry;

pub(crate) use gathered::Gathered;
pub(crate) use levels::levels;
pub(crate) use places::{RowPlaces, neighbourhood_below, neighbourhood_within, reached, sum};
#[cfg(test)]
pub(crate) use places::{bytes_of_places, check_places, neighbourhood, surely_reached};
pub(crate) use product::{Square, factor_on, operator_in_field, rounded, rounds, square};
pub(crate) use set_up::{check_power, in_time, largest_of_row, made_by_threads};
pub(crate) use symmetry::{check_finite, check_rounded, check_symmetric, first_asymmetry, mirrored, nearly_equal};
