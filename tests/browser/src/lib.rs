//! A headless Chromium for tests. It opens a page, uses it with mouse and keyboard, and tells what
//! the page requested, what it wrote to its console, and what axe-core finds in it.
//!
//! Chromium speaks its DevTools protocol over two pipes, so that there is no port and no further
//! library. Functions panic with what is wrong: their callers are tests.
//!
//! ```no_run
//! let Some(browser) = browser::Browser::start() else { return };
//! let page = browser.open("file:///tmp/report.html");
//! page.click("th button");
//! page.wait_for("document.querySelector('th[aria-sort]') !== null");
//! page.is_quiet("file://");
//! ```

mod axe;
mod page;
mod wire;

use std::path::PathBuf;
use std::process::{Command, Stdio};

pub use page::{Colours, Page};
use serde_json::json;
use wire::Wire;

/// The names of the browser on Debian and elsewhere.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Whether a test that lacks something has failed. `tests/run` sets this where it installs everything.
fn is_required() -> bool {
    std::env::var("ENCORE_TEST_SERVERS").is_ok_and(|value| value == "required")
}

/// The folder in which `tests/run` and `./encore` keep what they have downloaded.
fn cache() -> PathBuf {
    let of = |name: &str| std::env::var_os(name).map(PathBuf::from);
    of("ENCORE_CACHE")
        .or_else(|| of("XDG_CACHE_HOME").map(|cache| cache.join("encore")))
        .or_else(|| of("HOME").map(|home| home.join(".cache/encore")))
        .unwrap_or_default()
}

/// A running browser. It ends with this value.
pub struct Browser {
    wire: Wire,
    // Removed after the browser has ended.
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Starts the browser. None if there is none here, unless ENCORE_TEST_SERVERS=required.
    pub fn start() -> Option<Browser> {
        let is_there = |name: &&str| {
            let mut command = Command::new(name);
            command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        };
        let Some(name) = NAMES.into_iter().find(is_there) else {
            assert!(!is_required(), "no browser is here: install chromium");
            println!("left out: no browser is here");
            return None;
        };
        let profile = tempfile::tempdir().expect("a temporary folder");
        let wire = Wire::start(name, profile.path());
        Some(Browser { wire, _profile: profile })
    }

    /// Opens an address in a new page, 1280 pixels wide, and waits until it is loaded.
    pub fn open(&self, url: &str) -> Page<'_> {
        let context = self.wire.call(None, "Target.createBrowserContext", json!({}))["browserContextId"].clone();
        let about = json!({ "url": "about:blank", "browserContextId": context });
        let target = self.wire.call(None, "Target.createTarget", about)["targetId"].clone();
        let attached = self.wire.call(None, "Target.attachToTarget", json!({ "targetId": target, "flatten": true }));
        let session = attached["sessionId"].as_str().expect("a session").to_string();
        let page = Page::new(&self.wire, session);
        page.go(url);
        page
    }
}
