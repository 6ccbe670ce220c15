//! Which paths on this machine a coordinator may name.

use std::fmt::Display;
use std::path::{Component, Path, PathBuf};

use storage::{Place, Remote, StorageError, Url};

use super::access::Misuse;

/// Folders that coordinator and replayer share under the same paths, and prefixes of object storage.
#[derive(Debug, Clone, Default)]
pub struct Shares {
    folders: Vec<PathBuf>,
    urls: Vec<Url>,
}

impl Shares {
    /// These folders, which must exist, and URLs, which must be as [`Shares::check`] wants them.
    pub fn new(places: &[PathBuf]) -> Result<Shares, Misuse> {
        let mut shares = Shares::default();
        for place in places {
            let wrong = |e: &dyn Display| Misuse(format!("--share {}: {e}", place.display()));
            match Place::of(place).map_err(|e| Misuse(format!("--share {e}")))? {
                Place::Local(folder) => shares.folders.push(std::fs::canonicalize(folder).map_err(|e| wrong(&e))?),
                Place::Remote(url) => shares.urls.push(url),
            }
        }
        Ok(shares)
    }

    /// Checks that everything in object storage can be read and written.
    pub fn check(&self) -> Result<(), StorageError> {
        self.urls.iter().try_for_each(|url| Remote::open(url)?.check_writable())
    }

    /// Whether a place in object storage is in one of these.
    pub fn hold_url(&self, place: &Url) -> bool {
        self.urls.iter().any(|shared| shared.contains(place))
    }

    /// Whether a path is in one of these folders, after all links are followed. The path need not
    /// exist yet.
    pub fn hold(&self, place: &Path) -> bool {
        let is_plain = place.is_absolute() && place.components().all(|c| !matches!(c, Component::ParentDir));
        // The part that exists says where the path really is; the rest will be below that.
        let real = place.ancestors().find_map(|ancestor| std::fs::canonicalize(ancestor).ok());
        is_plain && real.is_some_and(|real| self.folders.iter().any(|shared| real.starts_with(shared)))
    }
}

/// Whether a text names a file below a folder with plain names only.
pub fn is_below(path: &str) -> bool {
    let is_plain = |part: &str| !part.is_empty() && !part.starts_with('.') && part.len() <= 200;
    let is_known = |c: char| c.is_ascii_alphanumeric() || "-_=./".contains(c);
    !path.is_empty() && path.len() <= 1000 && path.chars().all(is_known) && path.split('/').all(is_plain)
}

/// Whether a text may be the name of a run.
pub fn is_name(name: &str) -> bool {
    is_below(name) && !name.contains('/')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_share_holds_what_is_in_it_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let (inside, outside) = (folder.path().join("inside"), folder.path().join("outside"));
        for path in [&inside, &outside] {
            std::fs::create_dir(path).unwrap();
        }
        std::os::unix::fs::symlink(&outside, inside.join("way-out")).unwrap();
        let shares = Shares::new(std::slice::from_ref(&inside)).unwrap();
        assert!(shares.hold(&inside) && shares.hold(&inside.join("not/there/yet")));
        for place in [&outside, &inside.join("../outside"), &inside.join("way-out/x"), Path::new("inside")] {
            assert!(!shares.hold(place), "{}", place.display());
        }
        assert!(!Shares::default().hold(&inside));
        let error = Shares::new(&[folder.path().join("missing")]).unwrap_err().to_string();
        assert!(error.starts_with("--share ") && error.contains("missing: "), "{error}");
    }

    #[test]
    fn a_share_in_object_storage_holds_what_is_below_its_prefix() {
        let shares = Shares::new(&["s3://bucket/team/a".into(), "gs://bucket".into()]).unwrap();
        let holds = |text: &str| match Place::parse(text) {
            Ok(Place::Remote(url)) => shares.hold_url(&url),
            other => panic!("{other:?}"),
        };
        for text in ["s3://bucket/team/a", "s3://bucket/team/a/runs/x", "gs://bucket/anything"] {
            assert!(holds(text), "{text}");
        }
        for text in ["s3://bucket/team/ab", "s3://bucket/team", "s3://other/team/a", "gs://other/x"] {
            assert!(!holds(text), "{text}");
        }
        assert!(!shares.hold(Path::new("s3://bucket/team/a")));
        let error = Shares::new(&["ftp://x/y".into()]).unwrap_err().to_string();
        assert!(error.starts_with("--share ftp://"), "{error}");
    }

    #[test]
    fn paths_below_a_folder() {
        for path in ["a", "operations/fragment=0/part-0.parquet", "log/fragment-0.arrows"] {
            assert!(is_below(path), "{path}");
        }
        for path in ["", "/a", "a/", "a//b", "..", "a/../b", ".a", "a/.b", "a\\b", "a\0b", "ä"] {
            assert!(!is_below(path), "{path}");
        }
        assert!(is_name("figure-4.1") && !is_name("a/b") && !is_name(".."));
    }

    proptest! {
        /// Whatever the network sends: a path that is accepted stays below its folder.
        #[test]
        fn no_path_leaves_its_folder(path in ".{0,40}|[a./=-]{0,20}") {
            if is_below(&path) {
                let joined = Path::new("/work").join(&path);
                prop_assert!(joined.starts_with("/work") && joined.components().all(|c| !matches!(c, Component::ParentDir)));
            }
        }
    }
}
