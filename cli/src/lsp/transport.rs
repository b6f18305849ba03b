//! Messages on the standard input and output.
//!
//! In: bytes of an editor, which may be malformed. Out: events in the order of their arrival, and written messages. A
//! malformed message is an event like others; only an end of the input ends the connection. Knows no method.

use std::io::{self, BufRead, Read, Write};
use std::sync::mpsc::Sender;

use lsp_server::Message;
use serde_json::{Value, json};

use super::specs::CodeFindings;

/// Something that the loop reacts to.
pub enum ServerEvent {
    /// A message.
    Message(Message),
    /// Bytes that are no message: the error, with the request's number if it has one.
    Malformed { id: Value, code: i32, message: String },
    /// A check of the code that a spec names has ended.
    Code(CodeFindings),
    /// The end of the input.
    End,
}

/// Larger messages are skipped. The largest text that the checker reads has 32 MB, and JSON may escape each byte.
const MAX_BYTES: u64 = 256 << 20;

/// JSON-RPC's codes of errors.
const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;

/// Reads messages until the input ends; for a thread of its own.
pub fn read_all(mut input: impl BufRead, events: &Sender<ServerEvent>) {
    loop {
        let event = match read(&mut input) {
            Ok(Some(event)) => event,
            Ok(None) | Err(_) => ServerEvent::End,
        };
        let ends = matches!(event, ServerEvent::End);
        if events.send(event).is_err() || ends {
            return;
        }
    }
}

/// The next message; `None` at the end of the input.
fn read(input: &mut impl BufRead) -> io::Result<Option<ServerEvent>> {
    let Some(length) = content_length(input)? else { return Ok(None) };
    let Some(length) = length else {
        let message = "the header has no `Content-Length`".to_owned();
        return Ok(Some(ServerEvent::Malformed { id: Value::Null, code: PARSE_ERROR, message }));
    };
    if length > MAX_BYTES {
        let skipped = io::copy(&mut input.take(length), &mut io::sink())?;
        let message = format!("a message of {skipped} bytes is larger than {MAX_BYTES}");
        return Ok(Some(ServerEvent::Malformed { id: Value::Null, code: INVALID_REQUEST, message }));
    }
    let mut bytes = Vec::new();
    if input.take(length).read_to_end(&mut bytes)? as u64 != length {
        return Ok(None);
    }
    Ok(Some(parse(&bytes)))
}

/// The length that a header gives: `None` at the end of the input, `Some(None)` if it gives none.
fn content_length(input: &mut impl BufRead) -> io::Result<Option<Option<u64>>> {
    let mut length = None;
    let mut is_first = true;
    loop {
        let mut line = Vec::new();
        // A header without an end must not fill the memory.
        if input.take(MAX_HEADER).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end();
        if line.is_empty() {
            // A blank line between messages is no header.
            if is_first {
                continue;
            }
            return Ok(Some(length));
        }
        is_first = false;
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().ok();
        }
    }
}

const MAX_HEADER: u64 = 4 << 10;

fn parse(bytes: &[u8]) -> ServerEvent {
    let value: Value = match serde_json::from_slice(bytes) {
        Ok(value) => value,
        Err(error) => {
            return ServerEvent::Malformed { id: Value::Null, code: PARSE_ERROR, message: error.to_string() };
        }
    };
    // An answer names the request by its `id`, if that is one.
    let is_id = |id: &Value| id.is_string() || id.is_i64() || id.is_u64();
    let id = Some(&value["id"]).filter(|id| is_id(id)).cloned().unwrap_or_default();
    let is_request = value.get("method").is_some();
    // With any `id` at all it is no notification, which would be left out in silence.
    if is_request && value.get("id").is_some() && !is_readable(&id) {
        let message = "the `id` of a request is a text or an integer of 32 bits".to_owned();
        return ServerEvent::Malformed { id, code: INVALID_REQUEST, message };
    }
    let kind = is_request || ["result", "error"].into_iter().any(|key| value.get(key).is_some());
    match serde_json::from_value(value) {
        Ok(message) if kind => ServerEvent::Message(message),
        _ => {
            let message = "this is no request, notification or response".to_owned();
            ServerEvent::Malformed { id, code: INVALID_REQUEST, message }
        }
    }
}

/// Whether an `id` is one that the protocol allows.
fn is_readable(id: &Value) -> bool {
    id.is_string() || id.as_i64().is_some_and(|id| i32::try_from(id).is_ok())
}

/// Writes a message.
///
/// # Errors
/// If the editor reads no more.
pub fn write(message: &Message) -> io::Result<()> {
    message.write(&mut io::stdout().lock())
}

/// Answers bytes that are no message.
///
/// # Errors
/// As [`write`].
pub fn write_malformed(id: &Value, code: i32, message: &str) -> io::Result<()> {
    let text =
        json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } }).to_string();
    let mut out = io::stdout().lock();
    write!(out, "Content-Length: {}\r\n\r\n{text}", text.len())?;
    out.flush()
}
