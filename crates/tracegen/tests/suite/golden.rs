//! The stored trace sets: the bytes of a format version never change.

use std::path::Path;

use schemas::spec::Spec;

use crate::{content, generate_into};

/// What to do if the files of a golden trace set differ.
fn advice(name: &str) -> String {
    format!(
        "the generator's output differs from traces/{name}.trace.
Existing trace sets would no longer match their specification, so a change of bytes needs a new
schemas::TRACE_FORMAT_VERSION. If the change is intended: raise the version, then store the new set with
  rm -r traces/{name}.trace
  cargo run --release -p tracegen -- gen traces/{name}.toml -o traces/{name}.trace
Otherwise find what changed: "
    )
}

/// The files of a trace set. The manifest's line with the generator's version is left out: it is
/// for information and not part of the format.
fn comparable(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = content(folder);
    for (name, bytes) in &mut files {
        if name == "manifest.json" {
            let text = String::from_utf8(std::mem::take(bytes)).unwrap();
            let lines: Vec<&str> = text.lines().filter(|l| !l.contains("\"generator_version\"")).collect();
            assert_eq!(lines.len() + 1, text.lines().count());
            *bytes = lines.join("\n").into_bytes();
        }
    }
    files
}

/// A set of each family, and one with due times.
#[test]
fn the_golden_sets_are_generated_byte_for_byte() {
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces");
    for name in ["golden", "golden-kv", "golden-economy", "golden-consbench", "golden-arrivals"] {
        let advice = advice(name);
        let spec = Spec::read(&traces.join(format!("{name}.toml"))).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("golden.trace");
        generate_into(&spec, &folder, 2);
        let (stored, made) = (comparable(&traces.join(format!("{name}.trace"))), comparable(&folder));
        let names = |files: &[(String, Vec<u8>)]| files.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&stored), names(&made), "{advice}other files");
        for ((name, stored), (_, made)) in stored.iter().zip(&made) {
            assert!(stored == made, "{advice}{name}");
        }
        assert!(stored.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() <= 60_000);
    }
}
