//! `opsmith profile` with files that are damaged, of another format, or written by somebody else.

#[path = "support/profiles.rs"]
mod profiles;
#[allow(dead_code, reason = "other tests use the rest")]
mod support;

use profiles::{Files, assert_fine, profile};
use serde_json::{Value, json};
use support::opsmith;

/// Texts of a profile become part of a program, and may be anybody's.
#[test]
fn a_reproducer_is_made_of_values_alone() {
    let files = Files::new("values");
    let of = |edit: &dyn Fn(&mut Value)| {
        let mut value = profile("a", 10_000);
        edit(&mut value);
        opsmith(&["profile", "repro", &files.write("a.json", &value), "leak"])
    };
    let run = of(&|value| value["name"] = json!("a\nfn evil() {}"));
    assert_fine(&run);
    assert!(run.stdout.starts_with(
        "//! Repeats one call of `leak.Scalar` (ops.yaml:7) as it was recorded in `a fn evil() {}`"
    ));
    let run = of(&|value| value["operators"][0]["name"] = json!("leak\"; evil(); \""));
    assert!(!run.stdout.contains("\"leak\"; evil()"), "{}", run.stdout);
    let run = of(&|value| value["operators"][0]["library"] = json!("shop; evil()"));
    assert!(run.status == Some(2) && run.stderr.contains("is not the name of a library"), "{}", run.stderr);
    for (rust, is_value) in [
        ("Value::Ints(vec![1, -2])", true),
        ("Value::Scalar(Scalar::Complex(Complex64::new(1.5, f64::NEG_INFINITY)))", true),
        (r#"Value::Str("a \" evil() \\".to_owned())"#, true),
        ("Value::DType(DType::BF16)", true),
        ("Value::Float(1e-5)", true),
        ("std::process::exit(1)", false),
        ("{ evil() }", false),
        (r#"Value::Str("a"); evil(")"#, false),
        ("Value::Int(include!(0))", false),
    ] {
        let run = of(&|value| value["operands"][0]["args"][1]["Attribute"]["rust"] = json!(rust));
        assert_eq!(run.status, Some(if is_value { 0 } else { 2 }), "{rust}: {}", run.stderr);
        assert_eq!(run.stdout.contains(rust), is_value, "{rust}");
    }
    let run = of(&|value| value["operands"][0]["args"][0]["Tensor"]["sizes"] = json!([-3, 2]));
    assert!(run.status == Some(2) && run.stderr.contains("negative sizes"), "{}", run.stderr);
}

/// A short profile with devices, memory of them and limits.
fn with_all_parts() -> Value {
    let mut whole = profile("a", 10_000);
    whole["events"].as_array_mut().unwrap().truncate(5);
    whole["devices"] = json!(["cuda:0"]);
    whole["device_spans"] =
        json!([{"event": 2, "device": 0, "stream": 0, "start_ns": 1000, "duration_ns": 3000}]);
    whole["changes"]
        .as_array_mut()
        .unwrap()
        .push(json!({"at_ns": 400, "address": 128, "bytes": 9, "thread": 0, "event": 1, "device": 0}));
    whole["limits"] = json!({"copy_gb_s": 10.0, "gflop_s": 20.0, "threads": 2,
        "devices": [{"device": "cuda:0", "copy_gb_s": 10.0, "gflop_s": 20.0}]});
    whole
}

/// Numbers of a profile that were changed, one after another, to the ends of their range: an error or a result of each command, no panic.
#[test]
fn damaged_numbers_are_errors_or_results() {
    fn numbers(value: &Value, path: &str, found: &mut Vec<String>) {
        match value {
            Value::Number(_) | Value::Null => found.push(path.to_owned()),
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(at, item)| numbers(item, &format!("{path}/{at}"), found));
            }
            Value::Object(fields) => {
                fields.iter().for_each(|(key, item)| numbers(item, &format!("{path}/{key}"), found));
            }
            _ => {}
        }
    }
    let files = Files::new("damaged");
    let whole = with_all_parts();
    let mut paths = Vec::new();
    numbers(&whole, "", &mut paths);
    assert!(paths.len() > 90, "{paths:?}");
    let path = files.path("a.json");
    let outputs = ["a.svg", "b.trace.json", "c.pftrace", "d.html", "e.csv"].map(|name| files.path(name));
    let [flame, json_trace, binary, report, csv] = outputs.each_ref().map(String::as_str);
    let commands: [&[&str]; 10] = [
        &["show", &path, "--limits"],
        &["show", &path, "--group", "kernel", "--csv"],
        &["top", &path],
        &["tree", &path],
        &["flame", &path, "-o", flame],
        &["trace", &path, "-o", json_trace],
        &["trace", &path, "-o", binary],
        &["report", &path, "-o", report],
        &["memory", &path, "-o", csv],
        &["diff", &path, &path],
    ];
    let mut read = 0;
    for place in &paths {
        for number in [json!(0), json!(u64::MAX), json!(i64::MIN), json!(u64::MAX / 2), json!(-1), json!(0.5)]
        {
            let mut value = whole.clone();
            *value.pointer_mut(place).unwrap() = number.clone();
            files.write("a.json", &value);
            for command in commands {
                let run = opsmith(&[&["profile"], command].concat());
                assert!(matches!(run.status, Some(0 | 2)), "{command:?}, {place} = {number}: {}", run.stderr);
                read += usize::from(run.status == Some(0));
                // A file that cannot be read is one that no command reads.
                if run.stderr.contains("the profile is damaged") || run.stderr.contains("`Profile::save`") {
                    break;
                }
            }
        }
    }
    assert!(read > 500, "{read} results");
}

#[test]
fn files_that_are_no_profiles() {
    let files = Files::new("mistakes");
    let mut damaged = profile("a", 10_000);
    damaged["events"][1][0][3] = json!(9);
    let mut newer = profile("a", 10_000);
    newer["format"] = json!(3);
    // The first format had events with fewer numbers.
    let mut older = profile("a", 10_000);
    older["format"] = json!(1);
    older["events"][0] = json!(["Range", 0, null, null, 0, null, null, 100, 200, 0, 0, null]);
    let mut endless = profile("a", 10_000);
    endless["events"][0][2][1] = json!(u64::MAX);
    let mut without_kernel = profile("a", 10_000);
    without_kernel["events"][2][1][1] = json!(null);
    for (value, message) in [
        (json!({}), "help: give a file that `Profile::save` wrote"),
        (damaged, "the profile is damaged: its event 1 refers to what is not there"),
        (newer, "the profile's format is 3, and this program reads 2\n  help: record it again"),
        (older, "the profile's format is 1, and this program reads 2"),
        (without_kernel, "its event 2 refers to what is not there"),
        (endless, "its event 0 refers to what is not there"),
    ] {
        let file = files.write("a.json", &value);
        let run = opsmith(&["profile", "show", &file]);
        assert_eq!(run.status, Some(2));
        assert!(run.stderr.contains(&file) && run.stderr.contains(message), "{}", run.stderr);
    }
    let run = opsmith(&["profile", "tree", &files.path("nowhere.json")]);
    assert_eq!(run.status, Some(2));
    assert!(run.stderr.contains("nowhere.json: No such file"), "{}", run.stderr);
}
