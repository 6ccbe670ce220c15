//! A plan of a comparison that is stored in another folder than its own.

use std::path::{Component, Path, PathBuf};

use serde::Deserialize;
use toml::Spanned;

/// Where a plan names specifications.
#[derive(Deserialize)]
struct Specs {
    spec: Option<Spanned<String>>,
    #[serde(default)]
    axis: Axis,
}

#[derive(Default, Deserialize)]
struct Axis {
    #[serde(default)]
    points: Vec<Point>,
}

#[derive(Deserialize)]
struct Point {
    spec: Option<Spanned<String>>,
}

/// Rewrites the text of a plan for another folder: it still names the same specifications, whose paths are relative to the
/// plan. Both folders exist. A text that is no plan stays unchanged; the check of the plan refuses it.
pub(super) fn moved(text: &str, from: &Path, to: &Path) -> String {
    let (Ok(specs), Ok(from), Ok(to)) = (toml::from_str::<Specs>(text), absolute(from), absolute(to)) else {
        return text.to_string();
    };
    let points = specs.axis.points.into_iter().filter_map(|point| point.spec);
    let mut all: Vec<Spanned<String>> = specs.spec.into_iter().chain(points).collect();
    // From the last one on, so that the places of the others stay.
    all.sort_by_key(|spec| std::cmp::Reverse(spec.span().start));
    let mut out = text.to_string();
    for spec in all.iter().filter(|spec| Path::new(spec.get_ref()).is_relative()) {
        let path = relative(&from.join(spec.get_ref()), &to).display().to_string();
        out.replace_range(spec.span(), &toml::Value::from(path).to_string());
    }
    out
}

fn absolute(folder: &Path) -> std::io::Result<PathBuf> {
    let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    here.canonicalize()
}

/// An absolute path, relative to an absolute folder.
fn relative(path: &Path, folder: &Path) -> PathBuf {
    let same = path.components().zip(folder.components()).take_while(|(a, b)| a == b).count();
    let up = folder.components().skip(same).map(|_| Component::ParentDir);
    up.chain(path.components().skip(same)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moved_plan_names_the_same_specifications() {
        let place = tempfile::tempdir().unwrap();
        let (from, to) = (place.path().join("traces"), place.path().join("runs/.deck"));
        std::fs::create_dir_all(&from).unwrap();
        std::fs::create_dir_all(&to).unwrap();
        let check = |text: &str, expect: &str| assert_eq!(moved(text, &from, &to), expect);
        check(
            "# A plan.\nspec = 'kv/a.toml'   # the workload\n[axis]\npoints = [{ label = \"spec\", spec = \"../b.toml\" }, { label = \"c\" }]\n",
            "# A plan.\nspec = \"../../traces/kv/a.toml\"   # the workload\n[axis]\npoints = [{ label = \"spec\", spec = \
             \"../../traces/../b.toml\" }, { label = \"c\" }]\n",
        );
        check("spec = \"/a.toml\"\n", "spec = \"/a.toml\"\n");
        check("spec = \n", "spec = \n");
        assert_eq!(moved("spec = 'a.toml'", &from, &from), "spec = \"a.toml\"");
    }
}
