//! Checks of the options of a reconstruction: those that contradict each other are errors.

use super::reconstruction::Reconstruction;
use super::regularizer::Regularizer;
use crate::error::{Error, Result};
use crate::solver::{Method, StopRule, WeightRule};

impl Reconstruction {
    /// Fails on what the method cannot do.
    pub(super) fn check(&self) -> Result<()> {
        if !self.method.takes_regularizations() {
            let those = Method::names(Method::takes_regularizations);
            let reason = format!("{} reconstructs no images; {those} do", self.method);
            return Err(Error::Conflict { name: "method", reason });
        }
        for (name, bound, wrong) in [("lower", self.lower, f64::INFINITY), ("upper", self.upper, f64::NEG_INFINITY)]
        {
            if bound.is_nan() || bound == wrong {
                let reason = format!("{bound} leaves no value that a pixel can have");
                return Err(Error::Option { name, reason });
            }
        }
        if self.weight.is_some() && !weighs_size(&self.method) {
            let those = Method::names(weighs_size);
            let reason = format!("{} has no term |x|² to weigh; {those} have one", self.method);
            return Err(Error::Conflict { name: "weight", reason });
        }
        let directions = self.regularizers.iter().filter(|r| matches!(r, Regularizer::Directional { .. })).count();
        if directions > 1 {
            return Err(Error::Conflict { name: "regularizer", reason: "one direction at most".into() });
        }
        if self.weight.is_some() && self.start.is_some() {
            let reason = "the rule that chooses a weight has an answer to start from: leave one of them out".into();
            return Err(Error::Conflict { name: "start", reason });
        }
        if let (Some(_), Some(rule @ StopRule::MonotoneError { .. })) = (self.weight, self.stopping.rule) {
            let reason = format!("{rule} is for a misfit with nothing beside it: leave it out, or the weight");
            return Err(Error::Conflict { name: "rule", reason });
        }
        if self.weight.is_some() && self.regularizers.iter().any(|r| matches!(r, Regularizer::Tikhonov(_))) {
            let reason = "tikhonov has a weight of its own: leave it out, or the rule that chooses one".into();
            return Err(Error::Conflict { name: "regularizer", reason });
        }
        Ok(())
    }

    /// Fails on what a penalty of the user's own takes the place of.
    pub(super) fn check_alone(&self) -> Result<()> {
        let beside = [
            (!self.regularizers.is_empty(), "regularisers"),
            (self.weight.is_some(), "a rule for a weight"),
            (self.lower != f64::NEG_INFINITY || self.upper != f64::INFINITY, "bounds"),
            (self.support.is_some(), "a support"),
            (self.method != Method::Cgnr, self.method.name()),
        ];
        match beside.iter().find(|(there, _)| *there) {
            None => Ok(()),
            Some((_, what)) => {
                let reason = format!("{what} cannot go with it, which is for cgnr with nothing beside the misfit");
                Err(Error::Conflict { name: "penalty", reason })
            }
        }
    }
}

/// Tells if a method has a term `|x|²`.
fn weighs_size(method: &Method) -> bool {
    matches!(method, Method::Cgnr | Method::Fista | Method::Pdhg)
}

/// Refusal of a weight beside which the readings count for nothing.
pub(super) fn out_of_reach(rule: WeightRule, weight: f64) -> Error {
    let reason = format!(
        "{rule} leads to a weight of {weight:.1e}, beside which the readings count for nothing: name less noise (a part of the readings, such as 0.01), or \
         another rule"
    );
    Error::Option { name: "weight", reason }
}
