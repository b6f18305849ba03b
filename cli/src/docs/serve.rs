//! A server of a site's files, for the machine that it runs on.
//!
//! In: a folder. Out: its files, to `GET` and `HEAD` requests from this machine whose `Host` is this machine: a page of the web
//! cannot read the site through another name. Each connection serves one request, and a slow one delays no other.

use std::io::{self, BufRead, BufReader, Read as _, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};

use super::folder::is_inside;

/// The longest head of a request.
const MOST_BYTES: u64 = 16 * 1024;

/// The longest wait for a byte of a request.
const PATIENCE: Duration = Duration::from_secs(10);

/// A server that listens.
pub struct Server {
    listener: TcpListener,
    folder: PathBuf,
    port: u16,
}

/// The status, type and bytes of an answer.
type Answer = (&'static str, &'static str, Vec<u8>);

impl Server {
    /// Listens at a port of this machine; 0 is a free one.
    ///
    /// # Errors
    /// If the port is taken.
    pub fn bind(port: u16, folder: &Path) -> Result<Server> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).with_context(|| {
            format!("cannot listen at port {port}; name another one, or 0 for a free one: --serve 0")
        })?;
        let port = listener.local_addr()?.port();
        Ok(Server { listener, folder: folder.to_owned(), port })
    }

    /// The address of the site.
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    /// Serves until the process ends.
    pub fn run(self) {
        let folder: Arc<Path> = self.folder.into();
        for stream in self.listener.incoming().flatten() {
            let folder = Arc::clone(&folder);
            // A connection that breaks concerns its client alone.
            let serve = move || _ = answer(&stream, &folder);
            _ = std::thread::Builder::new().spawn(serve);
        }
    }
}

fn answer(stream: &TcpStream, folder: &Path) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut lines = BufReader::new(stream.take(MOST_BYTES)).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    let mut host = String::new();
    for line in lines {
        let line = line?;
        if line.is_empty() {
            break;
        }
        if let Some((_, value)) = line.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("host")) {
            host = value.trim().to_owned();
        }
    }
    let (status, kind, body) = respond(&request, &host, folder);
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let mut stream = stream;
    stream.write_all(head.as_bytes())?;
    if !request.starts_with("HEAD ") {
        stream.write_all(&body)?;
    }
    stream.flush()
}

/// The answer to a request line.
fn respond(request: &str, host: &str, folder: &Path) -> Answer {
    let refuse =
        |status: &'static str| (status, "text/plain; charset=utf-8", format!("{status}\n").into_bytes());
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    if !["127.0.0.1", "localhost"].contains(&name) {
        return refuse("421 Misdirected Request");
    }
    let mut words = request.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    if !["GET", "HEAD"].contains(&method) {
        return refuse("405 Method Not Allowed");
    }
    let target = target.split(['?', '#']).next().unwrap_or_default();
    let Some(path) = target.strip_prefix('/').and_then(decoded) else { return refuse("400 Bad Request") };
    let path = if path.is_empty() { "index.html".to_owned() } else { path };
    if !is_inside(&path) {
        return refuse("404 Not Found");
    }
    match read(folder, &path) {
        Some(bytes) => ("200 OK", kind(&path), bytes),
        None => refuse("404 Not Found"),
    }
}

/// The bytes of a file inside the folder; a link that leads outside is no such file.
fn read(folder: &Path, path: &str) -> Option<Vec<u8>> {
    let folder = folder.canonicalize().ok()?;
    let file = folder.join(path).canonicalize().ok()?;
    let is_file = file.starts_with(&folder) && file.is_file();
    is_file.then(|| std::fs::read(file).ok()).flatten()
}

/// A path without its percent signs; `None` if it is not UTF-8 or has a control character.
fn decoded(path: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
            let (high, low) = (digit(rest.next())?, digit(rest.next())?);
            bytes.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok().filter(|text| !text.chars().any(char::is_control))
}

fn kind(path: &str) -> &'static str {
    match path.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "html" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "json" => "application/json",
        _ => "text/plain; charset=utf-8",
    }
}
