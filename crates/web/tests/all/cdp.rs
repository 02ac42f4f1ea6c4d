//! A browser without a screen, driven by its own protocol over two pipes. It ends when they close,
//! so none is left however this program ends. Every wait has a bound, and says what did not come.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A tab of a browser.
pub(crate) struct Tab {
    child: Child,
    /// Closed to end the browser.
    orders: Option<ChildStdin>,
    answers: Receiver<Value>,
    session: Value,
    next: u64,
    /// What the page said: console messages, exceptions, and what its policy forbade.
    pub(crate) said: Vec<String>,
    pub(crate) profile: TempDir,
}

impl Tab {
    pub(crate) fn open() -> Self {
        let profile = tempfile::tempdir().expect("a folder");
        let words = File::create(profile.path().join(WORDS)).expect("a file");
        // The protocol has the numbers 3 and 4. A group of its own, because Debian's program is a
        // script around the browser: who ends the script alone leaves the browser.
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 0</dev/null 1>/dev/null", "chromium-headless-shell"])
            .args(["--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"])
            .args(["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--force-prefers-reduced-motion"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(words)
            .spawn()
            .expect("the browser starts");
        let (orders, said) = (child.stdin.take(), child.stdout.take().expect("it is piped"));
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            let messages = BufReader::new(said).split(0).map_while(Result::ok);
            let mut messages = messages.filter_map(|message| serde_json::from_slice(&message).ok());
            messages.try_for_each(|message| sender.send(message))
        });
        let mut tab = Self { child, orders, answers, session: Value::Null, next: 0, said: Vec::new(), profile };
        let target = tab.call("Target.createTarget", &json!({ "url": "about:blank" }))["targetId"].clone();
        let attach = json!({ "targetId": target, "flatten": true });
        tab.session = tab.call("Target.attachToTarget", &attach)["sessionId"].clone();
        for domain in ["Page", "Runtime", "Log"] {
            tab.call(&format!("{domain}.enable"), &json!({}));
        }
        tab
    }

    /// Sends a command and returns its result; what the page says meanwhile is kept.
    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Value {
        let answer = self.ask(method, params);
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].clone()
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.next += 1;
        let mut order = json!({ "id": self.next, "method": method, "params": params });
        if self.session.is_string() {
            order["sessionId"] = self.session.clone();
        }
        let text = format!("{order}\0");
        let written = self.orders.as_mut().map(|orders| orders.write_all(text.as_bytes()));
        assert!(matches!(written, Some(Ok(()))), "{method}: the browser ended: {}", self.words());
        loop {
            match self.answers.recv_timeout(PATIENCE) {
                Ok(message) if message["id"] == self.next => return message,
                Ok(message) => self.note(&message),
                Err(RecvTimeoutError::Timeout) => panic!("{method}: no answer in {PATIENCE:?}: {}", self.words()),
                Err(RecvTimeoutError::Disconnected) => panic!("{method}: the browser ended: {}", self.words()),
            }
        }
    }

    /// What the browser said of itself.
    fn words(&self) -> String {
        std::fs::read_to_string(self.profile.path().join(WORDS)).unwrap_or_default()
    }

    /// What an expression is worth; promises are waited for.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let result = self.call("Runtime.evaluate", &params);
        assert!(result["exceptionDetails"].is_null(), "{}", result["exceptionDetails"]);
        result["result"]["value"].clone()
    }

    /// Looks until an expression is true, also while the page goes away; `what` is said if it does
    /// not become so.
    pub(crate) fn until(&mut self, what: &str, expression: &str) {
        let soon = format!("new Promise((done) => setTimeout(() => done({expression}), 20))");
        let params = json!({ "expression": soon, "awaitPromise": true, "returnByValue": true });
        for _ in 0..LOOKS {
            let answer = self.ask("Runtime.evaluate", &params);
            if answer["result"]["result"]["value"] == true {
                return;
            }
            if !answer["error"].is_null() {
                // The page goes away: the next message tells how far it is.
                let message = self.answers.recv_timeout(Duration::from_millis(20)).unwrap_or_default();
                self.note(&message);
            }
        }
        let page = self.evaluate("`${location.href}: ${document.body.innerText.slice(0, 400)}`");
        panic!("{what}: not so after {LOOKS} looks; the page is {page}; said: {:?}", self.said);
    }

    /// Shows a page at a width, light or dark, and waits until it is drawn.
    pub(crate) fn show(&mut self, url: &str, width: u32, dark: bool) {
        self.navigate(url, width, dark);
        let path = url.splitn(4, '/').nth(3).and_then(|rest| rest.split('?').next()).unwrap_or_default();
        let ready =
            format!("location.pathname === '/{path}' && document.querySelector('main')?.dataset.ready === 'yes'");
        self.until(url, &ready);
        // What is drawn by frames is drawn by then.
        self.picture();
    }

    /// Goes to a page, and waits for nothing but its first octets.
    pub(crate) fn navigate(&mut self, url: &str, width: u32, dark: bool) {
        let scheme = if dark { "dark" } else { "light" };
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.call("Emulation.setEmulatedMedia", &media);
        let size = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", &size);
        let gone = self.call("Page.navigate", &json!({ "url": url }));
        assert!(gone["errorText"].is_null(), "{url}: {gone}");
    }

    /// All of the page as PNG, base64.
    pub(crate) fn picture(&mut self) -> String {
        let params = json!({ "format": "png", "captureBeyondViewport": true });
        self.call("Page.captureScreenshot", &params)["data"].as_str().expect("a picture").to_owned()
    }

    /// Presses a key as a person would.
    pub(crate) fn press(&mut self, key: &str) {
        let code = match key {
            "Tab" => 9,
            "Enter" => 13,
            "ArrowLeft" => 37,
            _ => 0,
        };
        let text = if key == "Enter" { "\r" } else { "" };
        for kind in ["keyDown", "keyUp"] {
            let event = json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text });
            self.call("Input.dispatchKeyEvent", &event);
        }
    }

    fn note(&mut self, message: &Value) {
        let params = &message["params"];
        match message["method"].as_str() {
            Some("Runtime.consoleAPICalled") => self.said.push(params["args"].to_string()),
            Some("Runtime.exceptionThrown") => self.said.push(params["exceptionDetails"].to_string()),
            Some("Log.entryAdded") => self.said.push(params["entry"].to_string()),
            _ => {}
        }
    }
}

impl Drop for Tab {
    fn drop(&mut self) {
        drop(self.orders.take());
        // The browser ends by itself when its orders end, which closes its answers.
        while self.answers.recv_timeout(LEAVE).is_ok() {}
        // Whoever of its group is left does not: all of them are ours.
        if let Ok(group) = i32::try_from(self.child.id()) {
            let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
        }
        let _ = self.child.wait();
    }
}

/// Where the browser's own words are kept.
const WORDS: &str = "words";
/// How long one command may take on the busiest machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often a condition is looked at: each look waits 20 ms in the page.
const LOOKS: u32 = 1500;
/// How long the browser may take to end.
const LEAVE: Duration = Duration::from_secs(5);
