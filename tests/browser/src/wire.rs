//! The connection to the browser: calls with their answers, and events as they come.

use std::cell::{Cell, RefCell};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};

/// How long the browser may be silent before a test gives up.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// The browser's process and the pipes to it.
pub(crate) struct Wire {
    child: Child,
    to: RefCell<Option<ChildStdin>>,
    from: Receiver<Value>,
    calls: Cell<u64>,
    events: RefCell<Vec<Value>>,
    reader: Option<JoinHandle<()>>,
    errors: Option<JoinHandle<String>>,
}

impl Wire {
    pub(crate) fn start(browser: &str, profile: &Path) -> Wire {
        // The browser reads descriptor 3 and writes descriptor 4. The shell makes them of its own input and output.
        let script = r#"exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null"#;
        let mut child = Command::new("sh")
            .args(["-c", script, browser, "--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu"])
            .args(["--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-sync"])
            .args(["--disable-component-update", "--disable-extensions", "--disable-dev-shm-usage"])
            .args(["--hide-scrollbars", "--force-device-scale-factor=1"])
            .arg(format!("--user-data-dir={}", profile.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the browser starts");
        let (sender, from) = channel();
        let answers = BufReader::new(child.stdout.take().expect("its output is a pipe"));
        let reader = std::thread::spawn(move || {
            for message in answers.split(0) {
                let Ok(message) = message else { return };
                let message = serde_json::from_slice(&message).expect("the browser speaks JSON");
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let mut said = child.stderr.take().expect("its messages are a pipe");
        let errors = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = said.read_to_end(&mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        });
        let to = RefCell::new(child.stdin.take());
        let (calls, events) = (Cell::new(0), RefCell::default());
        Wire { child, to, from, calls, events, reader: Some(reader), errors: Some(errors) }
    }

    /// Calls a method of the browser, or of one of its pages, and returns what it answers.
    pub(crate) fn call(&self, session: Option<&str>, method: &str, parameters: Value) -> Value {
        self.try_call(session, method, parameters).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// The same; an error of the browser is the caller's.
    pub(crate) fn try_call(&self, session: Option<&str>, method: &str, parameters: Value) -> Result<Value, Value> {
        let id = self.calls.get() + 1;
        self.calls.set(id);
        let mut message = json!({ "id": id, "method": method, "params": parameters });
        if let Some(session) = session {
            message["sessionId"] = session.into();
        }
        let sent =
            self.to.borrow_mut().as_mut().is_some_and(|to| {
                to.write_all(message.to_string().as_bytes()).and_then(|()| to.write_all(&[0])).is_ok()
            });
        assert!(sent, "{method}: the browser has ended");
        loop {
            let mut answer = self.next(method);
            if answer["id"] == id {
                return if answer["error"].is_null() {
                    Ok(answer["result"].take())
                } else {
                    Err(answer["error"].take())
                };
            }
            self.events.borrow_mut().push(answer);
        }
    }

    fn next(&self, what: &str) -> Value {
        self.from.recv_timeout(SILENCE_MAX).unwrap_or_else(|error| panic!("waiting for {what}: {error}"))
    }

    /// Waits for an event of a page, of now or of before.
    pub(crate) fn await_event(&self, session: &str, method: &str) {
        let is_it = |event: &Value| event["sessionId"] == session && event["method"] == method;
        if self.events.borrow().iter().any(is_it) {
            return;
        }
        loop {
            let event = self.next(method);
            let found = is_it(&event);
            self.events.borrow_mut().push(event);
            if found {
                return;
            }
        }
    }

    /// The parameters of all events of a page with this name so far.
    pub(crate) fn events(&self, session: &str, method: &str) -> Vec<Value> {
        let events = self.events.borrow();
        let own = events.iter().filter(|event| event["sessionId"] == session && event["method"] == method);
        own.map(|event| event["params"].clone()).collect()
    }

    /// Forgets the events of a page with this name.
    pub(crate) fn forget(&self, session: &str, method: &str) {
        self.events.borrow_mut().retain(|event| event["sessionId"] != session || event["method"] != method);
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        // A browser whose pipe is closed ends; one that hangs is killed.
        drop(self.to.borrow_mut().take());
        while self.from.recv_timeout(Duration::from_secs(10)).is_ok() {}
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        let said = self.errors.take().and_then(|errors| errors.join().ok());
        if std::thread::panicking() {
            eprintln!("the browser said: {}", said.unwrap_or_default());
        }
    }
}
