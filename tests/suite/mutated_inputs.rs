//! Programs on damaged files of every format and on options out of any range: each run ends by itself within ten seconds and a
//! gigabyte, with exit status 0, 1 or 2, and never by a panic or an abort.
//!
//! `RESIDUUM_MUTATIONS=20000` tries that many (400 otherwise), `RESIDUUM_MUTATION_SEED` others than those of seed 1, and `RESIDUUM_MUTATION_LAST=7` the
//! last seven kinds of files alone. The host does the
//! work: what is tested is what stands before it.
#![cfg(target_os = "linux")] // for ulimit and timeout

use std::io::{Cursor, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::program;
use flate2::Compression;
use flate2::write::GzEncoder;
use residuum::io::{matrix_market, npy, npz};
use residuum::sparse::gallery::{self, Random};
use zip::read::ZipArchive;
use zip::write::{SimpleFileOptions, ZipWriter};

/// Kilobytes of address space for a run: a gigabyte beside the program, its threads and the file.
const ADDRESS_SPACE: usize = 1_600_000;

/// Packing of content. Packed content that was damaged fails its checksums, so most damage is done before.
#[derive(Clone)]
enum Packing {
    None,
    Gzip,
    /// Files by name, of which the content is the first.
    Zip(Vec<(String, Vec<u8>)>),
    Tar(Vec<(String, Vec<u8>)>),
    TarGzip(Vec<(String, Vec<u8>)>),
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(content).unwrap();
    packed.finish().unwrap()
}

fn tar(content: &[u8], files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (k, (name, file)) in files.iter().enumerate() {
        let file = if k == 0 { content } else { file };
        let mut header = tar::Header::new_gnu();
        header.set_size(file.len() as u64);
        archive.append_data(&mut header, name, file).unwrap();
    }
    archive.into_inner().unwrap()
}

impl Packing {
    fn pack(&self, content: Vec<u8>) -> Vec<u8> {
        match self {
            Self::None => content,
            Self::Gzip => gzip(&content),
            Self::Tar(files) => tar(&content, files),
            Self::TarGzip(files) => gzip(&tar(&content, files)),
            Self::Zip(arrays) => {
                let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
                for (k, (name, array)) in arrays.iter().enumerate() {
                    archive.start_file(name.as_str(), SimpleFileOptions::default()).unwrap();
                    archive.write_all(if k == 0 { &content } else { array }).unwrap();
                }
                archive.finish().unwrap().into_inner()
            }
        }
    }
}

/// A file to damage, and runs that read it as `damaged`.
struct Case {
    content: Vec<u8>,
    packing: Packing,
    runs: Vec<(&'static str, Vec<&'static str>)>,
}

/// One element of a MATLAB file.
fn element(kind: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = [kind.to_le_bytes(), (data.len() as u32).to_le_bytes()].concat();
    bytes.extend(data);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes
}

fn array(class: u32, shape: [u32; 2], name: &str, rest: &[u8]) -> Vec<u8> {
    let flags = element(6, &[class.to_le_bytes(), 0u32.to_le_bytes()].concat());
    let shape = element(5, &shape.map(u32::to_le_bytes).concat());
    element(14, &[flags, shape, element(1, name.as_bytes()), rest.to_vec()].concat())
}

fn numbers(shape: [u32; 2], name: &str, values: &[f64]) -> Vec<u8> {
    array(6, shape, name, &element(9, &values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>()))
}

fn structure(name: &str, fields: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut names = Vec::new();
    for (name, _) in fields {
        names.extend(name.bytes());
        names.resize(names.len().next_multiple_of(32), 0);
    }
    let mut rest = [element(5, &32u32.to_le_bytes()), element(1, &names)].concat();
    fields.iter().for_each(|(_, value)| rest.extend(value));
    array(2, [1, 1], name, &rest)
}

/// A scan as the Helsinki Tomography Challenge has them, of 6 angles and 8 pixels.
fn scan() -> Vec<u8> {
    let number = |value: f64| numbers([1, 1], "", &[value]);
    let angles: Vec<f64> = (0..6).map(|k| 60.0 * f64::from(k)).collect();
    let sinogram: Vec<f64> = (0..48).map(|k| f64::from(k % 8)).collect();
    let parameters = structure(
        "",
        &[
            ("distanceSourceOrigin", number(410.66)),
            ("distanceSourceDetector", number(553.74)),
            ("pixelSizePost", number(0.2)),
            ("angles", numbers([1, 6], "", &angles)),
        ],
    );
    let data = structure("CtDataFull", &[("parameters", parameters), ("sinogram", numbers([6, 8], "", &sinogram))]);
    let mut file = b"MATLAB 5.0 MAT-file, made for a test".to_vec();
    file.resize(124, b' ');
    file.extend([0, 1, b'I', b'M']);
    file.extend(data);
    file
}

fn cases(folder: &Path) -> Vec<Case> {
    let solve = |args: &[&'static str]| ("solve", [&["damaged", "--iterations", "20"], args].concat());
    let matrix = ["--matrix", "damaged", "--rhs", "b.npy", "--iterations", "5"];
    let image = ["--input", "damaged", "--size", "8", "--iterations", "3"];
    let rhs = ["a.mtx", "--rhs", "damaged", "--iterations", "20"];
    let reference = ["--size", "8", "--iterations", "2", "--reference", "damaged"];
    let of_matrices = || vec![solve(&[]), solve(&["--method", "gmres"]), ("reconstruct", matrix.to_vec())];
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    let mut found = Vec::new();
    for text in [
        String::from_utf8(read("a.mtx")).unwrap(),
        "%%MatrixMarket matrix coordinate integer symmetric\n% x\n3 3 4\n1 1 4\n2 1 -1\n2 2 4\n3 3 5\n".into(),
        "%%MatrixMarket matrix coordinate pattern general\n3 4 3\n1 1\n2 4\n3 2\n".into(),
        "%%MatrixMarket matrix array real general\n3 2\n1\n2.5e-3\n-3\n4\n5\n6\n".into(),
        "%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 2\n2 1 1e300\n3 2 -1e-300\n".into(),
    ] {
        let content = text.into_bytes();
        found.push(Case { content: content.clone(), packing: Packing::None, runs: of_matrices() });
        found.push(Case { content, packing: Packing::Gzip, runs: of_matrices() });
    }
    // A matrix behind a byte-order mark, and in archives: alone, and beside others.
    let text = String::from_utf8(read("a.mtx")).unwrap();
    let mut marked = b"\xef\xbb\xbf".to_vec();
    marked.extend(text.bytes());
    found.push(Case { content: marked, packing: Packing::None, runs: of_matrices() });
    let alone = vec![("a/a.mtx".to_string(), Vec::new())];
    let long = format!("{}/a.mtx", "long".repeat(50));
    let among =
        ["a.mtx", "a_b.mtx", "a_coord.mtx", &long].map(|name| (name.to_string(), text.clone().into_bytes()));
    for files in [alone, among.to_vec()] {
        for packing in [Packing::Zip(files.clone()), Packing::Tar(files.clone()), Packing::TarGzip(files)] {
            found.push(Case { content: text.clone().into_bytes(), packing: packing.clone(), runs: of_matrices() });
            // Headers have their turn: the whole archive is the content.
            let content = packing.pack(text.clone().into_bytes());
            found.push(Case { content, packing: Packing::None, runs: of_matrices() });
        }
    }
    // Both triangles, which are refused unless damage leaves one.
    let both =
        "%%MatrixMarket matrix coordinate real symmetric\n3 3 6\n1 1 4\n2 1 -1\n% x\n1 2 -1\n2 2 4\n3 1 1\n3 3 5\n";
    found.push(Case { content: both.into(), packing: Packing::None, runs: of_matrices() });
    // A binary file of PETSc with a matrix and a vector, by integers of both sizes.
    for wide in [false, true] {
        let integer = |n: i64| if wide { n.to_be_bytes().to_vec() } else { (n as i32).to_be_bytes().to_vec() };
        let integers = |numbers: &[i64]| numbers.iter().flat_map(|n| integer(*n)).collect::<Vec<u8>>();
        let values = [4.0f64, -1.0, -1.0, 4.0, 5.0].map(f64::to_be_bytes).concat();
        let matrix = integers(&[1_211_216, 3, 3, 5, 2, 2, 1, 0, 1, 0, 1, 2]);
        let vector = [integers(&[1_211_214, 3]), [1.0f64, 2.0, 3.0].map(f64::to_be_bytes).concat()].concat();
        let content = [matrix, values, vector].concat();
        let runs = [of_matrices(), vec![solve(&["--rhs", "damaged"])]].concat();
        found.push(Case { content, packing: Packing::None, runs });
    }
    // Several right-hand sides, and partitions.
    let of_rhs = || {
        let other = ["--matrix", "a.mtx", "--rhs", "damaged", "--iterations", "3", "--save", "x.mtx"];
        vec![("solve", [&rhs[..], &["--save", "x.npz"]].concat()), ("reconstruct", other.to_vec())]
    };
    for name in ["b3.npy", "b3.npz", "b3.mtx"] {
        found.push(Case { content: read(name), packing: Packing::None, runs: of_rhs() });
    }
    found.push(Case {
        content: b"0\n1\n2\n0\n1\n2\n0\n1\n2\n".to_vec(),
        packing: Packing::None,
        runs: vec![
            ("solve", vec!["a.mtx", "--preconditioner", "block-jacobi", "--partition", "damaged"]),
            ("solve", vec!["a.mtx", "--preconditioner", "bainv", "--partition", "damaged"]),
        ],
    });
    let geometry = "beam = \"fan\"\nsource_origin = 410.66\nsource_detector = 553.74\npitch = 0.2\noffset = 0.0\narc = 360.0\n";
    found.push(Case {
        content: geometry.into(),
        packing: Packing::None,
        runs: vec![(
            "reconstruct",
            ["--input", "s.npy", "--geometry", "damaged.toml", "--size", "8", "--iterations", "3"].to_vec(),
        )],
    });
    let archives = ["csr", "csc", "coo", "bsr", "dia", "array_int"]
        .map(|name| std::fs::read(format!("{}/tests/data/scipy_{name}.npz", env!("CARGO_MANIFEST_DIR"))).unwrap());
    for whole in archives.into_iter().chain([read("a.npz")]) {
        let mut archive = ZipArchive::new(Cursor::new(whole)).unwrap();
        let mut arrays: Vec<(String, Vec<u8>)> = Vec::new();
        for k in 0..archive.len() {
            let mut file = archive.by_index(k).unwrap();
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).unwrap();
            arrays.push((file.name().unwrap().to_string(), bytes));
        }
        // Each array has its turn to be damaged.
        for _ in 0..arrays.len() {
            arrays.rotate_left(1);
            let content = arrays[0].1.clone();
            found.push(Case { content, packing: Packing::Zip(arrays.clone()), runs: of_matrices() });
        }
    }
    for name in ["b.npy", "s.npy"] {
        let runs = vec![
            ("solve", rhs.to_vec()),
            ("reconstruct", image.to_vec()),
            ("reconstruct", reference.to_vec()),
            ("reconstruct", ["--matrix", "a.mtx", "--rhs", "damaged", "--iterations", "3"].to_vec()),
        ];
        found.push(Case { content: read(name), packing: Packing::None, runs });
    }
    found.push(Case {
        content: scan(),
        packing: Packing::None,
        runs: vec![("reconstruct", image.to_vec()), ("reconstruct", reference.to_vec())],
    });
    let entry = "version = 1\n[[entry]]\ndevice = \"x\"\nplatform = \"p\"\ndriver = \"1\"\nfamily = \"cg-product\"\nreading = \
                 \"rows\"\nprecision = \"fp64\"\nsize = \"large\"\nset = { work_group = 512, registers = 40 }\n";
    found.push(Case {
        content: entry.into(),
        packing: Packing::None,
        runs: vec![
            ("tune", vec!["show", "--file", "damaged"]),
            ("tune", vec!["merge", "damaged", "--file", "other.toml"]),
        ],
    });
    let angles: String = (0..6).map(|k| format!("{}\n", 30 * k)).collect();
    let theta = ["--input", "s.npy", "--size", "8", "--iterations", "3", "--theta", "damaged"];
    found.push(Case {
        content: angles.into(),
        packing: Packing::None,
        runs: vec![("reconstruct", theta.to_vec())],
    });
    // Counts, with what links lead to beside them.
    let exchange =
        |name: &str| std::fs::read(format!("{}/tests/data/exchange/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let counts = ["--input", "damaged", "--size", "8", "--iterations", "3", "--axis", "3.5", "--flat", "900"];
    let own = counts[..8].to_vec();
    let mut counts_of = |name: &str, args: Vec<&'static str>| {
        found.push(Case { content: exchange(name), packing: Packing::None, runs: vec![("reconstruct", args)] });
    };
    if cfg!(feature = "tiff") {
        counts_of("imagej.tif", counts.to_vec());
    }
    if cfg!(feature = "hdf5") {
        std::fs::write(folder.join("plain.h5"), exchange("plain.h5")).unwrap();
        for name in ["soft.h5", "external.h5", "virtual.h5", "half.h5"] {
            counts_of(name, own.clone());
        }
        counts_of("tomo.nxs", [&own[..], &["--data", "entry1/tomo_entry/data/data"]].concat());
    }
    found
}

/// Numbers that a program may be given in place of those that it expects.
const NUMBERS: [&str; 20] = [
    "0",
    "-1",
    "1",
    "2",
    "nan",
    "inf",
    "-inf",
    "1e308",
    "1e-308",
    "4294967295",
    "4294967296",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775808",
    "1e400",
    "0x10",
    "",
    "ten",
    "1,2",
    "0.5",
];

/// One damage, or a few.
fn mutate(content: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = content.to_vec();
    for _ in 0..=random.next() % 5 / 3 {
        let at = (random.next() as usize) % bytes.len().max(1);
        let length = 1 + (random.next() as usize) % 16;
        let end = bytes.len().min(at + length);
        match random.next() % 8 {
            0 => bytes.truncate(at),
            1 => bytes[at..end].fill((random.next() & 255) as u8),
            2 => bytes[at..end].iter_mut().for_each(|b| *b ^= 1 << (random.next() % 8)),
            3 => {
                let again = bytes[at..end].to_vec();
                bytes.splice(at..at, again);
            }
            4 => {
                bytes.splice(at..end, []);
            }
            5 => {
                let noise: Vec<u8> = (0..length).map(|_| (random.next() & 255) as u8).collect();
                bytes.splice(at..at, noise);
            }
            // A number of a text becomes another.
            6 => {
                let digit = |b: &u8| b.is_ascii_digit();
                let Some(first) = bytes[at..].iter().position(digit).map(|k| at + k) else { continue };
                let last = bytes[first..].iter().position(|b| !digit(b)).map_or(bytes.len(), |k| first + k);
                let other = NUMBERS[(random.next() as usize) % NUMBERS.len()];
                bytes.splice(first..last, other.bytes());
            }
            // Four bytes of a binary one do.
            _ => {
                let word = [0, 1, u32::MAX, i32::MAX as u32, 1 << 31, 1 << 16][(random.next() as usize) % 6];
                let end = bytes.len().min(at + 4);
                bytes[at..end].copy_from_slice(&word.to_le_bytes()[..end - at]);
            }
        }
        if bytes.is_empty() {
            break;
        }
    }
    bytes
}

/// Options with numbers, and values that few expect.
fn options(random: &mut Random) -> (&'static str, Vec<String>) {
    let solve = [
        "--damp",
        "--omega",
        "--restart",
        "--eigenvalues",
        "--relaxation",
        "--rtol",
        "--atol",
        "--gradient-rtol",
        "--gradient-reduction",
        "--iterations",
        "--exact-every",
        "--time-limit",
        "--work-group",
    ];
    let reconstruct = [
        "--size",
        "--angles",
        "--bin",
        "--field",
        "--lower",
        "--upper",
        "--iterations",
        "--rtol",
        "--gradient-rtol",
        "--gradient-reduction",
        "--work-group",
        "--arc",
        "--pitch",
        "--detector-offset",
        "--source-origin",
        "--source-detector",
        "--regularizer",
    ];
    let methods = [
        "auto",
        "cg",
        "steepest-descent",
        "minres",
        "bicgstab",
        "gmres",
        "chebyshev",
        "stationary",
        "cgls",
        "cgne",
        "lsqr",
        "lsmr",
    ];
    let preconditioners = ["auto", "none", "jacobi", "gauss-seidel", "sor", "ssor"];
    let gallery = ["poisson2d", "poisson3d", "blocks", "diagonals", "random", "dense", "stock-koch", "mystery"];
    let mut pick = |from: &[&'static str]| from[(random.next() as usize) % from.len()];
    let number = NUMBERS;
    match pick(&["solve", "solve", "reconstruct", "reconstruct", "gallery", "devices"]) {
        "solve" => {
            let mut args: Vec<String> = vec!["a.mtx".into(), "--method".into(), pick(&methods).into()];
            args.extend(["--preconditioner".into(), pick(&preconditioners).into()]);
            for _ in 0..2 {
                args.push(format!("{}={}", pick(&solve), pick(&number)));
            }
            ("solve", args)
        }
        "reconstruct" => {
            let mut args: Vec<String> = vec!["--iterations=3".into(), "--size=8".into()];
            if pick(&["scan", "sinogram"]) == "sinogram" {
                args.extend([
                    "--input".into(),
                    "s.npy".into(),
                    "--geometry".into(),
                    pick(&["fan", "parallel"]).into(),
                ]);
            }
            for _ in 0..2 {
                let name = pick(&reconstruct);
                let value =
                    if name == "--regularizer" { format!("tv={}", pick(&number)) } else { pick(&number).into() };
                args.retain(|arg| !arg.starts_with(&format!("{name}=")));
                args.push(format!("{name}={value}"));
            }
            ("reconstruct", args)
        }
        "gallery" => {
            let name = format!("{}:{}:{}", pick(&gallery), pick(&number), pick(&number));
            let name = if pick(&["whole", "short"]) == "short" {
                name[..name.rfind(':').unwrap()].to_string()
            } else {
                name
            };
            ("solve", vec![name, "--iterations".into(), "3".into(), "--time-limit".into(), "2".into()])
        }
        _ => ("devices", vec!["--device".into(), format!("memory={} units={}", pick(&number), pick(&number))]),
    }
}

/// Runs a program within its limits: its exit status, or what is wrong with how it ended.
fn run(folder: &Path, name: &str, args: &[String]) -> Result<usize, String> {
    let path = program(name).get_program().to_owned();
    let limited = format!("ulimit -v {ADDRESS_SPACE}; exec timeout -k 1 10 \"$0\" \"$@\"");
    let output = Command::new("bash")
        .args(["-c", &limited])
        .arg(path)
        .args(args)
        .current_dir(folder)
        // No driver is looked for: that would take most of the time.
        .env("OCL_ICD_VENDORS", folder.join("none"))
        .env("RESIDUUM_DEVICE", "host")
        .env("RESIDUUM_CACHE", "off")
        .env("RAYON_NUM_THREADS", "2")
        .env_remove("RUST_LOG")
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    let how = match (output.status.code(), output.status.signal()) {
        _ if error.contains("panicked") => "a panic",
        (Some(code @ 0..=2), _) => return Ok(code as usize),
        (Some(124 | 137), _) => "no end",
        (Some(134), _) | (_, Some(6)) => "an abort",
        _ => "another status",
    };
    Err(format!("{how} ({}): {name} {args:?}: {}", output.status, error.lines().next().unwrap_or("")))
}

/// The number that a variable of the environment names.
fn number(name: &str, otherwise: usize) -> usize {
    std::env::var(name).map_or(otherwise, |n| n.parse().expect("a number"))
}

#[test]
fn nothing_that_is_read_or_asked_for_brings_a_program_down() {
    let count = number("RESIDUUM_MUTATIONS", 400);
    let seed = number("RESIDUUM_MUTATION_SEED", 1) as u64;
    let threads = std::thread::available_parallelism().map_or(2, |n| n.get());
    let next = AtomicUsize::new(0);
    let ends: [AtomicUsize; 3] = std::array::from_fn(|_| AtomicUsize::new(0));
    let faults = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let folder = tempfile::tempdir().unwrap();
                let at = |name: &str| folder.path().join(name);
                std::fs::create_dir(at("none")).unwrap();
                matrix_market::write_matrix(&at("a.mtx"), &gallery::poisson_2d::<f64>(3, 0.1).unwrap()).unwrap();
                npz::write_matrix(&at("a.npz"), &gallery::random::<f64>(9, 5, 20, 3).unwrap()).unwrap();
                npy::write(&at("b.npy"), &[9], &[1.0f64; 9]).unwrap();
                for name in ["b3.npy", "b3.npz", "b3.mtx"] {
                    let columns: Vec<Vec<f64>> = (0..3).map(|c| vec![f64::from(c) + 0.5; 9]).collect();
                    residuum::io::write_columns(&at(name), &columns, false).unwrap();
                }
                // Geometries are known by this ending.
                std::os::unix::fs::symlink("damaged", at("damaged.toml")).unwrap();
                let sinogram: Vec<f64> = (0..60).map(|k| f64::from(k % 10)).collect();
                npy::write(&at("s.npy"), &[6, 10], &sinogram).unwrap();
                let mut cases = cases(folder.path());
                let first = cases.len().saturating_sub(number("RESIDUUM_MUTATION_LAST", usize::MAX));
                cases.drain(..first);
                loop {
                    let k = next.fetch_add(1, Ordering::Relaxed);
                    if k >= count {
                        break;
                    }
                    let mut random = Random::new(seed ^ (k as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
                    let (name, args) = if k % 5 == 4 {
                        options(&mut random)
                    } else {
                        let case = &cases[(random.next() as usize) % cases.len()];
                        let damaged = match random.next() % 8 {
                            0 => mutate(&case.packing.pack(case.content.clone()), &mut random),
                            _ => case.packing.pack(mutate(&case.content, &mut random)),
                        };
                        std::fs::write(at("damaged"), damaged).unwrap();
                        let (name, args) = &case.runs[(random.next() as usize) % case.runs.len()];
                        (*name, args.iter().map(ToString::to_string).collect())
                    };
                    let ended = run(folder.path(), name, &args);
                    if let Ok(code) = &ended {
                        ends[*code].fetch_add(1, Ordering::Relaxed);
                    }
                    if let Err(fault) = ended {
                        let kept = std::env::temp_dir().join(format!("residuum-mutation-{seed}-{k}"));
                        let _ = std::fs::copy(at("damaged"), &kept);
                        faults.lock().unwrap().push(format!("{k}: {fault} ({})", kept.display()));
                    }
                }
            });
        }
    });
    let faults = faults.into_inner().unwrap();
    let ends = ends.map(AtomicUsize::into_inner);
    println!("{count} runs of seed {seed}: {} done, {} not converged, {} refused", ends[0], ends[1], ends[2]);
    // Damage that is always refused at once would test nothing.
    assert!(30 * ends[0] > count && ends[2] > 0, "{ends:?}");
    assert!(faults.is_empty(), "{} of {count}:\n{}", faults.len(), faults.join("\n"));
}

/// Files that are read anew, by the readers themselves, which take a thousand times less than a program: `RESIDUUM_MUTATIONS` of each form. Run
/// it with `ulimit -v 1600000` to hold the memory of all of them to a gigabyte.
#[test]
fn readers_take_any_bytes() {
    let count = number("RESIDUUM_MUTATIONS", 400);
    let seed = number("RESIDUUM_MUTATION_SEED", 1) as u64;
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    matrix_market::write_matrix(&at("a.mtx"), &gallery::poisson_2d::<f64>(3, 0.1).unwrap()).unwrap();
    let text = std::fs::read(at("a.mtx")).unwrap();
    let columns: Vec<Vec<f64>> = (0..3).map(|c| vec![f64::from(c) + 0.5; 9]).collect();
    let written = |name: &str| {
        residuum::io::write_columns(&at(name), &columns, false).unwrap();
        std::fs::read(at(name)).unwrap()
    };
    let both =
        "%%MatrixMarket matrix coordinate real symmetric\n3 3 6\n1 1 4\n2 1 -1\n% x\n1 2 -1\n2 2 4\n3 1 1\n3 3 5\n";
    let skew = "%%MatrixMarket matrix coordinate integer skew-symmetric\n3 3 4\n1 1 0\n2 1 -1\n3 1 2\n3 3 0\n";
    let geometry = "beam = \"fan\"\nsource_origin = 410.66\nsource_detector = 553.74\npitch = 0.2\narc = 360.0\n";
    let long = format!("{}/a.mtx", "long".repeat(50));
    let files = ["a.mtx", "a_b.mtx", "a_coord.mtx", &long].map(|name| (name.to_string(), text.clone())).to_vec();
    let marked = [b"\xef\xbb\xbf", &text[..]].concat();
    let forms: [(&str, Vec<u8>, Packing); 13] = [
        ("mark", marked, Packing::None),
        ("both triangles", both.into(), Packing::None),
        ("skew", skew.into(), Packing::None),
        ("zip", text.clone(), Packing::Zip(files.clone())),
        ("tar", text.clone(), Packing::Tar(files.clone())),
        ("tar.gz", text.clone(), Packing::TarGzip(files.clone())),
        ("headers of tar", Packing::Tar(files.clone()).pack(text.clone()), Packing::None),
        ("headers of tar.gz", Packing::Tar(files.clone()).pack(text.clone()), Packing::Gzip),
        ("headers of zip", Packing::Zip(files).pack(text.clone()), Packing::None),
        ("columns npy", written("b3.npy"), Packing::None),
        ("columns npz", written("b3.npz"), Packing::None),
        ("columns mtx", written("b3.mtx"), Packing::None),
        ("partition and geometry", geometry.into(), Packing::None),
    ];
    let parts = b"0\n1\n2\n0\n1\n2\n0\n1\n2\n";
    for (form, content, packing) in forms {
        let (mut read, mut slowest) = (0, 0.0f64);
        for k in 0..count {
            let mut random = Random::new(seed ^ (k as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let damaged = match random.next() % 8 {
                0 => mutate(&packing.pack(content.clone()), &mut random),
                _ => packing.pack(mutate(&content, &mut random)),
            };
            let path = at("damaged");
            std::fs::write(&path, damaged).unwrap();
            let clock = std::time::Instant::now();
            let matrix = residuum::io::read_matrix::<f64>(&path, &mut |_, _| {});
            let vectors = residuum::io::read_columns::<f32>(&path, 9);
            read += usize::from(matrix.is_ok() || vectors.is_ok());
            if let Ok(found) = &vectors {
                assert!(found.vectors.iter().all(|vector| vector.len() == 9), "{form} {k}");
            }
            if form.starts_with("partition") {
                read += usize::from(residuum::imaging::Geometry::read(&path).is_ok());
                std::fs::write(&path, mutate(parts, &mut random)).unwrap();
                let found = residuum::io::read_partition(&path);
                assert!(found.as_ref().is_ok_and(|found| found.parts() <= found.rows().max(1)) || found.is_err());
                read += usize::from(found.is_ok());
            }
            slowest = slowest.max(clock.elapsed().as_secs_f64());
        }
        println!("{form}: {read} of {count} are read, the slowest took {slowest:.3} s");
        // A file with both triangles is refused unless the damage is to one of them.
        assert!(slowest < 10.0 && (read > 0 || form == "both triangles"), "{form}: {read} read, {slowest} s");
    }
}

/// A stack of ImageJ with a scale of its values, as [`readers_take_any_bytes`]: damage meets its description in one of four.
#[cfg(feature = "tiff")]
#[test]
fn readers_take_any_stack_with_a_scale() {
    let count = number("RESIDUUM_MUTATIONS", 400);
    let seed = number("RESIDUUM_MUTATION_SEED", 1) as u64;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.tif");
    let file = std::fs::read(format!("{}/tests/data/exchange/imagej.tif", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let (words, scale) = (b"slices=6\nloop=false", b"cf=0\nc0=-5.25\nc1=-2");
    let at = file.windows(words.len()).position(|part| part == words).expect("a description of ImageJ");
    let file = [&file[..at], scale, &file[at + scale.len()..]].concat();
    let (mut read, mut slowest) = (0, 0.0f64);
    for k in 0..count {
        let mut random = Random::new(seed ^ (k as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let damaged = match random.next() % 4 {
            0 => {
                [&file[..at], &mutate(&file[at..at + scale.len()], &mut random), &file[at + scale.len()..]].concat()
            }
            _ => mutate(&file, &mut random),
        };
        std::fs::write(&path, damaged).unwrap();
        let clock = std::time::Instant::now();
        if let Ok(mut stack) = residuum::io::Stack::open(&path) {
            let [pictures, rows, columns] = stack.shape();
            for picture in 0..pictures.min(8) {
                if let Ok(values) = stack.picture(picture) {
                    assert_eq!(values.len(), rows * columns, "{k}");
                    read += 1;
                }
            }
        }
        slowest = slowest.max(clock.elapsed().as_secs_f64());
    }
    println!("stack with a scale: {read} pictures of {count} files are read, the slowest took {slowest:.3} s");
    assert!(read > 0 && slowest < 10.0, "{read} read, {slowest} s");
}
