//! `opsmith coverage`, `export`, `schema`, `completions` and help, run as processes, on the stock spec.

mod support;

use opsmith_core::DType;
use serde_json::{Value, json};
use support::opsmith;

#[test]
fn coverage_as_a_table() {
    let run = opsmith(&["coverage", "--only", "mm"]);
    run.assert_parts(&[
        "operator",
        "bool u8 u16",
        "forward in-place out test\n",
        "mm ",
        "CPU",
        " 2 ",
        "yes",
        "\ntotals for CPU\n",
    ]);
    run.assert_parts(&[
        "computes ",
        " %  ",
        " of ",
        "gradient, where there can be one",
        "second order, the same",
        "forward mode, the same",
        "in-place form",
        "out form",
        "samples, which checks call it with",
        "named by a test",
        "samples or named by a test",
        "totals for CUDA\n",
    ]);
    assert_eq!((run.status, &*run.stderr), (Some(0), ""));
    assert!(!run.stdout.contains("softmax"), "{}", run.stdout);
    let totals = opsmith(&["coverage", "--totals"]).stdout;
    assert!(totals.starts_with("totals for CPU\n"), "{totals}");
}

/// On a backend without kernels no operator is supported: no view, no composition, no function.
#[test]
fn coverage_claims_nothing_where_nothing_runs() {
    // In no crate, so that it builds on no library.
    let spec = std::env::temp_dir().join(format!("opsmith-coverage-{}.yaml", std::process::id()));
    std::fs::write(&spec, ON_HOST).unwrap();
    let run = opsmith(&["coverage", "--json", spec.to_str().unwrap()]);
    std::fs::remove_file(&spec).unwrap();
    let value: Value = serde_json::from_str(&run.stdout).unwrap();
    let rows = value["rows"].as_array().unwrap();
    let claims = |row: &&Value| row["forward"] != json!([]) || row["backward"] != json!([]);
    let claimed = |backend: &str| rows.iter().filter(|row| row["backend"] == backend).filter(claims).count();
    assert_eq!((claimed("CPU"), claimed("CUDA")), (3, 0), "{}", run.stdout);
    let totals =
        value["totals"].as_array().unwrap().iter().find(|totals| totals["backend"] == "CUDA").unwrap();
    assert_eq!((&totals["forward"]["have"], &totals["forward_dtypes"]["have"]), (&json!(0), &json!(0)));
}

/// Operators whose only kernel is the host's.
const ON_HOST: &str = "edition: 1

ops:
- func: twice(Tensor self) -> Tensor
  doc: Two times each element.
  shape: follow(self)
  dtype: follow(self)
  dispatch: {CPU: \"twice.cc:twice\"}

- func: four_times(Tensor self) -> Tensor
  doc: Four times each element.
  decompose: twice(twice(self))

- func: turned(Tensor(a) self) -> Tensor(a)
  doc: The matrix with its dimensions exchanged.
  view: true
  dispatch: {View: views::t}
";

/// Whatever computes on the host computes on CUDA devices in the same dtypes: loops of expressions, hand-written kernels and
/// compositions of these. Elements of dtypes that only store are made on the host alone.
#[test]
fn coverage_of_devices() {
    let run = opsmith(&["coverage", "--json"]);
    let value: Value = serde_json::from_str(&run.stdout).unwrap();
    let rows = value["rows"].as_array().unwrap();
    let on = |backend: &'static str| rows.iter().filter(move |row| row["backend"] == backend);
    assert!(on("CPU").count() > 700);
    for host in on("CPU") {
        let device = on("CUDA").find(|row| row["op"] == host["op"]).unwrap();
        let is_stored = |name: &Value| DType::from_name(name.as_str().unwrap()).unwrap().is_stored();
        let computed = |row: &Value| {
            let dtypes = row["forward"].as_array().unwrap();
            dtypes.iter().filter(|name| !is_stored(name)).cloned().collect::<Vec<_>>()
        };
        assert_eq!(computed(device), computed(host), "{} on CUDA", host["op"]);
    }
}

/// The outcomes of a test run are a column of each backend.
#[test]
fn coverage_of_a_test_run() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let config = opsmith_codegen::Config::new(root.join("ops.yaml"));
    let model = opsmith_codegen::pipeline::check(&config).unwrap().model;
    let fingerprint = opsmith_codegen::analysis::fingerprint::fingerprint(&model);
    let file = std::env::temp_dir().join(format!("opsmith-coverage-{}.jsonl", std::process::id()));
    let head = json!({"opsmith_results": 1, "library": "opsmith", "fingerprint": format!("{fingerprint:016x}"), "time": 1.0});
    let line = |backend: &str, check: &str, outcome: &str, value: Value| json!({"op": "mm", "backend": backend, "dtype": "float32", "check": check, outcome: value});
    let lines = [
        head,
        line("CPU", "forward", "passed", json!(4)),
        line("CUDA (stand-in)", "forward", "passed", json!(4)),
        line("CUDA (stand-in)", "gradient", "failed", json!(["another number"])),
        line("CUDA (stand-in)", "graph", "skipped", json!("no sample")),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(&file, &text).unwrap();
    let path = file.to_str().unwrap();
    let table = opsmith(&["coverage", "--only", "mm", "--results", path]).stdout;
    let row = |backend: &str| {
        let of_mm = |line: &&str| line.split_whitespace().take(2).eq(["mm", backend]);
        table.lines().find(of_mm).unwrap_or_else(|| panic!("{table}")).to_owned()
    };
    assert!(row("CPU").ends_with(" 1/1") && row("CUDA").ends_with(" 1/2"), "{table}");
    assert!(
        table.contains("out test runs\n") && table.contains("all checks of a test run passed"),
        "{table}"
    );
    let value: Value =
        serde_json::from_str(&opsmith(&["coverage", "--json", "--results", path]).stdout).unwrap();
    let totals = |number: usize| value["totals"][number]["runs"].clone();
    assert_eq!((totals(0), totals(1)), (json!({"have": 1, "of": 1}), json!({"have": 0, "of": 1})));
    // Results of another spec say nothing about this one.
    std::fs::write(&file, text.replace(&format!("{fingerprint:016x}"), &"0".repeat(16))).unwrap();
    let run = opsmith(&["coverage", "--results", path]);
    std::fs::remove_file(&file).unwrap();
    assert!(run.status != Some(0) && run.stderr.contains("results of another spec"), "{}", run.stderr);
}

#[test]
fn coverage_as_json() {
    let run = opsmith(&["coverage", "--json"]);
    let value: Value = serde_json::from_str(&run.stdout).unwrap();
    let rows = value["rows"].as_array().unwrap();
    let row = |op: &str| rows.iter().find(|row| row["op"] == op && row["backend"] == "CPU").unwrap();
    let mm = row("mm");
    assert_eq!(mm["gradients"], "written");
    assert_eq!(
        (&mm["second_order"], &mm["inplace"], &mm["out"], &mm["named"]),
        (&json!(true), &json!(false), &json!(true), &json!(true))
    );
    assert!(mm["backward"].as_array().unwrap().contains(&json!("float32")));
    // Comparisons compute and have no gradient, which is not a gap.
    let eq = row("eq.Tensor");
    assert_eq!((&eq["differentiable"], &eq["backward"]), (&json!(false), &json!([])));
    // A composition supports the dtypes that all operators it calls support.
    assert!(row("cosine_similarity")["forward"].as_array().unwrap().contains(&json!("float64")));
    // The columns on tests match the spec and the tests.
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let included = std::fs::read_dir(root.join("ops")).unwrap().map(|file| file.unwrap().path());
    let files = included.chain([root.join("ops.yaml")]);
    let spec: String = files.map(|file| std::fs::read_to_string(file).unwrap()).collect();
    let with_samples = spec.lines().filter(|line| line.starts_with("  samples:")).count();
    let on_cpu = || rows.iter().filter(|row| row["backend"] == "CPU");
    let sampled = on_cpu().filter(|row| row["sampled"] == true).count();
    assert!(sampled >= with_samples && with_samples > 50, "{sampled} of {with_samples}");
    let either = on_cpu().filter(|row| row["sampled"] == true || row["named"] == true).count();
    assert_eq!(value["totals"][0]["tested"]["have"], either);
    let totals = &value["totals"][0];
    assert_eq!(totals["backend"], "CPU");
    assert_eq!(totals["forward"]["of"], rows.iter().filter(|row| row["backend"] == "CPU").count());
    assert_eq!(run.status, Some(0));
}

#[test]
fn export_and_schema() {
    let run = opsmith(&["export", "--compact"]);
    let value: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((value["format"].as_u64(), run.status), (Some(1), Some(0)));
    assert!(value["operators"].as_array().unwrap().iter().any(|op| op["name"] == "add.Tensor"));
    let wrong = opsmith(&["export", "cli/tests/data/mistakes.yaml"]);
    assert_eq!((wrong.status, &*wrong.stdout), (Some(1), ""));
    assert!(wrong.stderr.contains("nothing is called `sefl` here"), "{}", wrong.stderr);

    let run = opsmith(&["schema"]);
    let schema: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(schema["$schema"], "http://json-schema.org/draft-07/schema#");
    let keys = &schema["properties"]["ops"]["items"]["properties"];
    assert_eq!(keys["pointwise"]["description"], "one element of the output as an expression of the inputs");
    let file = std::env::temp_dir().join(format!("opsmith-schema-{}.json", std::process::id()));
    opsmith(&["schema", "-o", file.to_str().unwrap()]).assert(0, "", "");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), run.stdout);
    std::fs::remove_file(file).unwrap();
}

#[test]
fn completions_of_each_shell() {
    for (shell, part) in
        [("bash", "_opsmith()"), ("zsh", "#compdef opsmith"), ("fish", "complete -c opsmith")]
    {
        let run = opsmith(&["completions", shell]);
        assert!(run.stdout.contains(part) && run.stdout.contains("explain"), "{shell}");
        assert_eq!((run.status, &*run.stderr), (Some(0), ""));
    }
    assert_eq!(opsmith(&["completions", "tcsh"]).status, Some(2));
}

/// Every command has a description, with examples.
#[test]
fn help_of_every_command() {
    let commands = commands(&opsmith(&["help"]).stdout);
    for wanted in [
        "check",
        "explain",
        "expand",
        "fmt",
        "new",
        "init",
        "coverage",
        "diff",
        "export",
        "schema",
        "completions",
    ] {
        assert!(commands.iter().any(|command| command == wanted), "{wanted}: {commands:?}");
    }
    for command in commands {
        let run = opsmith(&[&command, "--help"]);
        let inner = self::commands(&run.stdout);
        for inner in &inner {
            opsmith(&[&command, inner, "--help"]).assert_parts(&["Usage: opsmith ", "Examples:\n  opsmith "]);
        }
        if inner.is_empty() {
            run.assert_parts(&["Usage: opsmith ", "Examples:\n  opsmith "]);
        }
    }
}

/// The commands in a help text.
fn commands(help: &str) -> Vec<String> {
    help.lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .filter(|command| *command != "help")
        .map(str::to_owned)
        .collect()
}

/// Products on a device may be a library's work, which the documentation of their kernel says.
#[test]
fn kernels_of_devices_say_how_they_compute() {
    let text = opsmith(&["explain", "mm", "--device", "cuda"]).stdout;
    for part in
        ["Rust function `linalg::mm`", "computes The product of two matrices", "cuBLASLt", "`product.cuh`"]
    {
        assert!(text.contains(part), "no {part}: {text}");
    }
    assert!(!opsmith(&["explain", "mm"]).stdout.contains("cuBLASLt"));
    let json = opsmith(&["explain", "mm", "--device", "cuda", "--json"]).stdout;
    assert!(json.contains("\"documentation\": \"The product of two matrices"), "{json}");
}

#[test]
fn colours_of_what_is_printed() {
    let plain = opsmith(&["explain", "mm"]).stdout;
    let painted = opsmith(&["explain", "mm", "--color", "always"]).stdout;
    assert!(!plain.contains('\u{1b}') && painted.contains("\u{1b}[1m"), "{painted}");
    assert!(!opsmith(&["explain", "mm", "--color", "never"]).stdout.contains('\u{1b}'));
}
