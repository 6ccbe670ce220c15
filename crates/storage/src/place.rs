//! Where a folder lies: on this machine, or below a prefix of a bucket.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::error::StorageError;

/// Where a trace set or a run lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A folder of this machine.
    Local(PathBuf),
    /// Objects below a prefix.
    Remote(Url),
}

/// The kind of a store, by the scheme of its URLs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// An S3-compatible store.
    S3,
    /// Google Cloud Storage.
    Gs,
}

impl Scheme {
    /// The scheme as it is written.
    pub fn name(self) -> &'static str {
        match self {
            Scheme::S3 => "s3",
            Scheme::Gs => "gs",
        }
    }
}

/// A prefix in a bucket: `s3://BUCKET/PREFIX`. It contains no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// The kind of the store.
    pub scheme: Scheme,
    /// The bucket.
    pub bucket: String,
    /// The prefix, without '/' at its ends; empty for the whole bucket.
    pub prefix: String,
}

impl Place {
    /// Where a text of the user points to. Anything without a scheme is a path.
    pub fn parse(text: &str) -> Result<Place, StorageError> {
        let Some((scheme, rest)) = split_scheme(text) else { return Ok(Place::Local(PathBuf::from(text))) };
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "s3" => Scheme::S3,
            "gs" => Scheme::Gs,
            "file" => return local(text, rest),
            other => return Err(StorageError::Scheme { scheme: other.to_string() }),
        };
        Url::parse(scheme, rest).map(Place::Remote)
    }

    /// Where a path argument of the user points to. A path that is not Unicode is a local one.
    pub fn of(path: &Path) -> Result<Place, StorageError> {
        path.to_str().map_or_else(|| Ok(Place::Local(path.to_path_buf())), Place::parse)
    }
}

/// The scheme of a URL, and what follows its `//`. A scheme of object storage is recognized without them too, so that
/// a typing error creates no folder of this name.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    let is_ours = ["s3", "gs"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    (is_scheme && (rest.starts_with("//") || is_ours)).then_some((scheme, rest))
}

/// The path of a `file:` URL.
fn local(text: &str, rest: &str) -> Result<Place, StorageError> {
    match rest.strip_prefix("//") {
        Some(path) if path.starts_with('/') => Ok(Place::Local(PathBuf::from(path))),
        _ => Err(StorageError::Url {
            url: text.to_string(),
            message: "names no absolute path; write file:///PATH, or the path alone".to_string(),
        }),
    }
}

impl Url {
    fn parse(scheme: Scheme, rest: &str) -> Result<Url, StorageError> {
        let usage = || format!("write {0}://BUCKET or {0}://BUCKET/PREFIX", scheme.name());
        let wrong = |shown: &str, message: String| {
            Err(StorageError::Url { url: format!("{}:{shown}", scheme.name()), message })
        };
        let Some(rest) = rest.strip_prefix("//") else {
            return wrong(rest, format!("is not a URL of a bucket; {}", usage()));
        };
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.contains(['@', ':']) {
            // What stands there may be a secret, so the message shows none of it.
            let (what, instead) = match scheme {
                Scheme::S3 => {
                    ("credentials or a port", "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_ENDPOINT_URL")
                }
                Scheme::Gs => ("credentials or a port", "GOOGLE_APPLICATION_CREDENTIALS"),
            };
            return wrong("//...", format!("has {what} before its first '/'; set them in {instead}, and {}", usage()));
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        if bucket.is_empty() || !bucket.chars().all(is_plain) {
            return wrong(&format!("//{rest}"), format!("names no bucket; {}", usage()));
        }
        if prefix.contains(['?', '#']) {
            return wrong(
                &format!("//{bucket}/..."),
                "has a '?' or '#'; settings come from the environment, not from the URL".to_string(),
            );
        }
        let prefix = prefix.trim_matches('/').to_string();
        match object_store::path::Path::parse(&prefix) {
            Ok(_) => Ok(Url { scheme, bucket: bucket.to_string(), prefix }),
            Err(_) => wrong(
                &format!("//{rest}"),
                "has an empty part, `.` or `..`, or a control character in its prefix; remove it".to_string(),
            ),
        }
    }

    /// The URL of something below this prefix.
    pub fn join(&self, name: &str) -> Url {
        let prefix = match (self.prefix.as_str(), name) {
            ("", name) => name.to_string(),
            (prefix, "") => prefix.to_string(),
            (prefix, name) => format!("{prefix}/{name}"),
        };
        Url { prefix, ..self.clone() }
    }

    /// Whether a place is this prefix, or below it.
    pub fn contains(&self, place: &Url) -> bool {
        let rest = place.prefix.strip_prefix(&self.prefix);
        let is_below = self.prefix.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        (self.scheme, &self.bucket) == (place.scheme, &place.bucket) && is_below
    }

    /// The last part of the prefix, else the bucket.
    pub fn name(&self) -> &str {
        self.prefix.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(&self.bucket)
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.name(), self.bucket)?;
        if self.prefix.is_empty() { Ok(()) } else { write!(f, "/{}", self.prefix) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_a_path_or_a_prefix_of_a_bucket() {
        let remote = |text: &str, expect: &str| match Place::parse(text).expect(text) {
            Place::Remote(url) => assert_eq!(url.to_string(), expect),
            Place::Local(path) => panic!("{text} is {path:?}"),
        };
        remote("s3://b", "s3://b");
        remote("s3://b/", "s3://b");
        remote("S3://b/runs/x y/fragment=3/", "s3://b/runs/x y/fragment=3");
        remote("gs://my.bucket_1/x", "gs://my.bucket_1/x");
        for (text, path) in
            [("runs/s3", "runs/s3"), ("a:b", "a:b"), ("./s3://b", "./s3://b"), ("file:///tmp/x", "/tmp/x")]
        {
            assert_eq!(Place::parse(text).expect(text), Place::Local(PathBuf::from(path)));
        }
    }

    #[test]
    fn a_wrong_url_is_refused_in_words() {
        let check = |text: &str, words: &[&str]| {
            let error = Place::parse(text).expect_err(text).to_string();
            for word in words {
                assert!(error.contains(word), "{text}: {error}");
            }
            error
        };
        check("ftp://host/x", &["ftp://", "s3://", "gs://", "local folder"]);
        check("s3:/b/x", &["s3:/b/x", "s3://BUCKET"]);
        check("s3://", &["names no bucket"]);
        check("s3:///x", &["names no bucket"]);
        check("s3://b/x?region=eu", &["environment"]);
        check("s3://b/a/../c", &["`..`"]);
        check("s3://b/a//c", &["empty part"]);
        check("file://host/x", &["file:///PATH"]);
        let error = check("s3://key:hush@b/x", &["AWS_SECRET_ACCESS_KEY"]);
        assert!(!error.contains("hush") && !error.contains("key:"), "{error}");
    }

    #[test]
    fn names_are_below_the_prefix() {
        let url = |text: &str| match Place::parse(text) {
            Ok(Place::Remote(url)) => url,
            other => panic!("{other:?}"),
        };
        assert_eq!(url("s3://b").join("a/b").to_string(), "s3://b/a/b");
        assert_eq!(url("s3://b/p").join("a").to_string(), "s3://b/p/a");
        assert_eq!((url("s3://b/p/x.trace").name(), url("gs://b").name()), ("x.trace", "b"));
    }
}
