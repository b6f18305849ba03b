//! The loop of the server: messages in, checks, answers out.
//!
//! In: events in the order of their arrival. Out: messages. All events that have arrived are read before a check, so that
//! ten quick changes are one; requests wait meanwhile, and are dropped if they are cancelled or their text changes. A defect
//! in a check or an answer is reported to the user and ends nothing.

use std::collections::VecDeque;
use std::io::{self, BufReader};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use gen_lsp_types::{
    DidChangeTextDocumentParams, DidChangeWatchedFilesParams, DidCloseTextDocumentParams,
    DidOpenTextDocumentParams, DidSaveTextDocumentParams, PublishDiagnosticsParams, Uri,
};
use lsp_server::{ErrorCode, Message, Notification, Request, RequestId, Response};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::convert::Convert;
use super::documents::Documents;
use super::paths::path_of;
use super::position::Encoding;
use super::requests::Answers;
use super::specs::Specs;
use super::transport::{self, ServerEvent};
use super::{guarded, publish, requests};
use crate::project::BuildsOn;

/// The end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// `shutdown`, then `exit`.
    Orderly,
    /// Anything else.
    Abrupt,
}

/// The rest of an editor after which the code that a spec names is looked up.
const REST: Duration = Duration::from_millis(300);

/// The life of the server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Fresh,
    Running,
    ShutDown,
}

/// The server.
pub struct Server<'a> {
    builds_on: &'a BuildsOn,
    phase: Phase,
    encoding: Encoding,
    watches: bool,
    documents: Documents,
    specs: Specs,
    /// Requests that are not answered yet.
    waiting: VecDeque<Request>,
    events: Receiver<ServerEvent>,
    sender: Sender<ServerEvent>,
}

impl<'a> Server<'a> {
    /// A server that has read nothing yet.
    pub fn new(builds_on: &'a BuildsOn) -> Server<'a> {
        let (sender, events) = channel();
        Server {
            builds_on,
            phase: Phase::Fresh,
            encoding: Encoding::Utf16,
            watches: false,
            documents: Documents::default(),
            specs: Specs::default(),
            waiting: VecDeque::new(),
            events,
            sender,
        }
    }

    /// Serves until the connection ends.
    ///
    /// # Errors
    /// If the editor reads no more.
    pub fn serve(mut self) -> io::Result<End> {
        let sender = self.sender.clone();
        std::thread::spawn(move || transport::read_all(BufReader::new(io::stdin()), &sender));
        loop {
            let mut next = self.next_event();
            while let Some(event) = next {
                if let Some(end) = self.event(event)? {
                    return Ok(end);
                }
                next = self.events.try_recv().ok();
            }
            self.check()?;
            if let Some(request) = self.waiting.pop_front() {
                self.answer(request)?;
            }
        }
    }

    /// The next event; `None` if there is other work.
    fn next_event(&mut self) -> Option<ServerEvent> {
        if !self.waiting.is_empty() {
            return self.events.try_recv().ok();
        }
        if let Ok(event) = self.events.try_recv() {
            return Some(event);
        }
        self.specs.rest();
        if !self.specs.need_code() {
            // The server holds a sender itself, so the channel never closes.
            return self.events.recv().ok();
        }
        match self.events.recv_timeout(REST) {
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Timeout) => {
                self.specs.look_up_code(&self.documents, &self.sender);
                None
            }
            Err(RecvTimeoutError::Disconnected) => Some(ServerEvent::End),
        }
    }

    fn event(&mut self, event: ServerEvent) -> io::Result<Option<End>> {
        match event {
            ServerEvent::Message(Message::Request(request)) => self.request(request)?,
            ServerEvent::Message(Message::Notification(notification)) => {
                return self.notification(notification);
            }
            // The only requests of the server are registrations, whose answers say nothing.
            ServerEvent::Message(Message::Response(_)) => {}
            ServerEvent::Malformed { id, code, message } => transport::write_malformed(&id, code, &message)?,
            ServerEvent::Code(found) => {
                if let Some(root) = self.specs.add_code(found) {
                    self.publish(&root)?;
                }
            }
            ServerEvent::End => return Ok(Some(End::Abrupt)),
        }
        Ok(None)
    }

    fn request(&mut self, request: Request) -> io::Result<()> {
        match (self.phase, request.method.as_str()) {
            (Phase::Fresh, "initialize") => self.initialize(request.id, &request.params),
            (Phase::Fresh, _) => {
                refuse(request.id, ErrorCode::ServerNotInitialized, "`initialize` comes first")
            }
            (Phase::ShutDown, _) => refuse(request.id, ErrorCode::InvalidRequest, "the server is shut down"),
            (Phase::Running, "initialize") => {
                refuse(request.id, ErrorCode::InvalidRequest, "`initialize` was sent already")
            }
            (Phase::Running, "shutdown") => {
                // Earlier requests are answered first, for the texts that have arrived.
                self.check()?;
                for request in std::mem::take(&mut self.waiting) {
                    self.answer(request)?;
                }
                self.phase = Phase::ShutDown;
                transport::write(&Response::new_ok(request.id, Value::Null).into())
            }
            (Phase::Running, _) => {
                self.waiting.push_back(request);
                Ok(())
            }
        }
    }

    fn initialize(&mut self, id: RequestId, params: &Value) -> io::Result<()> {
        self.phase = Phase::Running;
        // Read by name: a value that is unknown elsewhere in the parameters must not keep the server from starting.
        let encodings = params.pointer("/capabilities/general/positionEncodings").and_then(Value::as_array);
        if encodings.is_some_and(|known| known.iter().any(|encoding| encoding == "utf-8")) {
            self.encoding = Encoding::Utf8;
        }
        let watches = params.pointer("/capabilities/workspace/didChangeWatchedFiles/dynamicRegistration");
        self.watches = watches == Some(&Value::Bool(true));
        let capabilities = capabilities(self.encoding);
        let info = json!({ "name": "opsmith", "version": env!("CARGO_PKG_VERSION") });
        transport::write(
            &Response::new_ok(id, json!({ "capabilities": capabilities, "serverInfo": info })).into(),
        )
    }

    fn notification(&mut self, notification: Notification) -> io::Result<Option<End>> {
        let Notification { method, params } = notification;
        if method == "exit" {
            return Ok(Some(if self.phase == Phase::ShutDown { End::Orderly } else { End::Abrupt }));
        }
        if self.phase != Phase::Running {
            return Ok(None);
        }
        match method.as_str() {
            "initialized" if self.watches => self.watch()?,
            "$/cancelRequest" => self.cancel(&params["id"])?,
            "workspace/didChangeWatchedFiles" => {
                if let Ok(params) = serde_json::from_value::<DidChangeWatchedFilesParams>(params) {
                    self.watched(&params)?;
                }
            }
            _ => self.text(&method, params)?,
        }
        Ok(None)
    }

    /// A text that was opened, changed, saved or closed.
    fn text(&mut self, method: &str, params: Value) -> io::Result<()> {
        match method {
            "textDocument/didOpen" => {
                if let Some((params, path)) =
                    self.read(method, params, |params: &DidOpenTextDocumentParams| &params.text_document.uri)?
                {
                    let opened = params.text_document;
                    self.documents.open(&path, opened.uri, opened.version, opened.text);
                    self.assign()?;
                    self.specs.changed(&path);
                }
            }
            "textDocument/didChange" => {
                if let Some((params, path)) =
                    self.read(method, params, |params: &DidChangeTextDocumentParams| {
                        &params.text_document.text_document_identifier.uri
                    })?
                {
                    self.drop_outdated(&params.text_document.text_document_identifier.uri)?;
                    let version = params.text_document.version;
                    if self.documents.change(&path, version, params.content_changes, self.encoding) {
                        self.specs.changed(&path);
                    }
                }
            }
            "textDocument/didSave" => {
                if let Some((_, path)) =
                    self.read(method, params, |params: &DidSaveTextDocumentParams| &params.text_document.uri)?
                {
                    self.assign()?;
                    self.specs.changed(&path);
                }
            }
            "textDocument/didClose" => {
                if let Some((params, path)) =
                    self.read(method, params, |params: &DidCloseTextDocumentParams| {
                        &params.text_document.uri
                    })?
                {
                    self.drop_outdated(&params.text_document.uri)?;
                    self.documents.close(&path);
                    // The text of the disk counts again.
                    self.specs.changed(&path);
                    self.assign()?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The parameters of a notification about a text, with its path; wrong ones are reported.
    fn read<T: DeserializeOwned>(
        &self,
        method: &str,
        params: Value,
        uri: fn(&T) -> &Uri,
    ) -> io::Result<Option<(T, std::path::PathBuf)>> {
        match serde_json::from_value::<T>(params) {
            Ok(params) => {
                let path = path_of(uri(&params));
                Ok(path.map(|path| (params, path)))
            }
            Err(error) => {
                log(&format!("`{method}` was left out, because its parameters are wrong: {error}"))?;
                Ok(None)
            }
        }
    }

    /// Finds the specs of the open texts, and clears the diagnostics of those that have none any more.
    fn assign(&mut self) -> io::Result<()> {
        for message in self.specs.assign(&self.documents, self.builds_on) {
            show(&message)?;
        }
        for spec in self.specs.take_unused() {
            send_all(publish::cleared(&spec, self.convert()))?;
        }
        Ok(())
    }

    fn watched(&mut self, params: &DidChangeWatchedFilesParams) -> io::Result<()> {
        let mut manifest = false;
        for change in &params.changes {
            let Some(path) = path_of(&change.uri) else { continue };
            manifest |= path.ends_with("Cargo.toml");
            self.specs.changed(&path);
        }
        if manifest {
            for spec in self.specs.take_all() {
                send_all(publish::cleared(&spec, self.convert()))?;
            }
        }
        // A new file may be included, and a manifest names the libraries.
        self.assign()?;
        self.specs.all_changed();
        Ok(())
    }

    fn cancel(&mut self, id: &Value) -> io::Result<()> {
        let is_it = |request: &Request| serde_json::to_value(&request.id).is_ok_and(|known| known == *id);
        match self.waiting.iter().position(is_it).and_then(|index| self.waiting.remove(index)) {
            Some(request) => refuse(request.id, ErrorCode::RequestCanceled, "cancelled"),
            None => Ok(()),
        }
    }

    /// Drops the requests about a text that has changed: their positions are of another text.
    fn drop_outdated(&mut self, uri: &Uri) -> io::Result<()> {
        let is_about = |request: &Request| {
            request.params.pointer("/textDocument/uri").and_then(Value::as_str) == Some(uri.as_ref())
        };
        let (outdated, rest): (Vec<Request>, Vec<Request>) =
            std::mem::take(&mut self.waiting).into_iter().partition(is_about);
        self.waiting = rest.into();
        for request in outdated {
            refuse(request.id, ErrorCode::ContentModified, "the text has changed")?;
        }
        Ok(())
    }

    /// Checks the specs that have changed.
    fn check(&mut self) -> io::Result<()> {
        let (checked, messages) = self.specs.check(&self.documents);
        for message in messages {
            show(&message)?;
        }
        for root in checked {
            self.publish(&root)?;
        }
        Ok(())
    }

    fn publish(&mut self, root: &Path) -> io::Result<()> {
        let convert = Convert { documents: &self.documents, encoding: self.encoding };
        send_all(publish::lists(&mut self.specs, root, convert))
    }

    fn convert(&self) -> Convert<'_> {
        Convert { documents: &self.documents, encoding: self.encoding }
    }

    fn answer(&mut self, request: Request) -> io::Result<()> {
        let answers = Answers { documents: &self.documents, specs: &self.specs, encoding: self.encoding };
        let Request { id, method, params } = request;
        match guarded(|| answers.answer(&method, params)) {
            Some(Ok(result)) => transport::write(&Response::new_ok(id, result).into()),
            Some(Err(requests::RequestFailure { code, message, is_shown })) => {
                if is_shown {
                    show(&message)?;
                }
                refuse(id, code, &message)
            }
            None => {
                let message =
                    format!("the server has a defect in `{method}`; please report it with its output");
                show(&message)?;
                refuse(id, ErrorCode::InternalError, &message)
            }
        }
    }

    /// Asks the editor to report changes of files that it does not have open.
    fn watch(&self) -> io::Result<()> {
        let watchers = json!([{ "globPattern": "**/*.{yaml,yml}" }, { "globPattern": "**/Cargo.toml" }]);
        let registration = json!({
            "id": "files",
            "method": "workspace/didChangeWatchedFiles",
            "registerOptions": { "watchers": watchers },
        });
        let params = json!({ "registrations": [registration] });
        let id = RequestId::from("files".to_owned());
        transport::write(&Request::new(id, "client/registerCapability".to_owned(), params).into())
    }
}

/// The features of the server.
fn capabilities(encoding: Encoding) -> Value {
    json!({
        "positionEncoding": if encoding == Encoding::Utf8 { "utf-8" } else { "utf-16" },
        "textDocumentSync": { "openClose": true, "change": 2, "save": { "includeText": false } },
        "completionProvider": { "triggerCharacters": [".", ":", "(", "[", "{", "/", ","] },
        "hoverProvider": true,
        "definitionProvider": true,
        "referencesProvider": true,
        "documentHighlightProvider": true,
        "documentSymbolProvider": true,
        "workspaceSymbolProvider": true,
        "renameProvider": { "prepareProvider": true },
        "documentFormattingProvider": true,
        "codeActionProvider": { "codeActionKinds": ["quickfix"] },
    })
}

fn refuse(id: RequestId, code: ErrorCode, message: &str) -> io::Result<()> {
    transport::write(&Response::new_err(id, code as i32, message.to_owned()).into())
}

fn send_all(lists: Vec<PublishDiagnosticsParams>) -> io::Result<()> {
    lists.into_iter().try_for_each(|list| notify("textDocument/publishDiagnostics", json!(list)))
}

/// Shows a warning to the user.
fn show(message: &str) -> io::Result<()> {
    notify("window/showMessage", json!({ "type": 2, "message": message }))
}

/// Writes a warning to the editor's log.
fn log(message: &str) -> io::Result<()> {
    notify("window/logMessage", json!({ "type": 2, "message": message }))
}

fn notify(method: &str, params: Value) -> io::Result<()> {
    transport::write(&Notification { method: method.to_owned(), params }.into())
}
