//! A browser without a screen, driven by its own protocol over a WebSocket.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tungstenite::{Message, WebSocket};

/// A tab of a browser.
pub(crate) struct Tab {
    child: Child,
    socket: WebSocket<TcpStream>,
    next: u64,
    /// What the page said: console messages, exceptions, and what its policy forbade.
    pub(crate) said: Vec<String>,
    _profile: TempDir,
}

impl Tab {
    pub(crate) fn open() -> Self {
        let profile = tempfile::tempdir().expect("a folder");
        let mut child = Command::new("chromium-headless-shell")
            .args(["--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-port=0"])
            .args(["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--force-prefers-reduced-motion"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stderr(Stdio::piped())
            .spawn()
            .expect("the browser starts");
        let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        let line = lines.find_map(|line| line.ok().filter(|line| line.contains("ws://"))).expect("it says its address");
        // Whoever no longer reads would stop the browser at its next word.
        std::thread::spawn(move || lines.for_each(drop));
        let address =
            line.split("ws://").nth(1).and_then(|rest| rest.split('/').next()).expect("an address").to_owned();
        let tabs = tabs(&address);
        let page = tabs[0]["webSocketDebuggerUrl"].as_str().expect("a tab").to_owned();
        let stream = TcpStream::connect(&address).expect("the browser listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket has a timeout");
        let (socket, _) = tungstenite::client(page.as_str(), stream).expect("a WebSocket");
        let mut tab = Self { child, socket, next: 0, said: Vec::new(), _profile: profile };
        for domain in ["Page", "Runtime", "Log"] {
            tab.call(&format!("{domain}.enable"), &json!({}));
        }
        tab
    }

    /// Sends a command and returns its result; what the page says meanwhile is kept.
    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Value {
        self.next += 1;
        let text = json!({ "id": self.next, "method": method, "params": params }).to_string();
        self.socket.send(Message::text(text)).expect("the browser reads");
        let answer = self.answer(method);
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// The same for an expression whose page may go away meanwhile.
    pub(crate) fn try_evaluate(&mut self, expression: &str) -> Option<Value> {
        self.next += 1;
        let params = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let text = json!({ "id": self.next, "method": "Runtime.evaluate", "params": params }).to_string();
        self.socket.send(Message::text(text)).expect("the browser reads");
        let answer = self.answer(expression);
        answer["error"].is_null().then(|| answer["result"]["result"]["value"].clone())
    }

    fn answer(&mut self, method: &str) -> Value {
        loop {
            let message = self.socket.read().unwrap_or_else(|error| panic!("{method}: {error}"));
            let Ok(text) = message.to_text() else { continue };
            let answer: Value = serde_json::from_str(text).unwrap_or_default();
            self.note(&answer);
            if answer["id"] == self.next {
                return answer;
            }
        }
    }

    /// What an expression is worth; promises are waited for.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let result = self.call("Runtime.evaluate", &params);
        assert!(result["exceptionDetails"].is_null(), "{}", result["exceptionDetails"]);
        result["result"]["value"].clone()
    }

    /// Shows a page at a width, light or dark, and waits until it is drawn.
    pub(crate) fn show(&mut self, url: &str, width: u32, dark: bool) {
        let scheme = if dark { "dark" } else { "light" };
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.call("Emulation.setEmulatedMedia", &media);
        let size = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", &size);
        let gone = self.call("Page.navigate", &json!({ "url": url }));
        assert!(gone["errorText"].is_null(), "{url}: {gone}");
        let path = url.splitn(4, '/').nth(3).and_then(|rest| rest.split('?').next()).unwrap_or_default();
        let ready =
            format!("location.pathname === '/{path}' && document.querySelector('main')?.dataset.ready === 'yes'");
        while self.try_evaluate(&ready) != Some(Value::Bool(true)) {}
        // What is drawn by frames is drawn by then.
        self.picture();
    }

    /// All of the page as PNG, base64.
    pub(crate) fn picture(&mut self) -> String {
        let params = json!({ "format": "png", "captureBeyondViewport": true });
        self.call("Page.captureScreenshot", &params)["data"].as_str().expect("a picture").to_owned()
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
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The tabs that are open; its length says where the list ends, as the connection stays.
fn tabs(address: &str) -> Value {
    let mut stream = TcpStream::connect(address).expect("the browser listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket has a timeout");
    let request = format!("GET /json/list HTTP/1.1\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("it answers");
        if line.trim().is_empty() {
            break;
        }
        if let Some((_, value)) = line.to_lowercase().split_once("content-length:") {
            length = value.trim().parse().expect("a number");
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("all of it");
    serde_json::from_slice(&body).expect("JSON")
}
