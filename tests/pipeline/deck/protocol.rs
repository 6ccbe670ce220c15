//! A browser that a test drives: Chromium's DevTools protocol over two pipes, one JSON object after the other, each
//! with a zero byte at its end.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// A browser with one page.
pub struct Browser {
    child: Child,
    requests: File,
    answers: BufReader<File>,
    number: u64,
    session: String,
    /// Messages on the console, and errors of scripts.
    pub console: Vec<String>,
    /// Every URL that the page has requested.
    pub requested: Vec<String>,
}

/// Both ends of a pipe: reading, writing.
fn pipe() -> (OwnedFd, OwnedFd) {
    let mut ends = [0; 2];
    // SAFETY: the two descriptors are new, and belong to nobody else.
    unsafe {
        assert_eq!(libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC), 0);
        (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1]))
    }
}

impl Browser {
    /// Starts a browser with an own profile in this folder.
    pub fn start(program: &str, folder: &Path) -> Browser {
        let (read_requests, write_requests) = pipe();
        let (read_answers, write_answers) = pipe();
        let (requests, answers) = (read_requests.as_raw_fd(), write_answers.as_raw_fd());
        let mut command = Command::new(program);
        command
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic"])
            .args(["--no-first-run", "--disable-background-networking", "--disable-component-update"])
            .args(["--disable-sync", "--disable-extensions", "--remote-debugging-pipe", "--window-size=1280,900"])
            .arg(format!("--user-data-dir={}", folder.display()))
            .arg("about:blank")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // The browser reads from descriptor 3 and writes to 4. Both ends go far away first, so that neither is
        // overwritten by the other.
        // SAFETY: only calls that are allowed between fork and exec.
        unsafe {
            command.pre_exec(move || {
                let (from, to) = (libc::fcntl(requests, libc::F_DUPFD, 100), libc::fcntl(answers, libc::F_DUPFD, 100));
                if from < 0 || to < 0 || libc::dup2(from, 3) < 0 || libc::dup2(to, 4) < 0 {
                    return Err(std::io::Error::last_os_error());
                }
                libc::close(from);
                libc::close(to);
                Ok(())
            });
        }
        let child = command.spawn().expect("the browser starts");
        let mut browser = Browser {
            child,
            requests: File::from(write_requests),
            answers: BufReader::new(File::from(read_answers)),
            number: 0,
            session: String::new(),
            console: Vec::new(),
            requested: Vec::new(),
        };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attached =
            browser.call("Target.attachToTarget", json!({ "targetId": target["targetId"], "flatten": true }));
        browser.session = attached["sessionId"].as_str().expect("a session").to_string();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// Calls a method, and returns its result.
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.tried(method, parameters).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    fn tried(&mut self, method: &str, parameters: Value) -> Result<Value, Value> {
        self.number += 1;
        let mut call = json!({ "id": self.number, "method": method, "params": parameters });
        if !self.session.is_empty() {
            call["sessionId"] = self.session.as_str().into();
        }
        self.requests.write_all(format!("{call}\0").as_bytes()).expect("the browser listens");
        loop {
            let mut bytes = Vec::new();
            self.answers.read_until(0, &mut bytes).expect("an answer");
            bytes.pop();
            let answer: Value = serde_json::from_slice(&bytes).expect("the browser still runs");
            self.note(&answer);
            if answer["id"] == self.number {
                return if answer["error"].is_null() { Ok(answer["result"].clone()) } else { Err(answer) };
            }
        }
    }

    /// Keeps what an event says.
    fn note(&mut self, event: &Value) {
        let params = &event["params"];
        match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => self.console.push(params["exceptionDetails"].to_string()),
            Some("Runtime.consoleAPICalled") => self.console.push(params["args"].to_string()),
            Some("Log.entryAdded") => self.console.push(params["entry"].to_string()),
            Some("Network.requestWillBeSent") => {
                self.requested.extend(params["request"]["url"].as_str().map(String::from));
            }
            _ => {}
        }
    }

    /// The value of an expression on the page.
    pub fn value(&mut self, expression: &str) -> Value {
        let parameters = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let result = self.call("Runtime.evaluate", parameters);
        assert!(result["exceptionDetails"].is_null(), "{expression}: {result}");
        result["result"]["value"].clone()
    }

    pub fn open(&mut self, url: &str) {
        self.call("Page.navigate", json!({ "url": url }));
    }

    /// Waits until an expression is true. While a page changes to another, it is not.
    pub fn until(&mut self, expression: &str) {
        let patience = Instant::now() + Duration::from_secs(300);
        let guarded = format!("document.readyState === 'complete' && !!({expression})");
        loop {
            let parameters = json!({ "expression": guarded, "returnByValue": true });
            if self.tried("Runtime.evaluate", parameters).is_ok_and(|result| result["result"]["value"] == true) {
                return;
            }
            if Instant::now() > patience {
                let text = self.value("location.href + ' ' + document.body.innerText");
                panic!("waited in vain for {expression}: {text}");
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Types a text into a field, in place of what is there.
    pub fn fill(&mut self, field: &str, text: &str) {
        let field = json!(field);
        self.value(&format!("(() => {{ const f = document.querySelector({field}); f.focus(); f.select(); }})()"));
        self.call("Input.insertText", json!({ "text": text }));
    }

    /// Clicks on an element, where it is on the page.
    pub fn click(&mut self, element: &str) {
        let place = self.value(&format!(
            "(() => {{ const e = document.querySelector({}); e.scrollIntoView({{block: 'center'}}); \
             const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; }})()",
            json!(element)
        ));
        for kind in ["mousePressed", "mouseReleased"] {
            let at = json!({ "type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", at);
        }
    }

    /// A picture of the page, as bytes of a PNG in base64.
    pub fn picture(&mut self) -> String {
        let shot = self.call("Page.captureScreenshot", json!({ "format": "png", "captureBeyondViewport": true }));
        shot["data"].as_str().expect("a picture").to_string()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
