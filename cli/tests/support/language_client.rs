//! An editor for tests: starts `opsmith lsp`, opens a copy of a spec, and speaks the protocol with it.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

/// A server with a folder of its own.
pub struct Editor {
    server: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    /// The messages that nothing has asked for yet.
    unread: Vec<Value>,
    pub folder: PathBuf,
    last_id: i64,
    last_version: i64,
}

/// A server that answers nothing for this long hangs.
const PATIENCE: Duration = Duration::from_secs(120);

impl Editor {
    /// Starts a server on a copy of `cli/tests/data/lsp`.
    pub fn start() -> Editor {
        Editor::start_with(&json!({}))
    }

    /// As [`Editor::start`], with capabilities of the editor.
    pub fn start_with(capabilities: &Value) -> Editor {
        let mut editor = Editor::spawn(folder(), &[]);
        let answer = editor.ask("initialize", json!({ "processId": null, "capabilities": capabilities }));
        assert_eq!(answer["serverInfo"]["name"], "opsmith");
        editor.tell("initialized", json!({}));
        editor
    }

    /// Starts a server that is not initialised.
    pub fn spawn(folder: PathBuf, arguments: &[&str]) -> Editor {
        let mut server = Command::new(env!("CARGO_BIN_EXE_opsmith"))
            .arg("lsp")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the command was just built");
        let input = server.stdin.take().expect("its input is a pipe");
        let output = server.stdout.take().expect("its output is a pipe");
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            while let Some(message) = read(&mut output) {
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        Editor { server, input, messages, unread: Vec::new(), folder, last_id: 0, last_version: 0 }
    }

    /// Writes bytes as they are.
    pub fn write(&mut self, bytes: &[u8]) {
        self.input.write_all(bytes).expect("the server reads");
        self.input.flush().expect("the server reads");
    }

    fn send(&mut self, message: &Value) {
        let text = message.to_string();
        self.write(format!("Content-Length: {}\r\n\r\n{text}", text.len()).as_bytes());
    }

    /// Sends a notification.
    pub fn tell(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Sends a request, whose answer is read later.
    pub fn request(&mut self, method: &str, params: Value) -> i64 {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// The answer to a request, whole.
    #[track_caller]
    pub fn answer(&mut self, id: i64) -> Value {
        self.next(|message| message["id"] == id && message.get("method").is_none())
    }

    /// Sends a request; its result.
    #[track_caller]
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        let answer = self.answer(id);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Sends a request that is refused; the error.
    #[track_caller]
    pub fn refused(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        let answer = self.answer(id);
        assert!(answer.get("error").is_some(), "{method}: {answer}");
        answer["error"].clone()
    }

    /// The first unread message that fits.
    #[track_caller]
    pub fn next(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            if let Some(index) = self.unread.iter().position(&fits) {
                return self.unread.remove(index);
            }
            let next = self.messages.recv_timeout(PATIENCE);
            self.unread
                .push(next.unwrap_or_else(|_| panic!("the server is silent; unread: {:#?}", self.unread)));
        }
    }

    /// The next diagnostics of a file.
    #[track_caller]
    pub fn diagnostics(&mut self, file: &str) -> Vec<Value> {
        let uri = self.uri(file);
        let message = self.next(|message| {
            message["method"] == "textDocument/publishDiagnostics" && message["params"]["uri"] == uri.as_str()
        });
        message["params"]["diagnostics"].as_array().expect("a list").clone()
    }

    pub fn path(&self, file: &str) -> PathBuf {
        self.folder.join(file)
    }

    pub fn uri(&self, file: &str) -> String {
        format!("file://{}", self.path(file).display())
    }

    pub fn text(&self, file: &str) -> String {
        std::fs::read_to_string(self.path(file)).expect("the file is there")
    }

    /// Opens a file as it is on the disk; its diagnostics.
    #[track_caller]
    pub fn open(&mut self, file: &str) -> Vec<Value> {
        let text = self.text(file);
        self.open_as(file, &text)
    }

    /// Opens a file with another text.
    #[track_caller]
    pub fn open_as(&mut self, file: &str, text: &str) -> Vec<Value> {
        let document = json!({ "uri": self.uri(file), "languageId": "yaml", "version": 0, "text": text });
        self.tell("textDocument/didOpen", json!({ "textDocument": document }));
        self.diagnostics(file)
    }

    /// Gives a file another text.
    pub fn change(&mut self, file: &str, text: &str) {
        self.change_parts(file, json!([{ "text": text }]));
    }

    /// Changes parts of a file.
    pub fn change_parts(&mut self, file: &str, changes: Value) {
        self.last_version += 1;
        let document = json!({ "uri": self.uri(file), "version": self.last_version });
        self.tell("textDocument/didChange", json!({ "textDocument": document, "contentChanges": changes }));
    }

    /// The parameters of a request at `^` in a text that the file has without the mark.
    #[track_caller]
    pub fn at(&self, file: &str, marked: &str) -> Value {
        let offset = marked.find('^').expect("the text has a mark");
        let before = &marked[..offset];
        let line = before.matches('\n').count();
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let character = before[start..].encode_utf16().count();
        json!({
            "textDocument": { "uri": self.uri(file) },
            "position": { "line": line, "character": character },
        })
    }

    /// The parameters of a request at `^` in some words of a file on the disk.
    #[track_caller]
    pub fn at_words(&self, file: &str, words: &str) -> Value {
        let plain = words.replace('^', "");
        let text = self.text(file);
        assert!(text.contains(&plain), "{file} has no `{plain}`");
        self.at(file, &text.replacen(&plain, words, 1))
    }

    /// Ends the server in order; its exit status.
    pub fn end(mut self) -> Option<i32> {
        self.ask("shutdown", Value::Null);
        self.tell("exit", Value::Null);
        self.server.wait().expect("the server ends").code()
    }

    /// Closes the server's input; its exit status.
    pub fn hang_up(self) -> Option<i32> {
        let Editor { mut server, input, .. } = self;
        drop(input);
        server.wait().expect("the server ends").code()
    }
}

fn read(output: &mut impl BufRead) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if output.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim() {
            "" => break,
            header => length = header.strip_prefix("Content-Length: ")?.parse().ok()?,
        }
    }
    let mut bytes = vec![0; length];
    output.read_exact(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// A new folder with a copy of the spec, outside of any crate.
pub fn folder() -> PathBuf {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("opsmith-lsp-{}-{number}", std::process::id()));
    // A folder of an earlier process with this number may be left.
    _ = std::fs::remove_dir_all(&folder);
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/lsp");
    copy(&data, &folder);
    std::fs::canonicalize(folder).expect("it was just made")
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("the folder can be made");
    for entry in std::fs::read_dir(from).expect("the data is there") {
        let entry = entry.expect("the data is there");
        // Rust code that belongs to no crate is kept as text.
        let name = entry.file_name().to_string_lossy().trim_end_matches(".txt").to_owned();
        match entry.path().is_dir() {
            true => copy(&entry.path(), &to.join(name)),
            false => _ = std::fs::copy(entry.path(), to.join(name)).expect("the file can be copied"),
        }
    }
}

/// The texts of a key in a list of objects.
pub fn all<'a>(list: &'a Value, key: &str) -> Vec<&'a str> {
    list.as_array()
        .map(|list| list.iter().filter_map(|item| item[key].as_str()).collect())
        .unwrap_or_default()
}

/// `file:line` of each place, both from the protocol.
pub fn places(list: &Value) -> Vec<String> {
    let place = |place: &Value| {
        let file = place["uri"].as_str().unwrap_or_default().rsplit('/').next().unwrap_or_default();
        format!("{file}:{}", place["range"]["start"]["line"])
    };
    list.as_array().map(|list| list.iter().map(place).collect()).unwrap_or_default()
}

/// The line of some words in a file, from 0.
pub fn line_of(editor: &Editor, file: &str, words: &str) -> usize {
    editor.text(file).lines().position(|line| line.contains(words)).expect("the words are there")
}

/// A text after the edits of a workspace edit for one file.
pub fn edited(editor: &Editor, edit: &Value, file: &str) -> String {
    let text = editor.text(file);
    let mut lines: Vec<Vec<u16>> = text.split('\n').map(|line| line.encode_utf16().collect()).collect();
    let mut edits = edit["changes"][editor.uri(file)].as_array().cloned().unwrap_or_default();
    edits.sort_by_key(|edit| {
        let start = &edit["range"]["start"];
        std::cmp::Reverse((start["line"].as_u64(), start["character"].as_u64()))
    });
    for edit in edits {
        let at = |end: &str, key: &str| edit["range"][end][key].as_u64().expect("a number") as usize;
        assert_eq!(at("start", "line"), at("end", "line"));
        let new: Vec<u16> = edit["newText"].as_str().expect("a text").encode_utf16().collect();
        lines[at("start", "line")].splice(at("start", "character")..at("end", "character"), new);
    }
    let lines: Vec<String> = lines.iter().map(|line| String::from_utf16_lossy(line)).collect();
    lines.join("\n")
}
