//! Documentation sites: links, contents, sizes, equal bytes, and specs made to harm.

#[path = "site/facts.rs"]
mod facts;
#[path = "site/python.rs"]
mod python_functions;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Instant;

use opsmith_codegen::analysis::fingerprint::fingerprint;
use opsmith_codegen::pipeline::{self, Checked};
use opsmith_codegen::{Config, Parent};
use opsmith_tools::diff;
use opsmith_tools::results::Results;
use opsmith_tools::site::guide::Guide;
use opsmith_tools::site::names::Names;
use opsmith_tools::site::{Release, SiteFile, SiteInput, SourceUrl, site};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, files: &[(&str, &str)]) -> Folder {
        let folder = std::env::temp_dir().join(format!("opsmith-site-{name}-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("docs/guide")).unwrap();
        for (file, text) in files {
            std::fs::write(folder.join(file), text).unwrap();
        }
        Folder(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn input<'a>(
    checked: &'a Checked,
    config: &'a Config,
    folder: &Path,
    results: Option<&'a Results>,
) -> SiteInput<'a> {
    SiteInput {
        checked,
        config,
        title: "a library".to_owned(),
        version: "1.2.3".to_owned(),
        guide: Guide::read(folder).unwrap(),
        names: Names::beside(folder).unwrap(),
        results,
        releases: Vec::new(),
        source_url: Some(SourceUrl::parse("https://host/blob/main/{path}#L{line}").unwrap()),
    }
}

/// The stock spec.
fn stock() -> (Checked, Config) {
    let config = Config::stock(root().join("ops.yaml"));
    (pipeline::check(&config).unwrap(), config)
}

/// Results with an outcome of each kind, an example and a time of every operator.
fn results(checked: &Checked, folder: &str) -> Results {
    let own = fingerprint(&checked.model);
    let mut text =
        format!("{{\"opsmith_results\":1,\"library\":\"mine\",\"fingerprint\":\"{own:016x}\",\"time\":1}}\n");
    for op in checked.model.ops.iter().filter(|op| !op.is_external()) {
        let of = |dtype: &str, check: &str, outcome: &str| {
            format!(
                "{{\"op\":{:?},\"backend\":\"CPU\",\"dtype\":{dtype:?},\"check\":{check:?},{outcome}}}\n",
                op.name
            )
        };
        text.push_str(&of("float32", "forward", "\"passed\":2"));
        text.push_str(&of("float64", "forward", "\"failed\":[\"a finding <b>\"]"));
        text.push_str(&of("any", "graph", "\"skipped\":\"a reason\""));
        text.push_str(&format!(
            "{{\"op\":{:?},\"example\":{{\"code\":\"let y = f(&x)?;\",\"output\":\"[1, 2] of {}\"}}}}\n",
            op.name, op.name
        ));
    }
    let folder = Folder::new(folder, &[("a.jsonl", &text)]);
    Results::read(&folder.0).unwrap()
}

/// The site of the stock spec, with results; written once, because a test without optimisation takes seconds.
fn stock_site() -> &'static [SiteFile] {
    static SITE: OnceLock<Vec<SiteFile>> = OnceLock::new();
    SITE.get_or_init(|| {
        let (checked, config) = stock();
        let results = results(&checked, "stock");
        site(&input(&checked, &config, &root(), Some(&results))).unwrap()
    })
}

fn pages(files: &[SiteFile]) -> impl Iterator<Item = &SiteFile> {
    files.iter().filter(|file| file.path.ends_with(".html"))
}

/// The values of an attribute.
fn values<'a>(html: &'a str, attribute: &str) -> Vec<&'a str> {
    let start = format!(" {attribute}=\"");
    html.match_indices(&start)
        .map(|(place, _)| {
            let rest = &html[place + start.len()..];
            &rest[..rest.find('"').expect("a closing quote")]
        })
        .collect()
}

/// Links and identifiers of a site that are wrong.
fn broken(files: &[SiteFile]) -> Vec<String> {
    let all: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    let anchors: BTreeMap<&str, Vec<&str>> =
        pages(files).map(|file| (file.path.as_str(), values(&file.text, "id"))).collect();
    let mut wrong = Vec::new();
    for page in pages(files) {
        let own = &anchors[page.path.as_str()];
        let mut seen = BTreeSet::new();
        wrong.extend(
            own.iter().filter(|id| !seen.insert(**id)).map(|id| format!("{}: #{id} twice", page.path)),
        );
        for link in values(&page.text, "href").into_iter().chain(values(&page.text, "src")) {
            if link.starts_with("https://") || link.starts_with("data:") {
                continue;
            }
            let (file, anchor) =
                link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor)));
            let target = match file {
                "" => page.path.clone(),
                file => match file.strip_prefix("../") {
                    Some(rest) => rest.to_owned(),
                    None => file.to_owned(),
                },
            };
            if !all.contains(target.as_str()) {
                wrong.push(format!("{}: {link} leads nowhere", page.path));
            } else if let Some(anchor) = anchor
                && !anchors.get(target.as_str()).is_some_and(|ids| ids.contains(&anchor))
            {
                wrong.push(format!("{}: {link} has no such heading", page.path));
            }
        }
    }
    wrong
}

#[test]
fn links_lead_to_pages_and_headings() {
    let wrong = broken(stock_site());
    assert!(wrong.is_empty(), "{} links:\n{}", wrong.len(), wrong[..wrong.len().min(40)].join("\n"));
}

#[test]
fn every_operator_has_a_page_with_documentation_and_an_executed_example() {
    let (checked, _) = stock();
    let files = stock_site();
    let mut wrong = Vec::new();
    for op in &checked.model.ops {
        let title = format!("<h1 class=\"operator\"><code>{}</code></h1>", op.name);
        let Some(page) =
            files.iter().find(|file| file.path.starts_with("ops/") && file.text.contains(&title))
        else {
            wrong.push(format!("{}: no page", op.name));
            continue;
        };
        let output = format!("[1, 2] of {}<", op.name);
        for (part, text) in [
            ("documentation", "<div class=\"doc\"><p>"),
            ("a signature", "id=\"signature\""),
            ("an example", output.as_str()),
            ("tests", "id=\"tests\""),
            ("an entry", "id=\"entry\""),
        ] {
            if !page.text.contains(text) {
                wrong.push(format!("{}: no {part}", op.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn headings_follow_each_other_without_gaps() {
    let mut wrong = Vec::new();
    for page in pages(stock_site()) {
        let main = page.text.split_once("<main").expect("a main part").1;
        let mut last = 0;
        for (place, _) in main.match_indices("<h") {
            let Some(level) = main[place + 2..].chars().next().and_then(|digit| digit.to_digit(10)) else {
                continue;
            };
            if level > last + 1 || (level == 1 && last > 0) {
                wrong.push(format!("{}: h{level} after h{last}", page.path));
            }
            last = level;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn pages_are_small() {
    let large = pages(stock_site()).filter(|file| file.text.len() > 200_000);
    let large: Vec<String> = large.map(|file| format!("{}: {} bytes", file.path, file.text.len())).collect();
    assert!(large.is_empty(), "{large:?}");
    // A spec of one file with thousands of operators, too.
    let entries: String = (0..2500)
        .map(|number| format!("- {{func: operator_of_a_long_name_{number}(Tensor self) -> Tensor, doc: One., pointwise: self}}\n"))
        .collect();
    let checked = pipeline::check_text("spec.yaml", &format!("edition: 1\nops:\n{entries}"));
    assert!(!checked.diagnostics.has_errors());
    let folder = Folder::new("large", &[]);
    let config = Config::stock(folder.0.join("spec.yaml"));
    let files = site(&input(&checked, &config, &folder.0, None)).unwrap();
    let large = pages(&files).filter(|file| file.text.len() > 200_000).map(|file| &file.path);
    assert!(large.collect::<Vec<_>>().is_empty());
    assert!(broken(&files).is_empty(), "{:?}", broken(&files).first());
}

#[test]
fn equal_specs_give_equal_bytes_wherever_they_are() {
    let text = "edition: 1\nops:\n- {func: twice(Tensor self) -> Tensor, doc: Twice., pointwise: self}\n";
    let make = |name: &str| {
        let folder =
            Folder::new(name, &[("spec.yaml", text), ("README.md", "# Read\n\n[spec](spec.yaml)\n")]);
        let mut config = Config::stock(folder.0.join("spec.yaml"));
        config.spec_name = config.spec.display().to_string();
        let checked = pipeline::check(&config).unwrap();
        let files = site(&input(&checked, &config, &folder.0, None)).unwrap();
        let named =
            files.iter().find(|file| file.text.contains("opsmith-site-")).map(|file| file.path.clone());
        assert_eq!(named, None, "a page names the folder of the spec");
        files
    };
    assert_eq!(make("here"), make("there"));
}

#[test]
fn markup_of_a_spec_is_text() {
    let text = "edition: 1\nops:\n- func: con(Tensor self) -> Tensor\n  doc: |\n    <script>alert(1)</script> & \"quotes\" [a](javascript:alert(2)) ![p](x.png)\n\n    \
                <img src=x onerror=alert(3)>\n\n    # A \"heading\" <b>\n\n    ```html\n    <script>alert(4)</script>\n    ```\n  \
                descriptions: {self: \"<i>the</i> `</code>`\"}\n  tags: [tagged]\n  pointwise: self\n\
                - {func: aux.lower(Tensor self) -> Tensor, doc: Other., pointwise: self}\n\
                - {func: index(Tensor self) -> Tensor, doc: \"`aux.lower`, `con`, [a](javascript:alert(6)) and <b>.\", pointwise: self}\n";
    let checked = pipeline::check_text("spec.yaml", text);
    assert!(
        !checked.diagnostics.has_errors(),
        "{:?}",
        checked.diagnostics.sorted().next().map(|d| &d.message)
    );
    let folder = Folder::new(
        "hostile",
        &[("README.md", "# <script>alert(5)</script>\n\n[x](data:text/html,a) <b>bold</b>\n")],
    );
    let config = Config::stock(folder.0.join("spec.yaml"));
    let results = results(&checked, "hostile-results");
    let mut input = input(&checked, &config, &folder.0, Some(&results));
    input.title = "<title> & \"more\"".to_owned();
    let files = site(&input).unwrap();
    for page in pages(&files) {
        for harmful in [
            "<script>alert",
            "=\"javascript:",
            "<img",
            "<i>the",
            "<u>",
            "</code>`",
            "=\"data:text",
            "a finding <b>",
            "<title> &",
        ] {
            assert!(!page.text.contains(harmful), "{} has {harmful}", page.path);
        }
    }
    assert_eq!(broken(&files), Vec::<String>::new());
    let names: BTreeSet<String> = files.iter().map(|file| file.path.to_lowercase()).collect();
    assert_eq!(names.len(), files.len(), "two pages are one file where case is ignored");
    assert!(files.iter().any(|file| file.path == "ops/index.html"));
    for device in ["ops/con.html", "ops/aux.lower.html"] {
        assert!(!names.contains(device), "{device} is the name of a device");
    }
}

#[test]
fn results_alone_make_the_coverage() {
    let text = "edition: 1\nops:\n- {func: twice(Tensor self) -> Tensor, doc: Twice., pointwise: self}\n";
    let checked = pipeline::check_text("spec.yaml", text);
    let folder = Folder::new("without", &[]);
    let config = Config::stock(folder.0.join("spec.yaml"));
    let files = site(&input(&checked, &config, &folder.0, None)).unwrap();
    let page = files.iter().find(|file| file.path == "coverage.html").unwrap();
    assert!(page.text.contains("OPSMITH_RESULTS=") && !page.text.contains("coverage-data.js"));
    assert!(!files.iter().any(|file| file.path.starts_with("assets/coverage")));
    let with = stock_site().iter().find(|file| file.path == "assets/coverage-data.js").unwrap();
    let json = with.text.strip_prefix("window.opsmithCoverage=").unwrap().trim_end().trim_end_matches(';');
    let data: serde_json::Value = serde_json::from_str(json).unwrap();
    assert_eq!(data["checks"], serde_json::json!(["graph", "forward"]));
    assert_eq!(data["rows"].as_array().unwrap().len(), stock().0.model.ops.len());
    assert!(with.text.len() < 200_000, "{}", with.text.len());
}

#[test]
fn everything_is_one_object() {
    let file = stock_site().iter().find(|file| file.path == "everything.json").unwrap();
    let value: serde_json::Value = serde_json::from_str(&file.text).unwrap();
    let operators = value["operators"].as_array().unwrap();
    let exp = operators.iter().find(|operator| operator["name"] == "exp").unwrap();
    assert_eq!(exp["page"]["address"], "ops/exp.html");
    assert_eq!(exp["page"]["elsewhere"]["NumPy"], "numpy.exp");
    assert_eq!(exp["page"]["example"]["output"], "[1, 2] of exp");
    assert!(exp["page"]["definition"].as_str().unwrap().starts_with("<math"));
    assert!(exp["page"]["plot"].as_str().unwrap().starts_with("<svg"));
}

#[test]
fn changes_between_specs() {
    let spec = |name: &str, body: &str| {
        let text = format!(
            "edition: 1\nops:\n- {{func: {name}(Tensor self) -> Tensor, doc: {name}., pointwise: {body}}}\n"
        );
        pipeline::check_text("spec.yaml", &text)
    };
    let (old, new) = (spec("before", "self"), spec("after", "self * self * 3"));
    let folder = Folder::new("changes", &[]);
    let config = Config::stock(folder.0.join("spec.yaml"));
    let mut input = input(&new, &config, &folder.0, None);
    let report = diff::diff(&old.model, &new.model);
    input.releases = vec![Release { from: "v1".to_owned(), to: "v2".to_owned(), report }];
    let files = site(&input).unwrap();
    let page = files.iter().find(|file| file.path == "changes.html").unwrap();
    for part in
        ["Breaking", "Additive", "<code>before</code>", "<a href=\"ops/after.html\"><code>after</code></a>"]
    {
        assert!(page.text.contains(part), "{part} is not in {}", page.text);
    }
}

/// The entries of a document's blocks of YAML, which have the word `entry`, or the name of a file that another test writes.
fn entries(document: &str) -> String {
    let blocks = document.split("```yaml").skip(1).map(|block| block.split_once("\n```").expect("an end").0);
    blocks
        .filter(|block| !block.starts_with(" file="))
        .map(|block| block.strip_prefix(" entry\n").expect("a block of entries"))
        .collect::<Vec<_>>()
        .join("\n\n")
}

#[test]
fn entries_of_the_guide_are_right() {
    let mut count = 0;
    for file in std::fs::read_dir(root().join("docs/guide")).unwrap() {
        let path = file.unwrap().path();
        let own = entries(&std::fs::read_to_string(&path).unwrap());
        if own.is_empty() {
            continue;
        }
        count += 1;
        let folder = Folder::new("entries", &[("ops.yaml", &format!("edition: 1\n\nops:\n{own}\n"))]);
        let mut config = Config::new(folder.0.join("ops.yaml"));
        config.parents.push(Parent::new(root().join("ops.yaml"), "opsmith"));
        let checked = pipeline::check(&config).unwrap();
        let found: Vec<&String> =
            checked.diagnostics.sorted().map(|diagnostic| &diagnostic.message).collect();
        assert!(found.is_empty(), "{}: {found:?}", path.display());
    }
    assert!(count >= 3, "entries in {count} documents of the guide");
}

#[test]
fn names_elsewhere_are_of_operators() {
    let (checked, _) = stock();
    let names = Names::beside(&root()).unwrap();
    let known: BTreeSet<&str> =
        checked.model.ops.iter().flat_map(|op| [op.name.as_str(), op.base.as_str()]).collect();
    let unknown: Vec<&str> = names.operators().filter(|name| !known.contains(name)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    let add = checked.model.ops.iter().find(|op| op.name == "add.Tensor").unwrap();
    assert_eq!(
        names.of(add),
        [
            ("PyTorch", "torch.add"),
            ("NumPy", "numpy.add"),
            ("MindSpore", "mindspore.mint.add"),
            ("ONNX", "Add")
        ]
    );
    for (text, mistake) in [
        ("name,A\n", "1: the first line is"),
        ("operator,A\nadd\n", "2: 0 names for 1 libraries"),
        ("operator,A\nadd,\"b\"\n", "2: a cell cannot be quoted"),
        ("operator,A\nadd,b\nadd,c\n", "3: `add` has a line already"),
        ("operator,A\n,b\n", "2: the first cell"),
    ] {
        let error = Names::parse(text).unwrap_err();
        assert!(error.starts_with(mistake), "{error}");
    }
}

#[test]
fn addresses_of_sources() {
    let url = SourceUrl::parse("https://host/{path}#L{line}").unwrap();
    assert_eq!(url.of("a b/c.rs", Some("12")), "https://host/a%20b/c.rs#L12");
    assert_eq!(url.of("c.rs", None), "https://host/c.rs");
    for wrong in ["javascript:{path}", "https://host/", "{path}"] {
        assert!(SourceUrl::parse(wrong).unwrap_err().contains("no address of source code"));
    }
    let page = stock_site().iter().find(|file| file.path == "ops/mm.html").unwrap();
    assert!(page.text.contains("<a href=\"https://host/blob/main/kernels/src/cpu/"), "{}", page.text);
}

/// Prints the time of the stock spec's site; with `--release`, that of users.
#[test]
#[ignore = "a measurement: cargo test --release -p opsmith-tools --test site -- --ignored --nocapture"]
fn time_of_a_site() {
    let start = Instant::now();
    let (checked, config) = stock();
    let read = start.elapsed();
    let files = site(&input(&checked, &config, &root(), None)).unwrap();
    let operators = checked.model.ops.len();
    println!(
        "{operators} operators: read and checked in {read:?}, {} files in {:?}",
        files.len(),
        start.elapsed()
    );
}
