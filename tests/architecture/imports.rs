//! Imports between the files of `src/`, read from their text.
//!
//! A file imports another if it names an item of it: by `use` or in a path, from the root (`crate::`), from a module above (`super::`) or from a
//! child. An item that a `mod.rs` re-exports counts as one of the file that defines it. The re-export itself is no import, unless the file uses the item
//! or the item is not of its folder.

use std::collections::{BTreeMap, BTreeSet};

/// Place of a file among the modules: `solver/mod.rs` is `solver`, `solver/run/driver.rs` is `solver`, `run`, `driver`.
pub(crate) type Module = Vec<String>;

/// A path of names in a text.
type Names = Vec<String>;

/// Files of a crate, and what each names of the others.
pub(crate) struct Crate {
    /// Text of each file, without comments and tests.
    files: BTreeMap<Module, String>,
    /// Re-exported items: module and name, to the path that they stand for.
    exports: BTreeMap<(Module, String), Names>,
}

/// A path that begins at the root, or nothing if it begins with the name of another crate or an item.
fn from_root(module: &[String], path: &[String], is_child: impl Fn(&str) -> bool) -> Option<Names> {
    let mut rest = path;
    let mut base = match path.first()?.as_str() {
        "crate" => {
            rest = &rest[1..];
            return Some(rest.to_vec());
        }
        "self" => {
            rest = &rest[1..];
            module.to_vec()
        }
        "super" => module.to_vec(),
        child if is_child(child) => module.to_vec(),
        _ => return None,
    };
    while rest.first().is_some_and(|name| name == "super") {
        base.pop()?;
        rest = &rest[1..];
    }
    base.extend_from_slice(rest);
    Some(base)
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Words of a text, without parts of longer paths, methods, and names of functions where they are defined.
fn unqualified(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, word) in
        text.split(|c: char| !is_name(c)).map(|word| (word.as_ptr() as usize - text.as_ptr() as usize, word))
    {
        let before = text[..at].trim_end();
        if !word.is_empty() && !before.ends_with(['.', '$']) && !before.ends_with("::") && !before.ends_with("fn") {
            found.insert(word.to_string());
        }
    }
    found
}

/// The name that the last part of a path gets, if `tree` renames it: pairs of names, old and new.
fn renames(tree: &str) -> Vec<(String, String)> {
    let words: Vec<&str> = tree.split(|c: char| !is_name(c)).filter(|word| !word.is_empty()).collect();
    words.windows(3).filter(|w| w[1] == "as").map(|w| (w[0].to_string(), w[2].to_string())).collect()
}

/// Every path of a tree as `use` has it: `a::{b, c::d}` is `a::b` and `a::c::d`. Ends at what is no part of a path.
fn paths(tree: &str) -> Vec<Names> {
    let tree = tree.trim_start();
    if let Some(group) = tree.strip_prefix('{') {
        let (mut depth, mut start, mut found) = (0, 0, Vec::new());
        for (at, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                ',' if depth == 0 => {
                    found.extend(paths(&group[start..at]));
                    start = at + 1;
                }
                '}' if depth == 0 => {
                    found.extend(paths(&group[start..at]));
                    break;
                }
                '}' => depth -= 1,
                _ => {}
            }
        }
        return found;
    }
    let name: String = tree.chars().take_while(|c| is_name(*c)).collect();
    if name.is_empty() {
        return Vec::new();
    }
    let rest = tree[name.len()..].trim_start();
    match rest.strip_prefix("::") {
        Some(rest) if rest.starts_with(['{', '_']) || rest.starts_with(is_name) => {
            let below = paths(rest).into_iter().map(|below| [vec![name.clone()], below].concat());
            below.map(|path| path.into_iter().filter(|part| part != "self" || name == "self").collect()).collect()
        }
        _ => vec![vec![name]],
    }
}

/// Statements that begin with `start` at the beginning of a line, up to the semicolon, and the text without them.
fn statements(text: &str, start: impl Fn(&str) -> Option<usize>) -> (Vec<String>, String) {
    let (mut found, mut rest, mut open) = (Vec::new(), String::new(), None::<String>);
    for line in text.lines() {
        if let Some(statement) = &mut open {
            statement.push_str(line);
        } else if let Some(at) = start(line.trim_start()) {
            open = Some(line.trim_start()[at..].to_string());
        } else {
            rest.push_str(line);
            rest.push('\n');
        }
        if open.as_ref().is_some_and(|statement| statement.contains(';')) {
            found.extend(open.take());
        }
    }
    (found, rest)
}

/// Bytes before the tree of a re-export.
fn re_export(line: &str) -> Option<usize> {
    let rest = line.strip_prefix("pub")?;
    let rest = match rest.strip_prefix('(') {
        Some(inner) => inner.split_once(')')?.1,
        None => rest,
    };
    let tree = rest.strip_prefix(" use ")?;
    Some(line.len() - tree.len())
}

impl Crate {
    /// A crate of these files: the module of each, and its text without tests.
    pub(crate) fn new(files: impl IntoIterator<Item = (Module, String)>) -> Self {
        let without_comments = |text: String| {
            let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            lines.map(|line| line.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n")
        };
        let texts: BTreeMap<Module, String> =
            files.into_iter().map(|(module, text)| (module, without_comments(text))).collect();
        let mut made = Self { files: texts, exports: BTreeMap::new() };
        let mut rests = BTreeMap::new();
        for (module, text) in &made.files {
            let (exports, mut rest) = statements(text, re_export);
            let words = unqualified(&rest);
            for tree in &exports {
                let renames = renames(tree);
                for path in paths(tree) {
                    let Some(full) = from_root(module, &path, |child| made.has_child(module, child)) else {
                        continue;
                    };
                    let Some(item) = full.last().cloned() else { continue };
                    let name = renames.iter().find(|(old, _)| *old == item).map_or(item, |(_, new)| new.clone());
                    // A file imports items that it uses itself, and those of other folders.
                    if words.contains(&name) || !full.starts_with(module) {
                        rest += &format!("use crate::{};\n", full.join("::"));
                    }
                    made.exports.insert((module.clone(), name), full);
                }
            }
            rests.insert(module.clone(), rest);
        }
        made.files = rests;
        made
    }

    pub(crate) fn modules(&self) -> impl Iterator<Item = &Module> {
        self.files.keys()
    }

    fn has_child(&self, module: &[String], child: &str) -> bool {
        self.files.contains_key(&[module, &[child.to_string()]].concat())
    }

    /// The file that defines what a path from the root names.
    fn home(&self, path: &[String]) -> Option<Module> {
        let mut path = path.to_vec();
        // A re-export may name another one, and a circle of them nothing.
        for _ in 0..8 {
            let deepest = (1..=path.len()).rev().find(|count| self.files.contains_key(&path[..*count]))?;
            let (module, rest) = path.split_at(deepest);
            let target = rest.first().and_then(|item| self.exports.get(&(module.to_vec(), item.clone())));
            match target {
                Some(target) => path = [target.as_slice(), &rest[1..]].concat(),
                None => return Some(module.to_vec()),
            }
        }
        None
    }

    /// Paths from the root that the file `module` names.
    pub(crate) fn named(&self, module: &Module) -> Vec<Vec<String>> {
        let text = self.files.get(module).map_or("", String::as_str);
        let mut found = Vec::new();
        let mut before = ' ';
        for (at, c) in text.char_indices() {
            let begins = is_name(c) && !is_name(before) && before != ':' && before != '$' && before != '\'';
            before = c;
            if !begins {
                continue;
            }
            let name: String = text[at..].chars().take_while(|c| is_name(*c)).collect();
            let qualified = text[at + name.len()..].starts_with("::");
            let relevant = ["crate", "super", "self"].contains(&name.as_str()) || self.has_child(module, &name);
            if !qualified || !relevant {
                continue;
            }
            let paths = paths(&text[at..]).into_iter();
            found.extend(paths.filter_map(|path| from_root(module, &path, |child| self.has_child(module, child))));
        }
        found
    }

    /// Files that the file `module` imports.
    pub(crate) fn imports(&self, module: &Module) -> BTreeSet<Module> {
        let mut found: BTreeSet<Module> = self.named(module).iter().filter_map(|path| self.home(path)).collect();
        found.remove(module);
        found
    }

    /// Circles of imports: files that import each other, directly or by others.
    pub(crate) fn circles(&self) -> Vec<Vec<String>> {
        let edges: BTreeMap<&Module, BTreeSet<Module>> =
            self.files.keys().map(|module| (module, self.imports(module))).collect();
        let reach = |from: &Module| {
            let (mut seen, mut open) = (BTreeSet::new(), vec![from.clone()]);
            while let Some(module) = open.pop() {
                for next in edges.get(&module).into_iter().flatten() {
                    if seen.insert(next.clone()) {
                        open.push(next.clone());
                    }
                }
            }
            seen
        };
        let reached: BTreeMap<&Module, BTreeSet<Module>> = self.files.keys().map(|m| (m, reach(m))).collect();
        let mut circles = BTreeSet::new();
        for (module, others) in reached.iter().filter(|(module, others)| others.contains(**module)) {
            let circle =
                others.iter().filter(|other| reached.get(other).is_some_and(|back| back.contains(*module)));
            circles.insert(circle.map(|module| module.join("/")).collect::<Vec<_>>());
        }
        circles.into_iter().collect()
    }
}
