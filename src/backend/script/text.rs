//! The list of a resident launch as text of its kernel.

use std::fmt::Write as _;

use super::pass::{MOST_STATEMENTS, NO_DOT, NO_STATEMENT};
use super::resident::{
    ASCENT, CALL, DOTS, LENGTH, LOADED, OPERANDS, RESIDENT_VECTORS, STATEMENTS, SUBTRACTION, SUMMED, WEIGHTS, WORK,
    WRITTEN,
};
use crate::recurrence::{COEFFICIENTS, HEADER, Op};

/// Programs and passes of a list as text, which a kernel has in the place of `PROGRAMS` and `PASSES`: instructions, statements, dot
/// products and steps over an image as macros of `cl/script/step_resident.cl`, for the calls that begin at some places of the list. Calls that do the same share a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ScriptText {
    pub(super) programs: String,
    pub(super) passes: String,
}

impl ScriptText {
    /// The text of a list (`Listing::words`).
    pub(super) fn of(list: &[u32]) -> Self {
        let kinds = list[0] as usize;
        let (mut at, end) = (list[1] as usize, list[1 + kinds] as usize);
        // Texts in the order of their first calls, and the places of all calls that have them.
        let (mut programs, mut passes) = (Vec::new(), Vec::new());
        let add = |texts: &mut Vec<(String, String)>, text: String, at: usize| {
            let which = format!("call_place == {at}");
            match texts.iter_mut().find(|(_, known)| *known == text) {
                _ if text.is_empty() => {}
                Some((of, _)) => *of = format!("{of} || {which}"),
                None => texts.push((which, text)),
            }
        };
        while at < end {
            let call = &list[at..at + list[at + LENGTH] as usize];
            add(&mut programs, program_text(&call[CALL + HEADER..]), at);
            add(&mut passes, pass_text(call), at);
            at += call.len();
        }
        let joined = |name: &str, texts: Vec<(String, String)>| {
            texts.iter().map(|(which, text)| format!(" {name}({which},{text})")).collect()
        };
        Self { programs: joined("PROGRAM_OF", programs), passes: joined("PASS_OF", passes) }
    }
}

/// The instructions of a program.
fn program_text(code: &[u32]) -> String {
    let mut text = String::new();
    // Numbers of the instructions before which what a condition leaves out ends.
    let mut ends = Vec::new();
    for k in 0..=code.len() / 4 {
        text.push_str(&" END".repeat(ends.iter().filter(|end| **end == k).count()));
        let Some([op, target, a, b]) = code.get(4 * k..4 * k + 4) else { break };
        if *op == Op::SkipUnlessPositive as u32 {
            ends.push(k + 1 + *target as usize);
            let _ = write!(text, " WHEN({a})");
        } else {
            let _ = write!(text, " INSTRUCTION({op}, {target}, {a}, {b})");
        }
    }
    text
}

/// Steps of a pass for an element, and its dot products.
fn pass_text(call: &[u32]) -> String {
    let mut text = String::new();
    if [ASCENT, SUBTRACTION].contains(&call[WORK]) {
        let (name, vectors) = if call[WORK] == ASCENT { ("ASCEND", 5) } else { ("SUBTRACT", 4) };
        let _ = write!(text, " {name}({}", call[WEIGHTS]);
        text.extend((0..vectors).map(|k| format!(", {}", call[OPERANDS] >> (4 * k) & 15)));
        return text + ")";
    }
    let vectors = |mask: usize| (0..RESIDENT_VECTORS).filter(move |k| call[mask] >> k & 1 == 1);
    text.extend(vectors(LOADED).map(|k| format!(" LOAD({k})")));
    let coefficients = call[CALL + COEFFICIENTS..].chunks(3);
    for (statement, c) in call[STATEMENTS..][..MOST_STATEMENTS].iter().zip(coefficients) {
        if *statement != NO_STATEMENT {
            let _ = write!(text, " STATEMENT({statement}, {}, {}, {})", c[0], c[1], c[2]);
        }
    }
    text.extend(vectors(WRITTEN).map(|k| format!(" STORE({k})")));
    for k in 0..DOTS {
        let dot = call[SUMMED] >> (8 * k) & NO_DOT;
        if dot != NO_DOT {
            let _ = write!(text, " DOT({k}, {}, {})", dot & 15, dot >> 4);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::pass::{Pass, Statement};
    use super::super::resident::{Listing, ResidentCall, ResidentWork};
    use super::super::variation::Variation;
    use super::*;
    use crate::recurrence::{ONE, Program, Registers, Sums, ZERO};

    #[test]
    fn a_list_is_told_as_text() {
        let mut registers = Registers::new();
        let [a, b] = [0.0, 1.0].map(|v| registers.scalar(v));
        let mut program = Program::default();
        program.set(a, a + b);
        program.if_positive(a, |s| {
            s.set(b, a);
            s.if_positive(b, |s| s.set(a, b));
        });
        program.count();
        let sums = Sums { place: 5, count: 1 };
        let programs = [program.words(&[ONE, b, ZERO, a], &[sums]), Program::default().words(&[], &[])];
        let second = programs[0].len() as u32;
        let combine = Statement::Combine { target: 0, terms: [Some(0), Some(1), None] };
        let multiply = Statement::Multiply { target: 1, factors: [0, 2] };
        let pass = Pass { statements: vec![combine, multiply], dots: vec![[1, 2]] };
        let pass = ResidentWork::Pass { n: 100, pass, vectors: [4, 7, 9, 0, 0, 0, 0, 0] };
        let with = |block| ResidentCall { block: Some(block), work: pass.clone() };
        let scalars = ResidentCall { block: Some(0), work: ResidentWork::Scalars };
        // Two kinds of iterations. The pass of the last call has other factors.
        let calls = vec![vec![with(0), scalars], vec![with(0), with(second)]];
        let list = Listing::new(calls, &programs.concat()).unwrap().words;
        let ScriptText { programs: of_programs, passes } = ScriptText::of(&list);
        // Words: a head of 4, then a call of 17, a header of 32, and 6 instructions of 4 words.
        let length = CALL + HEADER + 4 * 6;
        let [first, second, third, last] = [0, 1, 2, 3].map(|k| 4 + k * length);
        let [a, b] = [a.0, b.0];
        let instructions = format!(
            "INSTRUCTION(0, {a}, {a}, {b}) WHEN({a}) INSTRUCTION(5, {b}, {a}, 4) WHEN({b}) \
             INSTRUCTION(5, {a}, {b}, 4) END END INSTRUCTION(12, 0, 4, 4)"
        );
        let all = format!("call_place == {first} || call_place == {second} || call_place == {third}");
        assert_eq!(of_programs, format!(" PROGRAM_OF({all}, {instructions})"));
        let [combine, multiply] = [4 | 4 << 4 | 7 << 8 | 15 << 12, 7 | 4 << 4 | 9 << 8 | 15 << 12 | 1 << 16];
        let steps = |which: &str, [k, l, m, of_second]: [u8; 4]| {
            format!(
                " PASS_OF({which}, LOAD(4) LOAD(7) LOAD(9) STATEMENT({combine}, {k}, {l}, {m}) \
                 STATEMENT({multiply}, {of_second}, 0, 0) STORE(4) STORE(7) DOT(0, 7, 9))"
            )
        };
        let both = format!("call_place == {first} || call_place == {third}");
        let other = steps(&format!("call_place == {last}"), [0; 4]);
        assert_eq!(passes, steps(&both, [ONE.0, b, ZERO.0, a]) + &other);
    }

    #[test]
    fn calls_over_an_image_are_steps_of_passes() {
        let image = Variation { n: 12, width: 4, along: true, first: 20, place: 7 };
        let of = |work: ResidentWork| ResidentCall { block: None, work };
        let calls = vec![
            of(ResidentWork::Ascent { image, vectors: [3, 4, 12, 0, 1] }),
            of(ResidentWork::Subtraction { image, vectors: [3, 4, 12, 2] }),
        ];
        let ScriptText { programs, passes } = ScriptText::of(&Listing::new(vec![calls], &[]).unwrap().words);
        assert_eq!(programs, "");
        let [first, second] = [3, 3 + CALL + HEADER];
        let wanted = format!(
            " PASS_OF(call_place == {first}, ASCEND(20, 3, 4, 12, 0, 1)) \
             PASS_OF(call_place == {second}, SUBTRACT(20, 3, 4, 12, 2))"
        );
        assert_eq!(passes, wanted);
    }
}
