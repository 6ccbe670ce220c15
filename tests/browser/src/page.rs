//! A page in the browser: what a user does with it, and what it has done.

use std::path::Path;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::wire::Wire;

/// How long a page may take until a condition holds.
const PATIENCE_MS: u32 = 30_000;

/// The same for what waits for an experiment.
const LONG_PATIENCE: Duration = Duration::from_secs(300);

/// The quality of pictures in WebP, of 100: text is crisp, and a page takes some 40 kB.
const WEBP_QUALITY: u32 = 60;

/// The colours that the reader's system asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colours {
    /// Dark text on light paper.
    Light,
    /// Light text on dark paper.
    Dark,
}

/// A page.
pub struct Page<'a> {
    wire: &'a Wire,
    session: String,
}

impl<'a> Page<'a> {
    pub(crate) fn new(wire: &'a Wire, session: String) -> Page<'a> {
        let page = Page { wire, session };
        for domain in ["Page", "Runtime", "Log", "Network"] {
            page.call(&format!("{domain}.enable"), json!({}));
        }
        page.resize(1280, 900);
        page
    }

    fn call(&self, method: &str, parameters: Value) -> Value {
        self.wire.call(Some(&self.session), method, parameters)
    }

    /// Opens an address and waits until it is loaded.
    pub fn go(&self, url: &str) {
        self.wire.forget(&self.session, "Page.loadEventFired");
        let went = self.call("Page.navigate", json!({ "url": url }));
        assert!(went["errorText"].is_null(), "{url}: {}", went["errorText"]);
        self.wire.await_event(&self.session, "Page.loadEventFired");
    }

    /// Gives the window this size, in pixels.
    pub fn resize(&self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", size);
    }

    /// Asks for light or dark colours.
    pub fn colours(&self, colours: Colours) {
        let value = if colours == Colours::Dark { "dark" } else { "light" };
        let features = json!([{ "name": "prefers-color-scheme", "value": value }]);
        self.call("Emulation.setEmulatedMedia", json!({ "media": "", "features": features }));
    }

    /// Shows the page as it would be printed, or on a screen again.
    pub fn as_printed(&self, is_printed: bool) {
        self.call("Emulation.setEmulatedMedia", json!({ "media": if is_printed { "print" } else { "" } }));
    }

    /// Whether scripts of the page run, from the next address on.
    pub fn scripts(&self, do_run: bool) {
        self.call("Emulation.setScriptExecutionDisabled", json!({ "value": !do_run }));
    }

    /// The value of an expression; of a promise its result.
    pub fn evaluate<T: DeserializeOwned>(&self, expression: &str) -> T {
        let asked = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let mut answer = self.call("Runtime.evaluate", asked);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {}", answer["exceptionDetails"]);
        let value = answer["result"]["value"].take();
        serde_json::from_value(value).unwrap_or_else(|error| panic!("{expression}: {error}"))
    }

    /// Waits until a condition, an expression of JavaScript, holds.
    pub fn wait_for(&self, condition: &str) {
        let looks = format!(
            "new Promise(done => {{ const until = performance.now() + {PATIENCE_MS};\n\
             const look = () => {{ let holds = false; try {{ holds = !!({condition}); }} catch {{}}\n\
             if (holds || performance.now() > until) done(holds); else setTimeout(look, 20); }}; look(); }})"
        );
        assert!(self.evaluate::<bool>(&looks), "this never held: {condition}");
    }

    /// Waits until a condition holds on the page, or on one to which it leads. While one page changes to another, it does
    /// not. For what takes as long as an experiment.
    pub fn until(&self, condition: &str) {
        let patience = Instant::now() + LONG_PATIENCE;
        let guarded = json!({
            "expression": format!("document.readyState === 'complete' && !!({condition})"), "returnByValue": true,
        });
        loop {
            let holds = self.wire.try_call(Some(&self.session), "Runtime.evaluate", guarded.clone());
            if holds.is_ok_and(|answer| answer["result"]["value"] == true) {
                return;
            }
            if Instant::now() > patience {
                let text: String = self.evaluate("location.href + ' ' + document.body.innerText");
                panic!("waited in vain for {condition}: {text}");
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Loads the page again, as F5 does.
    pub fn reload(&self) {
        self.call("Page.reload", json!({}));
    }

    /// The text that a user reads in the first element that a selector finds.
    pub fn text(&self, selector: &str) -> String {
        let script = format!(
            "(e => e?.getClientRects().length ? e.innerText : '')(document.querySelector({}))",
            json!(selector)
        );
        self.evaluate(&script)
    }

    /// How many elements a selector finds.
    pub fn count(&self, selector: &str) -> usize {
        self.evaluate(&format!("document.querySelectorAll({}).length", json!(selector)))
    }

    /// The left and upper edge, width and height of an element in the window, scrolled into view.
    pub fn place_of(&self, selector: &str) -> [f64; 4] {
        let script = format!(
            "(() => {{ const e = document.querySelector({}); if (!e) return null;\n\
             e.scrollIntoView({{ block: 'center', behavior: 'instant' }}); const b = e.getBoundingClientRect();\n\
             return [b.left, b.top, b.width, b.height]; }})()",
            json!(selector)
        );
        self.evaluate::<Option<[f64; 4]>>(&script).unwrap_or_else(|| panic!("the page has no {selector}"))
    }

    fn mouse(&self, kind: &str, (x, y): (f64, f64), is_down: bool) {
        let button = if kind == "mouseMoved" && !is_down { "none" } else { "left" };
        let event = json!({
            "type": kind, "x": x, "y": y, "button": button, "buttons": u8::from(is_down), "clickCount": 1,
        });
        self.call("Input.dispatchMouseEvent", event);
    }

    /// Moves the mouse to a place of the window.
    pub fn point_at(&self, at: (f64, f64)) {
        self.mouse("mouseMoved", at, false);
    }

    /// Clicks the middle of the first element that a selector finds.
    pub fn click(&self, selector: &str) {
        let [left, top, width, height] = self.place_of(selector);
        self.click_at((left + width / 2.0, top + height / 2.0));
    }

    /// Clicks a place of the window.
    pub fn click_at(&self, at: (f64, f64)) {
        self.point_at(at);
        self.mouse("mousePressed", at, true);
        self.mouse("mouseReleased", at, false);
    }

    /// Drags the mouse between two places of the window.
    pub fn drag(&self, from: (f64, f64), to: (f64, f64)) {
        self.point_at(from);
        self.mouse("mousePressed", from, true);
        for step in 1..=8 {
            let along = |from: f64, to: f64| from + (to - from) * f64::from(step) / 8.0;
            self.mouse("mouseMoved", (along(from.0, to.0), along(from.1, to.1)), true);
        }
        self.mouse("mouseReleased", to, false);
    }

    /// Moves a finger over the window from one place to another.
    pub fn swipe(&self, from: (f64, f64), to: (f64, f64)) {
        let touch = |kind: &str, points: &[(f64, f64)]| {
            let points: Vec<_> = points.iter().map(|(x, y)| json!({ "x": x, "y": y })).collect();
            self.call("Input.dispatchTouchEvent", json!({ "type": kind, "touchPoints": points }));
        };
        touch("touchStart", &[from]);
        for step in 1..=8 {
            let along = |from: f64, to: f64| from + (to - from) * f64::from(step) / 8.0;
            touch("touchMove", &[(along(from.0, to.0), along(from.1, to.1))]);
        }
        touch("touchEnd", &[]);
    }

    /// Gives an element the keyboard.
    pub fn focus(&self, selector: &str) {
        let found: bool = self.evaluate(&format!(
            "(() => {{ const e = document.querySelector({}); e?.focus(); return !!e && document.activeElement === e; }})()",
            json!(selector)
        ));
        assert!(found, "{selector} cannot have the keyboard");
    }

    /// Presses a key: `Enter`, `Tab`, `Escape`, `Space`, `Home`, `End`, `ArrowLeft` and so on.
    pub fn press(&self, key: &str) {
        let (key, code, number, text) = match key {
            "Enter" => ("Enter", "Enter", 13, "\r"),
            "Space" => (" ", "Space", 32, " "),
            "Tab" => ("Tab", "Tab", 9, ""),
            "Escape" => ("Escape", "Escape", 27, ""),
            "End" => ("End", "End", 35, ""),
            "Home" => ("Home", "Home", 36, ""),
            "ArrowLeft" => ("ArrowLeft", "ArrowLeft", 37, ""),
            "ArrowUp" => ("ArrowUp", "ArrowUp", 38, ""),
            "ArrowRight" => ("ArrowRight", "ArrowRight", 39, ""),
            "ArrowDown" => ("ArrowDown", "ArrowDown", 40, ""),
            other => panic!("this driver does not know the key {other}"),
        };
        let event = |kind: &str, text: &str| json!({ "type": kind, "key": key, "code": code, "windowsVirtualKeyCode": number, "text": text });
        self.call("Input.dispatchKeyEvent", event(if text.is_empty() { "rawKeyDown" } else { "keyDown" }, text));
        self.call("Input.dispatchKeyEvent", event("keyUp", ""));
    }

    /// Types a text where the keyboard is.
    pub fn write(&self, text: &str) {
        self.call("Input.insertText", json!({ "text": text }));
    }

    /// Replaces the text of a field, as a user does who selects it and types.
    pub fn fill(&self, selector: &str, text: &str) {
        self.focus(selector);
        self.evaluate::<Option<bool>>("document.activeElement.select?.() ?? null");
        self.write(text);
    }

    /// Every address that the page has requested, except `data:`.
    pub fn requests(&self) -> Vec<String> {
        let sent = self.wire.events(&self.session, "Network.requestWillBeSent");
        let urls = sent.iter().filter_map(|event| event["request"]["url"].as_str());
        urls.filter(|url| !url.starts_with("data:")).map(String::from).collect()
    }

    /// What the page or the browser has complained about: the console, exceptions, the policy of the page.
    pub fn complaints(&self) -> Vec<String> {
        // An answer to a call comes after all events before it.
        self.evaluate::<u8>("1");
        let of = |method: &str| self.wire.events(&self.session, method);
        let console = of("Runtime.consoleAPICalled").into_iter().map(|event| event["args"].to_string());
        let thrown = of("Runtime.exceptionThrown").into_iter().map(|event| event["exceptionDetails"].to_string());
        let logged = of("Log.entryAdded").into_iter().map(|event| event["entry"].to_string());
        console.chain(thrown).chain(logged).collect()
    }

    /// Requires that the page has complained about nothing, and has requested nothing but addresses that begin
    /// with this.
    pub fn is_quiet(&self, own: &str) {
        assert_eq!(self.complaints(), Vec::<String>::new());
        let requests = self.requests();
        let elsewhere: Vec<&String> = requests.iter().filter(|url| !url.starts_with(own)).collect();
        assert!(elsewhere.is_empty() && !requests.is_empty(), "requests: {elsewhere:?}");
    }

    /// Saves what the window shows, or the whole page, as a small WebP if the file's name ends in `.webp`, otherwise as a PNG.
    pub fn screenshot(&self, path: &Path, is_whole: bool) {
        let format = if path.extension().is_some_and(|name| name == "webp") { "webp" } else { "png" };
        let wanted = json!({ "format": format, "quality": WEBP_QUALITY, "captureBeyondViewport": is_whole });
        let picture = self.call("Page.captureScreenshot", wanted);
        let bytes = BASE64_STANDARD.decode(picture["data"].as_str().expect("a picture")).expect("base64");
        std::fs::write(path, bytes).expect("the picture is written");
    }
}
