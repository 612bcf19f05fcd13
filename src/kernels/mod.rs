//! Kernel files: how they are declared, the files that several of them share, and the options of all. A program is several files one after
//! another: "joined after X.cl" at the head of a file names those before it.
//!
//! Kernels are declared where they are launched, by [`kernels!`] at the top of each group of the back end.

#[cfg(test)]
pub(crate) mod check;
mod constants;
mod declare;
mod options;
pub(crate) mod texts;

pub(crate) use constants::constants;
pub(crate) use declare::{kernels, long_enough, real_argument};
pub(crate) use options::{Common, MatrixOptions, OtherMatrix};

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use crate::backend::kernel_files;
    use crate::ocl::File;

    /// Every file that a program is made of, once.
    fn files() -> Vec<&'static File> {
        let all = kernel_files().flat_map(|file| file.after.iter().copied().chain([file]));
        all.map(|file| (file.name, file)).collect::<BTreeMap<_, _>>().into_values().collect()
    }

    #[test]
    fn every_file_is_declared_once() {
        let mut declared = BTreeSet::new();
        for file in kernel_files() {
            assert!(declared.insert(file.name), "{} twice", file.name);
        }
        let names = |folder: &str| -> Vec<String> {
            let entries = std::fs::read_dir(folder).expect("a folder of kernels");
            entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
        };
        let all = concat!(env!("CARGO_MANIFEST_DIR"), "/cl");
        let of_room = |room: String| {
            let files = names(&format!("{all}/{room}"));
            files.into_iter().map(move |file| format!("{room}/{}", file.trim_end_matches(".cl")))
        };
        let there: BTreeSet<String> = names(all).into_iter().flat_map(of_room).collect();
        let joined: BTreeSet<String> = files().iter().map(|file| file.name.to_string()).collect();
        assert_eq!(joined, there, "files of cl/ that no program needs, or that are not there");
    }

    /// Compilers build a function that is not static once more for itself: PoCL took a third longer, NVIDIA's a tenth.
    #[test]
    fn functions_that_are_no_kernels_are_static() {
        for file in files() {
            let mut before = "";
            for line in file.text.lines() {
                let function = line.starts_with(|c: char| c.is_ascii_lowercase()) && line.contains('(');
                let said = ["static ", "typedef "].iter().any(|word| line.starts_with(word));
                assert!(!function || said || before.starts_with("__kernel"), "{}.cl: {line}", file.name);
                before = line;
            }
        }
    }

    /// Constants that the host has no use for.
    const OF_THE_DEVICE_ALONE: [(&str, &str); 19] = [
        ("script/basis", "AT_ONCE"),
        ("precond/elimination", "BATCH"),
        ("precond/elimination", "BUCKETS"),
        ("precond/elimination", "CELLS"),
        ("precond/elimination", "TOO_FULL"),
        ("common/fold", "FEW_HELD"),
        ("common/fold", "SHORT_FOLD"),
        ("common/fold", "WARP"),
        ("script/global_barrier", "ARRIVED"),
        ("script/global_barrier", "VERDICT"),
        ("script/global_barrier", "DEPARTED"),
        ("script/global_barrier", "UNDECIDED"),
        ("script/global_barrier", "GO"),
        ("script/global_barrier", "ABANDON"),
        ("script/global_barrier", "PATIENCE"),
        ("pde/flow_grid", "SIDE"),
        ("linear/row", "SIDE"),
        ("linear/row", "FEW_LANES"),
        ("linear/row", "PIECE"),
    ];

    /// Every `#define NAME number` of a text.
    fn numbers(text: &str) -> Vec<(&str, i64)> {
        let number = |word: &str| match word.strip_prefix("0x") {
            Some(digits) => i64::from_str_radix(digits, 16).ok(),
            None => word.parse().ok(),
        };
        text.lines()
            .filter_map(|line| {
                let mut words = line.strip_prefix("#define ")?.split_whitespace();
                Some((words.next()?, number(words.next()?)?))
            })
            .collect()
    }

    /// Numbers that the host knows come from it; those that only kernels know are listed, and constants that no text uses are gone.
    #[test]
    fn kernels_have_the_numbers_of_the_host_from_it() {
        for File { name: file, text, constants, .. } in files() {
            for (name, _) in numbers(text) {
                assert!(
                    OF_THE_DEVICE_ALONE.contains(&(*file, name)),
                    "{name} of {file}.cl: does the host know it?"
                );
            }
            let names: BTreeSet<&str> = constants.iter().map(|(name, _)| *name).collect();
            assert_eq!(names.len(), constants.len(), "a constant of {file}.cl stands twice");
        }
        let words = |text: &str| -> BTreeSet<String> {
            let code = super::check::code(text);
            code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').map(String::from).collect()
        };
        let used: BTreeSet<String> = files().iter().flat_map(|file| words(file.text)).collect();
        let given = files().into_iter().flat_map(|file| file.constants.iter().map(|(name, _)| (file.name, *name)));
        let unused: Vec<_> = given.filter(|(_, name)| !used.contains(*name)).collect();
        assert!(unused.is_empty(), "constants that no text uses: {unused:?}");
    }

    /// A second definition of a name would count for all that follows, in the text of another file too.
    #[test]
    fn constants_of_a_program_are_defined_once() {
        for file in kernel_files() {
            let parts = || file.after.iter().copied().chain([file]);
            let mut known = BTreeMap::new();
            for (name, value) in parts().flat_map(|part| part.constants) {
                let before = known.insert(*name, *value);
                assert!(
                    before.is_none_or(|before| before == *value),
                    "{name} of {}.cl: {before:?}, {value}",
                    file.name
                );
            }
            let texts = parts().flat_map(|part| part.text.lines());
            for line in texts.filter_map(|line| line.strip_prefix("#define ")) {
                let name = line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or(line);
                assert!(!known.contains_key(name), "{name} of {}.cl is a constant of the host", file.name);
            }
        }
    }

    #[test]
    fn only_the_common_file_names_types_and_rules_of_arithmetic() {
        for File { name, text, .. } in files().into_iter().filter(|file| file.name != "common/common") {
            for word in ["float", "double", "#pragma OPENCL", "#pragma clang"] {
                assert!(!super::check::code(text).contains(word), "{word} in {name}.cl");
            }
        }
    }

    #[test]
    fn programs_are_joined_with_line_marks() {
        for file in kernel_files() {
            let text = file.source().expect("embedded source");
            let marks: Vec<&str> = text.lines().filter(|l| l.starts_with("#line")).collect();
            let names =
                file.after.iter().copied().chain([file]).map(|file| format!("#line 1 \"cl/{}.cl\"", file.name));
            assert_eq!(marks, names.collect::<Vec<_>>());
            assert!(text.ends_with(&format!("{}\n", file.text)));
        }
    }
}
