//! Style that rots unnoticed, read from our own sources.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod imports;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use imports::{Crate, Module};

/// Every Rust file below `folder`, with its text up to the tests it ends with.
fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]\nmod tests").next().unwrap().to_string();
            found.push((path, code));
        }
    }
    found
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).into()
}

/// Code lines, without comments.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|l| !l.trim_start().starts_with("//"))
}

#[test]
fn unsafe_code_stays_in_ocl_and_gives_its_reason() {
    let mut blocks = 0;
    for (path, text) in sources(&root().join("src")) {
        let lines: Vec<&str> = text.lines().collect();
        for (i, line) in lines.iter().enumerate() {
            if line.trim_start().starts_with("//") || !line.contains("unsafe {") {
                continue;
            }
            assert!(path.starts_with(root().join("src/ocl")), "unsafe in {}", path.display());
            let before = &lines[i.saturating_sub(5)..i];
            assert!(
                before.iter().any(|l| l.contains("SAFETY:")),
                "{}:{}: no SAFETY comment",
                path.display(),
                i + 1
            );
            blocks += 1;
        }
    }
    assert!(blocks > 3, "the search no longer finds the unsafe blocks there are");
}

/// The nodes of `src/`, a folder or a file each, from the lowest level up. A node may import those of lower levels alone.
const LEVELS: [&[&str]; 15] = [
    &["allocations", "device_info", "error", "magnitude", "reduction", "state", "text", "threads"],
    &["files", "fourier", "machine", "number", "runs", "setters"],
    &["recurrence", "sparse"],
    &["io", "ocl", "tuning", "verdict"],
    &["kernels", "memory"],
    &["backend"],
    &["device"],
    &["vector"],
    &["columns"],
    &["matrix", "measure", "pointwise"],
    &["operator"],
    &["interop", "precond", "solver"],
    &["examine", "fem", "imaging", "simulation"],
    &["doctor"],
    &["tuner"],
];

/// Nodes whose names only these files may know: no host side of an operation reaches them.
const RUNTIME: [&str; 2] = ["kernels", "ocl"];

/// Tells if a module may know the OpenCL runtime.
fn knows_runtime(module: &[String]) -> bool {
    match module {
        [node] => ["memory", "interop", "kernels", "device"].contains(&node.as_str()),
        [node, ..] if ["kernels", "ocl", "device"].contains(&node.as_str()) => true,
        [node, .., last] => node == "backend" && ["dispatch", "files", "opencl"].contains(&last.as_str()),
        [] => true,
    }
}

/// Groups of operations in `backend/linear/` that others may import; these two import none.
const SHARED_GROUPS: [&str; 2] = ["product", "vector"];

/// The path of a source file below `src/`, as modules: `solver/mod.rs` is `solver`, `solver/cg.rs` is `solver`, `cg`.
fn module(path: &Path) -> Vec<String> {
    let below = path.strip_prefix(root().join("src")).unwrap().with_extension("");
    let mut parts: Vec<String> = below.iter().map(|part| part.to_str().unwrap().to_string()).collect();
    parts.pop_if(|last| matches!(last.as_str(), "mod" | "lib"));
    parts
}

fn level(node: &str) -> Option<usize> {
    LEVELS.iter().position(|nodes| nodes.contains(&node))
}

/// Folders of `src/`, and the levels of the files and folders in them, as [`LEVELS`].
const ROOMS: [(&str, &[&[&str]]); 9] = [
    (
        "sparse",
        &[
            &["checksum"],
            &["csr"],
            &["assembly", "equilibration", "formats", "gallery", "interop", "pattern", "rounding"],
            &["graph", "normal"],
        ],
    ),
    (
        "io",
        &[
            &["open"],
            &["archive", "kind", "mat5", "npy", "partition"],
            &["columns", "npz", "stack"],
            &["matrix_market", "petsc"],
            &["matrices", "readers"],
            &["arrays"],
        ],
    ),
    (
        "backend",
        &[
            &["host", "run", "widest"],
            &["opencl", "sums"],
            &["linear"],
            &["pde", "precond", "script", "tomography"],
            &["checked", "files"],
            &["dispatch"],
        ],
    ),
    (
        "operator",
        &[
            &["linear"],
            &["algebra", "deflation", "diagonal", "generated", "norms", "selection", "split", "stencil", "subsets"],
        ],
    ),
    (
        "precond",
        &[
            &["kind", "support"],
            &["block_jacobi", "inverse", "jacobi", "polynomial", "sweep", "two_level"],
            &["incomplete"],
            &["named"],
            &["build", "memory"],
        ],
    ),
    (
        "solver",
        &[
            &["null_space", "scaling", "script", "weight"],
            &["method"],
            &["stopping"],
            &["regularise"],
            &["engine"],
            &["run"],
            &["setup", "system"],
            &["direct"],
            &["right"],
            &["solve"],
        ],
    ),
    (
        "examine",
        &[
            &["entries", "envelope", "spectrum", "verdict"],
            &["advice"],
            &["chain", "explanation"],
            &["rounds"],
            &["resort"],
            &["fallbacks"],
        ],
    ),
    (
        "imaging",
        &[
            &["angles", "bad_pixels", "fields", "pose", "projected", "quality", "regularizer"],
            &["count_files", "vectors"],
            &["scanner"],
            &["edges", "geometry", "parts", "projector"],
            &["fbp", "scan"],
            &["axis", "counts", "disc", "flip", "htc", "phantom", "reconstruction"],
            &["doubt", "refusals", "scan_files", "segment"],
            &["image", "system"],
            &["reconstructor"],
        ],
    ),
    (
        "doctor",
        &[
            &["question"],
            &["abilities", "elements", "flows", "inverses", "products", "scans", "solves", "vectors"],
            &["battery"],
        ],
    ),
];

/// Rooms of `backend/` whose folders are groups of operations. No group imports another of its room, but for those in [`SHARED_GROUPS`].
const GROUP_ROOMS: [&str; 4] = ["linear", "pde", "precond", "tomography"];

/// The fault of an import of one file by another, if it has one.
fn fault(module: &Module, other: &Module) -> Option<String> {
    let (node, name) = (module.first()?, module.join("/"));
    let Some(there) = other.first() else { return Some(format!("{name} names the root of the crate")) };
    let must_not = || Some(format!("{name} must not import {}", other.join("/")));
    if there != node {
        let (Some(here), Some(there)) = (level(node), level(there)) else { return must_not() };
        return if there >= here { must_not() } else { None };
    }
    if let Some((_, rooms)) = ROOMS.iter().find(|(folder, _)| folder == node)
        && let ([_, here, ..], [_, there, ..]) = (&module[..], &other[..])
        && here != there
    {
        let level = |name: &str| rooms.iter().position(|nodes| nodes.contains(&name));
        if level(there)? >= level(here)? {
            return must_not();
        }
    }
    if let ("backend", [_, room, group, ..], [_, other_room, another, ..]) =
        (node.as_str(), &module[..], &other[..])
        && GROUP_ROOMS.contains(&room.as_str())
        && room == other_room
        && group != another
    {
        let shared = SHARED_GROUPS.contains(&another.as_str()) && !SHARED_GROUPS.contains(&group.as_str());
        return if shared { None } else { must_not() };
    }
    None
}

/// Files of `src/` as modules, with the text of each; the root names every module and is left out.
fn files() -> Vec<(Module, String)> {
    let files = sources(&root().join("src")).into_iter().map(|(path, text)| (module(&path), text));
    files.filter(|(module, _)| !module.is_empty()).collect()
}

fn faults(of: &Crate) -> Vec<String> {
    let imports = of.modules().flat_map(|module| of.imports(module).into_iter().map(move |other| (module, other)));
    let mut wrong: Vec<String> = imports.filter_map(|(module, other)| fault(module, &other)).collect();
    for module in of.modules().filter(|module| !knows_runtime(module)) {
        let names =
            of.named(module).into_iter().filter_map(|path| path.into_iter().next()).collect::<BTreeSet<_>>();
        let runtime = RUNTIME.iter().filter(|name| names.contains(**name) && module[0] != **name);
        wrong.extend(runtime.map(|name| format!("{} must not know {name}", module.join("/"))));
    }
    wrong
}

#[test]
fn imports_go_down() {
    let of = Crate::new(files());
    let wrong = faults(&of);
    assert!(wrong.is_empty(), "{wrong:#?}");
    let nodes = of.modules().filter_map(|module| module.first().cloned()).collect::<BTreeSet<_>>();
    let listed = LEVELS.concat().into_iter().map(String::from).collect::<BTreeSet<_>>();
    assert_eq!(listed, nodes, "LEVELS and the files of src/");
    for (folder, rooms) in ROOMS {
        let inside = of.modules().filter(|module| module.len() > 1 && module[0] == folder);
        let inside = inside.map(|module| module[1].clone()).collect::<BTreeSet<_>>();
        let listed = rooms.concat().into_iter().map(String::from).collect::<BTreeSet<_>>();
        assert_eq!(listed, inside, "ROOMS and the files of src/{folder}/");
    }
    for shared in SHARED_GROUPS {
        assert!(root().join("src/backend/linear").join(shared).is_dir(), "{shared} is no group");
    }
}

/// Scripts run the modules of the suite one by one, each by a name that is no end of another.
#[test]
fn every_file_of_the_suite_is_a_module_of_it() {
    let main = fs::read_to_string(root().join("tests/suite/main.rs")).unwrap();
    let listed: BTreeSet<&str> =
        main.lines().filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';')).collect();
    let files = fs::read_dir(root().join("tests/suite")).unwrap().map(|entry| entry.unwrap().path());
    let names = files.map(|path| path.file_stem().unwrap().to_str().unwrap().to_string());
    let found: BTreeSet<String> = names.filter(|name| name != "main").collect();
    assert_eq!(listed, found.iter().map(String::as_str).collect());
    for (one, other) in found.iter().flat_map(|one| found.iter().map(move |other| (one, other))) {
        assert!(one == other || !one.ends_with(other.as_str()), "the tests of {one} run with those of {other} too");
    }
}

#[test]
fn no_files_import_each_other() {
    let circles = Crate::new(files()).circles();
    assert_eq!(circles, Vec::<Vec<String>>::new(), "files that import each other");
}

/// The files of `src/`, and `text` at the end of the file of `path`.
fn with(path: &str, text: &str) -> Crate {
    let planted = module(&root().join("src").join(path));
    let mut files = files();
    match files.iter_mut().find(|(module, _)| *module == planted) {
        Some(file) => file.1 += text,
        None => files.push((planted, text.to_string())),
    }
    Crate::new(files)
}

#[test]
fn imports_that_go_up_are_found() {
    let wrong = |path: &str, text: &str| faults(&with(path, text)).len();
    assert_eq!(wrong("ocl/context.rs", "use crate::error::Result;\nuse crate::number::Real;"), 0);
    assert_eq!(wrong("ocl/context.rs", "use crate::solver::Stop;"), 1);
    assert_eq!(wrong("ocl/context.rs", "// crate::solver\nuse super::buffer::Buffer;"), 0);
    assert_eq!(wrong("ocl/context.rs", "use super::super::solver::Stop;"), 1);
    assert_eq!(wrong("ocl/mod.rs", "let stop = super::solver::Stop::Converged;"), 1);
    assert_eq!(
        wrong("vector.rs", "use crate::{\n    error::{Error, Result},\n    matrix::Matrix,\n    solver,\n};"),
        2
    );
    // Two nodes of one level.
    assert_eq!(wrong("precond/sweep.rs", "use crate::solver::Solver;"), 1);
    assert_eq!(wrong("solver/run/driver.rs", "use crate::kernels::Common;"), 1);
    assert_eq!(wrong("new.rs", "use crate::error::Error;"), 1);
    // Rooms of a folder, by what a facade re-exports too.
    assert_eq!(wrong("solver/script/draft.rs", "use crate::solver::Method;"), 1);
    assert_eq!(wrong("solver/script/draft.rs", "use super::super::engine;"), 1);
    assert_eq!(wrong("solver/engine/products.rs", "use crate::solver::script::Draft;"), 0);
    assert_eq!(wrong("number/mod.rs", "pub(crate) use crate::solver::Stop;"), 1);
    // Inside the back end: no host side that knows the runtime, no group that imports another.
    assert_eq!(
        wrong(
            "backend/precond/sweep/opencl.rs",
            "use crate::kernels::kernels;\nuse crate::backend::linear::product::Stored;"
        ),
        0
    );
    assert_eq!(wrong("backend/precond/sweep/host.rs", "use crate::ocl::Buffer;"), 1);
    assert_eq!(wrong("backend/precond/sweep/host.rs", "use crate::backend::{Host, precond::parts::Parts};"), 1);
    assert_eq!(wrong("backend/pde/flow/mod.rs", "use crate::backend::precond::sweep::Triangle;"), 1);
    assert_eq!(wrong("backend/linear/product/host.rs", "use crate::backend::linear::vector::Reduction;"), 1);
    assert_eq!(wrong("backend/precond/sweep/mod.rs", "use crate::backend::linear::product::Stored;"), 0);
}

#[test]
fn circles_are_found() {
    let circles = |path: &str, text: &str| with(path, text).circles();
    // Inside a folder, inside a room, and by way of a facade.
    assert_eq!(circles("solver/run/history.rs", "use super::driver::Observer;").len(), 1);
    assert_eq!(circles("solver/script/vectors.rs", "use crate::solver::script::{Draft, X};").len(), 1);
    let circle = circles("solver/scaling.rs", "fn f() -> super::Solver<f64> {}").concat();
    assert!(circle.contains(&"solver/solve".to_string()) && circle.contains(&"solver/scaling".to_string()));
    assert_eq!(circles("solver/script/vectors.rs", "// use super::draft::Draft;"), Vec::<Vec<String>>::new());
    // A re-export that the file uses itself.
    let used = "pub(crate) use runner::Runner as Planted;\nfn f(runner: Planted<f64>) {}\npub(crate) struct Own;";
    let mut planted = files();
    planted.iter_mut().find(|(module, _)| module.join("/") == "solver/run").unwrap().1 += used;
    planted.iter_mut().find(|(module, _)| module.join("/") == "solver/run/runner").unwrap().1 += "use super::Own;";
    assert_eq!(Crate::new(planted).circles().len(), 1);
}

/// Longest file without its tests, longest function, and most methods that a trait asks for.
const MOST_LINES: usize = 500;
const MOST_LINES_OF_A_FUNCTION: usize = 80;
const MOST_REQUIRED_METHODS: usize = 20;

/// Files that are longer. This list may only become shorter; parsers may stay.
const LONG_FILES: [&str; 1] = ["io/matrix_market.rs"];

/// Blocks of code that begin with a line that `starts`: the line, and the number of lines to the closing brace.
fn blocks(text: &str, starts: impl Fn(&str) -> bool) -> Vec<(String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| starts(line.trim_start())) {
        let indent = line.len() - line.trim_start().len();
        let ends =
            |line: &&&str| line.len() - line.trim_start().len() == indent && line.trim_start().starts_with('}');
        // A declaration without a body ends with its line.
        let signature = lines[at..].iter().find(|line| line.ends_with('{') || line.ends_with(';'));
        if signature.is_none_or(|line| line.ends_with(';')) {
            continue;
        }
        if let Some(length) = lines[at..].iter().position(|line| ends(&line)) {
            found.push((line.trim().to_string(), length + 1));
        }
    }
    found
}

fn is_function(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().take(5).collect();
    let keywords = ["pub", "pub(crate)", "pub(super)", "pub(in", "crate::backend)", "const", "unsafe"];
    let first = words.iter().position(|word| !keywords.contains(word));
    first.is_some_and(|at| words[at] == "fn")
}

#[test]
fn files_functions_and_traits_stay_short() {
    let (mut long, mut wrong, mut functions) = (Vec::new(), Vec::new(), 0);
    for (path, text) in sources(&root().join("src")) {
        let name = path.strip_prefix(root().join("src")).unwrap().to_str().unwrap().to_string();
        if text.lines().count() > MOST_LINES {
            long.push(name.clone());
        }
        for (line, length) in blocks(&text, is_function) {
            if length > MOST_LINES_OF_A_FUNCTION {
                wrong.push(format!("{name}: {length} lines: {line}"));
            }
            functions += 1;
        }
        for (at, _) in text.match_indices(" trait ") {
            let body = text[at..].split("\n}").next().unwrap();
            let required = body.split("    fn ").skip(1).filter(|method| {
                method.find(';').unwrap_or(usize::MAX) < method.find(" {\n").unwrap_or(usize::MAX)
            });
            let required = required.count();
            if required > MOST_REQUIRED_METHODS {
                wrong.push(format!("{name}: a trait asks for {required} methods"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    long.sort_unstable();
    assert_eq!(long, LONG_FILES, "files above {MOST_LINES} lines");
    assert!(functions > 500, "the search no longer finds the functions there are: {functions}");
    let text = "fn long() {\n    if a {\n    }\n}\npub(crate) fn short(\n    a: u8,\n) -> u8 {\n    a\n}\n    fn no_body(&self);\n";
    let found: Vec<usize> = blocks(text, is_function).into_iter().map(|block| block.1).collect();
    assert_eq!(found, [4, 5]);
}

#[test]
fn threads_alone_knows_rayon() {
    for (path, text) in sources(&root().join("src")) {
        let knows = code(&text).any(|line| line.contains("rayon"));
        assert_eq!(knows, path.ends_with("src/threads.rs"), "{}", path.display());
    }
}

#[test]
fn only_the_runtime_layer_waits() {
    for (path, text) in sources(&root().join("src")) {
        // Readers and writers know no device (see `LEVELS`): what they finish are files.
        let without = [root().join("src/ocl"), root().join("src/io")];
        if without.iter().any(|folder| path.starts_with(folder)) || path.ends_with("src/device/mod.rs") {
            continue;
        }
        for word in [".finish()", "clFinish", "synchronize()"] {
            // Measuring is waiting.
            let allowed = path.ends_with("src/measure.rs") && word == "synchronize()";
            assert!(allowed || !code(&text).any(|l| l.contains(word)), "{} waits", path.display());
        }
    }
}

#[test]
fn readme_names_every_method_format_and_preconditioner() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let row = readme.lines().find(|line| line.starts_with("| names |")).expect("the row of names");
    let methods = residuum::Method::ALL.iter().map(|method| method.name().to_string()).collect::<Vec<_>>();
    let formats = residuum::Format::ALL.iter().map(ToString::to_string).collect::<Vec<_>>();
    let preconditioners =
        residuum::precond::Preconditioner::ALL.iter().map(|one| one.name().to_string()).collect::<Vec<_>>();
    for name in methods.iter().chain(&formats).chain(&preconditioners) {
        assert!(row.contains(&format!("`{name}`")), "README.md does not name {name}");
    }
}

#[test]
fn no_option_that_breaks_the_numerics_contract() {
    let mut texts = sources(&root().join("src"));
    for room in fs::read_dir(root().join("cl")).unwrap() {
        for entry in fs::read_dir(room.unwrap().path()).unwrap() {
            let path = entry.unwrap().path();
            texts.push((path.clone(), fs::read_to_string(path).unwrap()));
        }
    }
    for (path, text) in texts {
        for word in ["fast-relaxed", "mad-enable", "finite-math", "unsafe-math", "mad(", "native_"] {
            // A rough number never reaches a result: the type says so.
            let rough = |l: &str| word == "native_" && l.contains("rough_t");
            assert!(!code(&text).any(|l| l.contains(word) && !rough(l)), "{word} in {}", path.display());
        }
    }
    let common = fs::read_to_string(root().join("cl/common/common.cl")).unwrap();
    assert!(common.contains("#pragma OPENCL FP_CONTRACT OFF"));
}

/// Lines, outside of tests, that call a function of the standard library whose last bit differs between platforms. Crate `libm` has it with
/// the same bits on all.
fn of_the_platform(text: &str) -> Vec<&str> {
    const NAMES: [&str; 22] = [
        "hypot", "ln", "ln_1p", "log", "log2", "log10", "exp", "exp2", "exp_m1", "powf", "cbrt", "sin", "cos",
        "tan", "sin_cos", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh",
    ];
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    code(text).filter(|line| NAMES.iter().any(|name| line.contains(&format!(".{name}(")))).collect()
}

#[test]
fn elementary_functions_come_from_libm() {
    for (path, text) in sources(&root().join("src")) {
        assert_eq!(of_the_platform(&text), [""; 0], "{}", path.display());
    }
    let text = "fn f(x: f64) -> f64 {\n    x.hypot(libm::sin(x))\n    // x.sin()\n}\n#[cfg(test)]\nmod tests {\n    x.ln();\n}\n";
    assert_eq!(of_the_platform(text), ["    x.hypot(libm::sin(x))"]);
}

/// Words that begin riddles, not sentences: a comment begins with a noun or a verb.
const RIDDLES: [&str; 15] = [
    "What", "Whatever", "Whether", "How", "Where", "As", "Of", "Its", "Those", "That", "Which", "Who", "So", "And",
    "The same",
];

/// First lines of comments, of the paragraphs of documents, that begin with a riddle.
fn riddles(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut last = None;
    for line in text.lines() {
        let line = line.trim_start();
        let Some(rest) = line.strip_prefix("//") else {
            last = None;
            continue;
        };
        let (kind, words) = match rest.strip_prefix(['/', '!']) {
            Some(words) => (rest.as_bytes()[0], words.trim_start()),
            None => (b' ', rest.trim_start()),
        };
        let begins = |word: &str| words.strip_prefix(word).is_some_and(|rest| rest.starts_with([' ', ',', '.']));
        // "As [`x`]" under "Errors" names another list.
        if last != Some(kind) && RIDDLES.iter().any(|word| begins(word)) && !words.starts_with("As [`") {
            found.push(line.to_string());
        }
        last = (!words.is_empty()).then_some(kind);
    }
    found
}

#[test]
fn comments_begin_with_a_noun_or_a_verb() {
    let text = "/// Whether it is.\n///\n/// The same.\n// The sum.\n// Where it is.\nfn f() {} // So.\n    // Of norm 1.\n";
    assert_eq!(riddles(text), ["/// Whether it is.", "/// The same.", "// Of norm 1."]);
    let (mut files, mut wrong) = (0, Vec::new());
    let mut folders: Vec<PathBuf> =
        ["src", "cl", "tests", "examples", "benches"].map(|name| root().join(name)).to_vec();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|kind| kind == "rs" || kind == "cl") {
                files += 1;
                let found = riddles(&fs::read_to_string(&path).unwrap());
                wrong.extend(found.into_iter().map(|line| format!("{}: {line}", path.display())));
            }
        }
    }
    assert!(files > 200, "the search finds {files} files alone");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Types that users meet first, beside the preconditioners.
const MAIN_TYPES: [&str; 18] = [
    "Csr",
    "Device",
    "Examination",
    "FallbackSolve",
    "Fbp",
    "Geometry",
    "LinearOperator",
    "Matrix",
    "NullSpace",
    "Projector",
    "Reconstructor",
    "Report",
    "Scan",
    "Setup",
    "Solver",
    "Stopping",
    "System",
    "Vector",
];

/// Documentation of the public type of this name: the comment lines above its attributes.
fn documentation(texts: &[(PathBuf, String)], name: &str) -> Option<String> {
    let declares = |line: &str| {
        let rest = ["pub struct ", "pub trait "].iter().find_map(|word| line.strip_prefix(word))?;
        rest.strip_prefix(name)?.starts_with(['<', ' ', ':']).then_some(())
    };
    texts.iter().find_map(|(_, text)| {
        let lines: Vec<&str> = text.lines().collect();
        let place = lines.iter().position(|line| declares(line).is_some())?;
        let above = lines[..place].iter().rev().skip_while(|line| line.starts_with("#["));
        Some(above.take_while(|line| line.starts_with("///")).copied().collect::<Vec<_>>().join("\n"))
    })
}

/// Preconditioners are the public types of `precond/` that have a precision.
#[test]
fn main_types_have_runnable_examples() {
    let texts = sources(&root().join("src"));
    let of_precond = sources(&root().join("src/precond"));
    let lines = of_precond.iter().flat_map(|(_, text)| text.lines());
    let preconditioners: Vec<&str> = lines
        .filter_map(|line| line.strip_prefix("pub struct ")?.split_once("<T: Real>"))
        .map(|(name, _)| name)
        .filter(|name| *name != "Built")
        .collect();
    assert!(preconditioners.len() >= 10, "the search no longer finds them: {preconditioners:?}");
    let lacking = |name: &&str| documentation(&texts, name).is_none_or(|text| !text.contains("/// ```"));
    let lacking: Vec<&str> = MAIN_TYPES.into_iter().chain(preconditioners).filter(lacking).collect();
    assert!(lacking.is_empty(), "without an example: {lacking:?}");
    // Documentation without an example is found to be so.
    assert!(documentation(&texts, "Storage").is_some_and(|text| !text.contains("```")));
}
