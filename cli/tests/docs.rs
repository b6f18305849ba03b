//! `opsmith docs` from outside: folders, refusals, earlier specs, the server.

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use support::opsmith;

const SPEC: &str = "edition: 1\nops:\n- {func: twice(Tensor self) -> Tensor, doc: Twice., pointwise: self}\n";

/// A folder with a spec, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("opsmith-docs-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("ops.yaml"), SPEC).unwrap();
        Folder(folder)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    fn docs(&self, more: &[&str]) -> support::Run {
        let (spec, out) = (self.path("ops.yaml"), self.path("site"));
        let mut arguments = vec!["docs", &spec, "--stand-alone", "-o", &out];
        arguments.extend(more);
        opsmith(&arguments)
    }

    fn has(&self, name: &str) -> bool {
        self.0.join(name).exists()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_site_is_written_and_replaced() {
    let folder = Folder::new("replaced");
    fs::write(folder.0.join("README.md"), "# My operators\n\nSee `twice`.\n").unwrap();
    let run = folder.docs(&[]);
    assert_eq!(run.status, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains(" files in ") && run.stdout.contains("index.html"), "{}", run.stdout);
    assert!(folder.has("site/ops/twice.html") && folder.has("site/everything.json"));
    let guide = fs::read_to_string(folder.path("site/guide/readme.html")).unwrap();
    assert!(guide.contains("<a href=\"../ops/twice.html\"><code>twice</code></a>"), "{guide}");

    fs::write(folder.path("ops.yaml"), SPEC.replace("twice", "double")).unwrap();
    fs::write(folder.path("site/mine.txt"), "of the user").unwrap();
    assert_eq!(folder.docs(&[]).status, Some(0));
    assert!(folder.has("site/ops/double.html") && !folder.has("site/ops/twice.html"));
    assert!(folder.has("site/mine.txt"), "a file of the user was removed");
}

#[test]
fn folders_of_others_are_refused() {
    let folder = Folder::new("refused");
    fs::create_dir_all(folder.path("site")).unwrap();
    fs::write(folder.path("site/thesis.tex"), "years of work").unwrap();
    let run = folder.docs(&[]);
    let wanted = format!(
        "error: {} has files that no `opsmith docs` wrote; name an empty folder by -o, or empty this one yourself\n",
        folder.path("site")
    );
    run.assert(2, "", &wanted);
    assert!(folder.has("site/thesis.tex") && !folder.has("site/index.html"));

    // A damaged list removes nothing outside of the folder.
    fs::remove_file(folder.path("site/thesis.tex")).unwrap();
    fs::write(folder.path("site/.opsmith-docs"), "../ops.yaml\n/etc/passwd\n").unwrap();
    assert_eq!(folder.docs(&[]).status, Some(0));
    assert!(folder.has("ops.yaml"));
}

#[test]
fn refusals_say_the_cure() {
    let folder = Folder::new("refusals");
    fs::write(folder.path("file"), "").unwrap();
    let (spec, file) = (folder.path("ops.yaml"), folder.path("file"));
    let run = opsmith(&["docs", &spec, "--stand-alone", "-o", &file]);
    assert_eq!(run.status, Some(2));
    assert!(run.stderr.contains(&file), "{}", run.stderr);
    for (more, wanted) in [
        (["--results", "/nowhere/results.jsonl"], "OPSMITH_RESULTS"),
        (["--source-url", "ftp://host"], "is no address of source code"),
        (["--previous", "/nowhere/old.yaml"], "/nowhere/old.yaml"),
    ] {
        let run = folder.docs(&more);
        assert_eq!(run.status, Some(2), "{more:?}");
        assert!(run.stderr.contains(wanted), "{more:?}: {}", run.stderr);
        assert!(!folder.has("site"), "{more:?} wrote something");
    }
    fs::write(folder.path("names.csv"), "operator,A\ntwice\n").unwrap();
    let run = folder.docs(&[]);
    assert!(run.stderr.contains("names.csv:2: 0 names for 1 libraries"), "{}", run.stderr);
    fs::write(folder.path("ops.yaml"), SPEC.replace("pointwise: self", "pointwise: slef")).unwrap();
    fs::remove_file(folder.path("names.csv")).unwrap();
    let run = folder.docs(&[]);
    assert_eq!(run.status, Some(1));
    assert!(run.stderr.contains("slef") && !folder.has("site"), "{}", run.stderr);
}

#[test]
fn a_folder_is_no_spec_and_the_one_in_it_is_named() {
    let folder = Folder::new("folder");
    let site = folder.path("site");
    let docs = |spec: &str| opsmith(&["docs", spec, "--stand-alone", "-o", &site]);
    let here = folder.0.display().to_string();
    fs::write(folder.path("a.yaml"), SPEC).unwrap();
    fs::write(folder.path("0.yaml"), "compose: 1\n").unwrap();
    let said =
        |file: &str| format!("error: {here} is a folder; name the spec in it: {}\n", folder.path(file));
    docs(&here).assert(2, "", &said("ops.yaml"));
    opsmith(&["check", &here]).assert(2, "", &said("ops.yaml"));
    opsmith(&["check", &folder.path("a.yaml"), "--builds-on", &here]).assert(2, "", &said("ops.yaml"));
    fs::remove_file(folder.path("ops.yaml")).unwrap();
    docs(&here).assert(2, "", &said("a.yaml"));
    fs::remove_file(folder.path("a.yaml")).unwrap();
    let none = "name a spec, a file that starts with `edition: 1`; this folder has none";
    docs(&here).assert(2, "", &format!("error: {here} is a folder; {none}\n"));
    assert!(!folder.has("site"));
}

#[test]
fn a_document_that_is_no_text_is_named_before_anything_is_written() {
    let folder = Folder::new("bytes");
    fs::create_dir_all(folder.path("docs/guide")).unwrap();
    fs::write(folder.path("README.md"), "# One\n").unwrap();
    assert_eq!(folder.docs(&[]).status, Some(0));
    let before = fs::read(folder.path("site/everything.json")).unwrap();
    fs::write(folder.path("ops.yaml"), SPEC.replace("twice", "double")).unwrap();
    // A document, and the file that lists documents.
    for file in ["docs/bytes.md", "docs/guide/index.md"] {
        fs::write(folder.path(file), b"# On\xe9\n").unwrap();
        let cure = "is no UTF-8 text; save it as UTF-8, or move it out of the guide";
        folder.docs(&[]).assert(
            2,
            "",
            &format!("error: {}, a document of the guide, {cure}\n", folder.path(file)),
        );
        fs::remove_file(folder.path(file)).unwrap();
    }
    assert!(!folder.has("site/ops/double.html"));
    assert_eq!(fs::read(folder.path("site/everything.json")).unwrap(), before);
    assert_eq!(folder.docs(&[]).status, Some(0));
}

#[test]
fn changes_since_earlier_specs() {
    let folder = Folder::new("changes");
    fs::write(folder.path("old.yaml"), SPEC.replace("twice", "double")).unwrap();
    fs::write(folder.path("older.yaml"), SPEC).unwrap();
    let (older, old) = (folder.path("older.yaml"), folder.path("old.yaml"));
    let run = folder.docs(&["--previous", &older, "--previous", &old]);
    assert_eq!(run.status, Some(0), "{}", run.stderr);
    let page = fs::read_to_string(folder.path("site/changes.html")).unwrap();
    let newest = page.find(&format!("From <code>{old}</code>")).expect("the newest changes");
    let oldest = page.find(&format!("From <code>{older}</code>")).expect("the oldest changes");
    assert!(newest < oldest && page.contains("<code>double</code>"), "{page}");
}

/// A server, ended with the test.
struct Server(Child, String);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Server {
    fn start(folder: &Folder) -> Server {
        let mut child = Command::new(env!("CARGO_BIN_EXE_opsmith"))
            .args([
                "docs",
                &folder.path("ops.yaml"),
                "--stand-alone",
                "-o",
                &folder.path("site"),
                "--serve",
                "0",
            ])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = lines.find_map(|line| line.unwrap().strip_prefix("serving http://").map(str::to_owned));
        let address = line.expect("an address").split('/').next().unwrap().to_owned();
        Server(child, address)
    }

    fn ask(&self, head: &str) -> String {
        let mut stream = TcpStream::connect(&self.1).unwrap();
        stream.write_all(format!("{head}\r\n\r\n").as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }
}

#[test]
fn the_server_serves_the_site_to_this_machine_alone() {
    let folder = Folder::new("served");
    let server = Server::start(&folder);
    let get = |path: &str| server.ask(&format!("GET {path} HTTP/1.1\r\nHost: {}", server.1));
    let page = get("/");
    assert!(page.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/html"), "{page}");
    assert!(page.contains("<!doctype html>"));
    assert!(get("/assets/site.js?x=1").contains("Content-Type: text/javascript"));
    assert!(get("/ops/twice%2Ehtml").starts_with("HTTP/1.1 200"));
    for path in
        ["/../ops.yaml", "/%2e%2e/ops.yaml", "/..%5cops.yaml", "//etc/passwd", "/ops", "/none.html", "/a%00"]
    {
        let answer = get(path);
        assert!(answer.starts_with("HTTP/1.1 40"), "{path}: {answer}");
        assert!(!answer.contains("edition"), "{path}: {answer}");
    }
    let foreign = server.ask("GET / HTTP/1.1\r\nHost: evil.example");
    assert!(foreign.starts_with("HTTP/1.1 421"), "{foreign}");
    assert!(server.ask(&format!("POST / HTTP/1.1\r\nHost: {}", server.1)).starts_with("HTTP/1.1 405"));
    let head = server.ask(&format!("HEAD / HTTP/1.1\r\nHost: {}", server.1));
    assert!(head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n"), "{head}");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(Path::new(&folder.path("ops.yaml")), folder.path("site/link.html"))
            .unwrap();
        assert!(get("/link.html").starts_with("HTTP/1.1 404"));
    }
}

#[test]
fn help_has_examples() {
    let run = opsmith(&["docs", "--help"]);
    run.assert_parts(&["Examples:", "opsmith docs --open", "Exit status:"]);
}
