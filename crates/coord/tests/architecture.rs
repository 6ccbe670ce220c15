//! Tests the architecture: the modules of a crate do not import each other in a circle.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The modules of a crate, below its root, and which of the others each names.
type Modules = BTreeMap<String, BTreeSet<String>>;

/// The source files below a folder, without those of tests.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let below = |path: PathBuf| match path.is_dir() {
        true => sources(&path),
        false => Vec::from_iter(path.extension().is_some_and(|end| end == "rs").then_some(path)),
    };
    entries.filter(|path| path.file_stem().is_some_and(|name| name != "tests")).flat_map(below).collect()
}

/// What a text names at the root of its crate. Tests and comments do not count.
fn named(text: &str) -> BTreeSet<String> {
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let lines = code.lines().map(|line| line.split("//").next().unwrap_or_default());
    let code = lines.collect::<Vec<_>>().join("\n");
    let words = code.split("crate::").skip(1);
    let first = |word: &str| {
        let word = word.trim_start();
        word[..word.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(word.len())].to_string()
    };
    let of_group = |word: &str| {
        let group = word.strip_prefix('{')?.split(';').next()?;
        Some(group.split(',').map(first).collect::<Vec<_>>())
    };
    words.flat_map(|word| of_group(word).unwrap_or_else(|| vec![first(word)])).collect()
}

fn modules(source: &Path) -> Modules {
    let mut modules = Modules::new();
    for file in sources(source) {
        let below = file.strip_prefix(source).expect("a file below");
        let name = below.iter().next().expect("a name").to_string_lossy().trim_end_matches(".rs").to_string();
        if name != "lib" && name != "main" {
            let text = std::fs::read_to_string(&file).expect("a source file");
            modules.entry(name).or_default().extend(named(&text));
        }
    }
    let names: BTreeSet<String> = modules.keys().cloned().collect();
    for (name, others) in &mut modules {
        others.retain(|other| other != name && names.contains(other));
    }
    modules
}

/// A circle of modules, if there is one.
fn circle(modules: &Modules) -> Option<BTreeSet<String>> {
    let mut left = modules.clone();
    // A module that names none of those that are left is in no circle.
    while let Some(done) = left.iter().find(|(_, others)| others.is_empty()).map(|(name, _)| name.clone()) {
        left.remove(&done);
        for others in left.values_mut() {
            others.remove(&done);
        }
    }
    (!left.is_empty()).then(|| left.into_keys().collect())
}

/// The specification and its families imported each other.
#[test]
fn the_modules_of_a_crate_are_no_circle() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for name in ["schemas", "crates/tracegen", "crates/replayer", "crates/analyzer", "crates/coord"] {
        let modules = modules(&root.join(name).join("src"));
        assert!(modules.values().any(|others| others.len() > 1), "{name}: {modules:?}");
        assert_eq!(circle(&modules), None, "{name}: these modules, or some of them, import each other: {modules:?}");
    }
}

#[test]
fn a_circle_is_noticed() {
    let text =
        "use crate::{a::X, b};\n// crate::c\nfn f() { crate::d::g() }\n#[cfg(test)]\nmod tests { use crate::e; }";
    assert_eq!(named(text), BTreeSet::from(["a", "b", "d"].map(String::from)));
    let modules = |all: &[(&str, &[&str])]| -> Modules {
        let named = |others: &[&str]| others.iter().map(|other| other.to_string()).collect();
        all.iter().map(|(name, others)| (name.to_string(), named(others))).collect()
    };
    assert_eq!(circle(&modules(&[("a", &["b", "c"]), ("b", &["c"]), ("c", &[])])), None);
    let found = circle(&modules(&[("a", &["b"]), ("b", &["c"]), ("c", &["b"])]));
    assert_eq!(found, Some(BTreeSet::from(["a", "b", "c"].map(String::from))));
}
