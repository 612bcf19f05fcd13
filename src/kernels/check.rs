//! Comparison of declarations with the text of their file, without a device.

use std::collections::{BTreeMap, BTreeSet};

use crate::ocl::{Defines, File, Signature};

/// A text without its comments.
pub(crate) fn code(text: &str) -> String {
    text.lines().map(|line| line.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n")
}

/// Every `__kernel` of a text: its name to its arguments `(name, type)`, without `restrict` and spaces.
fn kernels(text: &str) -> BTreeMap<String, Vec<(String, String)>> {
    let code = code(text).replace('\n', " ");
    let mut found = BTreeMap::new();
    for part in code.split("__kernel").skip(1) {
        let part = &part[part.find("void").expect("a kernel returns void") + 4..];
        let open = part.find('(').expect("arguments");
        let close = part.find(')').expect("end of arguments");
        let args = part[open + 1..close]
            .split(',')
            .map(|arg| {
                let arg = arg.replace("restrict", " ").replace('*', " * ");
                let words: Vec<&str> = arg.split_whitespace().collect();
                let (name, kind) = words.split_last().expect("a type and a name");
                (name.to_string(), kind.join(" ").replace(" *", "*"))
            })
            .collect();
        found.insert(part[..open].trim().to_string(), args);
    }
    found
}

/// Fields of `shape_t`, if a text has one.
fn shape(text: &str) -> Vec<String> {
    let code = code(text).replace('\n', " ");
    let Some(end) = code.find("} shape_t;") else { return Vec::new() };
    let start = code[..end].rfind('{').expect("a struct");
    let fields = code[start + 1..end].replace("uint", " ").replace(';', ",");
    fields.split(',').map(|field| field.trim().to_string()).filter(|field| !field.is_empty()).collect()
}

/// Words of capital letters that a text uses, and those that it defines.
fn macros(text: &str) -> [BTreeSet<String>; 2] {
    let code = code(text);
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    // Words of OpenCL C, of its strings and casts.
    let known = |word: &&str| {
        !word.starts_with("CLK_")
            && !["NAN", "INFINITY", "OPENCL", "EXTENSION", "FP_CONTRACT", "OFF", "LOOPS_IN_ORDER"].contains(word)
    };
    let capital = |word: &&str| {
        word.len() > 1
            && word.starts_with(|c: char| c.is_ascii_uppercase())
            && !word.contains(|c: char| c.is_ascii_lowercase())
    };
    let used = code.split(|c| !is_part(c)).filter(capital).filter(known).map(String::from).collect();
    let defined = code.lines().filter_map(|line| line.strip_prefix("#define "));
    let defined = defined.filter_map(|rest| rest.split(|c| !is_part(c)).next()).map(String::from).collect();
    [used, defined]
}

/// Options that [`Common`](super::Common) sets.
const COMMON: [&str; 8] = ["REAL", "WORD", "PAIR", "WG", "LANES", "COLUMNS", "PTX", "ITEM_REGISTERS"];

/// Compares what is declared of a file with its text.
pub(crate) fn declared(file: &File, defines: &Defines, fields: &[&str], signatures: &[&Signature]) {
    let found = kernels(file.text);
    assert_eq!(found.len(), signatures.len(), "kernels of {}.cl: {:?}", file.name, found.keys());
    for signature in signatures {
        let args =
            found.get(signature.name).unwrap_or_else(|| panic!("{} is not in {}.cl", signature.name, file.name));
        let expected: Vec<_> =
            signature.args.iter().map(|(name, kind)| (name.to_string(), kind.to_string())).collect();
        assert_eq!(*args, expected, "{}", signature.name);
        has_least_lengths(signature);
    }
    let texts = || file.after.iter().copied().chain([file]).map(|file| file.text);
    let shapes: Vec<String> = texts().flat_map(shape).collect();
    assert_eq!(shapes, fields, "shape_t of {}.cl", file.name);
    // A macro that nobody sets is 0 in `#if` and may go unnoticed; an option that nobody reads builds a program twice.
    let whole = texts().collect::<Vec<_>>().join("\n");
    let [used, mut defined] = macros(&whole);
    let constants = file.after.iter().copied().chain([file]).flat_map(|file| file.constants);
    defined.extend(constants.map(|(name, _)| (*name).to_string()));
    let options: BTreeSet<String> = defines
        .text()
        .split(" -D ")
        .skip(1)
        .filter_map(|option| option.split('=').next())
        .chain(defines.head().lines().filter_map(|line| line.strip_prefix("#define ")?.split(' ').next()))
        .chain(COMMON)
        .map(String::from)
        .collect();
    let unset: Vec<_> = used.difference(&defined).filter(|word| !options.contains(*word)).collect();
    assert!(unset.is_empty(), "{}.cl uses {unset:?}, which are no options of it", file.name);
    let unread: Vec<_> =
        options.iter().filter(|word| !used.contains(*word) && !COMMON.contains(&word.as_str())).collect();
    assert!(unread.is_empty(), "{}.cl does not use its options {unread:?}", file.name);
}

/// A launch that is given too short a buffer is refused: so each buffer of numbers says how long it must be.
fn has_least_lengths(signature: &Signature) {
    for (name, kind) in signature.args {
        // The words of a matrix are laid out by its format, which knows how many there are; the vectors of a pass are
        // checked where it is known which of them it takes.
        let by_format = kind.ends_with("const uint*");
        let numbered = name.strip_prefix('v').is_some_and(|number| number.parse::<u8>().is_ok());
        let of_a_pass = ["step_vectors", "step_resident"].contains(&signature.name) && numbered;
        if kind.ends_with('*') && !by_format && !of_a_pass {
            assert!(signature.checked.contains(name), "{}: {name} may have any length", signature.name);
        }
    }
}

#[test]
fn what_is_not_as_declared_is_found() {
    let text = "typedef struct { uint n, m; // both\n uint k; } shape_t;\n__kernel GROUP\nvoid f(uint n, __global const real_t* restrict x)\n";
    assert_eq!(shape(text), ["n", "m", "k"]);
    let args = [("n", "uint"), ("x", "__global const real_t*")].map(|(name, kind)| (name.into(), kind.into()));
    assert_eq!(kernels(text)["f"], args);
    let [used, defined] = macros("#define TWO 2 // THREE\nif (FOUR + TWO > NAN) barrier(CLK_LOCAL_MEM_FENCE);");
    assert_eq!(used.into_iter().collect::<Vec<_>>(), ["FOUR", "TWO"]);
    assert_eq!(defined.into_iter().collect::<Vec<_>>(), ["TWO"]);
}
