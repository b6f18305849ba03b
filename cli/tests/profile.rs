//! `opsmith profile`: tables, trees, files, differences and reproducers, from files.

#[path = "support/profiles.rs"]
mod profiles;
mod support;

use std::path::Path;

use profiles::{Files, assert_fine, event, profile};
use serde_json::{Value, json};
use support::{opsmith, opsmith_with};

#[test]
fn tables_of_each_group_and_order() {
    let files = Files::new("tables");
    let file = files.write("a.json", &profile("a", 10_000));
    let run = opsmith(&["profile", "show", &file]);
    run.assert_parts(&["Name ", "Self CPU %", "CPU total", "Calls", "GB/s", "GFLOP/s\n"]);
    // 8 KiB are moved in 10.2 us; the operator's own time has that of its kernel.
    run.assert_parts(&["leak.Scalar ", "99.4 %", " 20  ", "0.80\n"]);
    run.assert_parts(&["Self CPU in all: ", "note: 3 events were overwritten"]);
    assert_fine(&run);
    let run = opsmith(&["profile", "show", &file, "--group", "shapes", "--sort", "name"]);
    run.assert_parts(&["Operands", "leak.Scalar  float32[32, 32], 0.5, none ", "step "]);
    let run = opsmith(&["profile", "show", &file, "--group", "kernel"]);
    run.assert_parts(&["Operator ", "Backend", "Source", "shop::leak  leak.Scalar  cpu "]);
    let run = opsmith(&["profile", "show", &file, "--group", "site", "--limit", "1", "--limits"]);
    run.assert_parts(&["Site", "of limit", "src/model.rs:12:20", "… and 1 more"]);
    let run = opsmith(&["profile", "show", &file, "--csv"]);
    run.assert_parts(&[
        "name,detail,backend,source,calls,self_ns",
        "\n\"leak.Scalar\",\"\",\"\",\"\",20,203790,203790,81920,81920,163840,0,0,0,0,0,0\n",
    ]);
    let run = opsmith(&["profile", "top", &file, "-n", "2"]);
    run.assert_parts(&[
        "leak.Scalar  float32[32, 32], 0.5, none  src/model.rs:12:20  10.199 us",
        "10.198 us",
    ]);
    let run = opsmith(&["profile", "tree", &file]);
    run.assert_parts(&[
        "a  100.0 %",
        "\n  step  ",
        "\n    leak.Scalar  ",
        "\n      shop::leak (kernel of cpu)  ",
        "20 calls\n",
    ]);
    let run = opsmith(&["profile", "tree", &file, "--depth", "1"]);
    assert!(run.stdout.ends_with("\n    … 1 inside\n"), "{}", run.stdout);
}

/// A profile in which each order has another row first, of the operator that is called after it.
fn of_each_order() -> Value {
    const NAMES: [&str; 7] = ["self", "total", "average", "calls", "memory", "device", "a_name"];
    let number = |name: &str| NAMES.iter().position(|known| *known == name).unwrap();
    let mut events: Vec<Value> = Vec::new();
    let mut time = 0;
    let mut call = |name: &str, parent: Option<usize>, start: u64, duration: u64, bytes: u64| {
        let at = number(name);
        events.push(event("Call", parent, at, [Some(at), None, None, None], [start, duration, bytes], None));
        events.len() - 1
    };
    // Twice 1,600 ns, of which five calls inside take 2,500.
    for inside in [3, 2] {
        let outer = call("total", None, time, 1600, 0);
        (0..inside).for_each(|place| _ = call("self", Some(outer), time + 500 * place, 500, 0));
        time += 2000;
    }
    for (name, count, duration, bytes) in
        [("average", 1, 2000, 0), ("calls", 9, 10, 0), ("memory", 1, 10, 4096), ("a_name", 1, 10, 0)]
    {
        for _ in 0..count {
            call(name, None, time, duration, bytes);
            time += 2 * duration;
        }
    }
    let outer = call("device", None, time, 100, 0);
    let (at, kernel) = (number("device"), events.len());
    events.push(event("Kernel", Some(outer), at, [Some(at), Some(0), None, None], [time, 50, 0], None));
    let operator = |name: &&str| json!({"name": name, "library": "shop", "entry": "ops.yaml:7", "arguments": [], "positional": 0, "inplace": null, "writes": [], "out": null});
    json!({
        "format": 2, "name": "orders", "started_ms": 0, "duration_ns": 20000,
        "has_shapes": false, "has_memory": true,
        "threads": [{"name": "main", "overwritten": 0}],
        "operators": NAMES.iter().map(operator).collect::<Vec<_>>(),
        "kernels": [{"name": "device", "operator": at, "backend": "cuda", "source": ""}],
        "texts": NAMES, "operands": [], "events": events, "changes": [], "notes": [], "limits": null,
        "devices": ["cuda:0"],
        "device_spans": [{"event": kernel, "device": 0, "stream": 0, "start_ns": time, "duration_ns": 9000}],
    })
}

#[test]
fn every_order_has_its_largest_row_first() {
    let files = Files::new("orders");
    let file = files.write("a.json", &of_each_order());
    for (order, first) in [
        ("self", "self"),
        ("total", "total"),
        ("average", "average"),
        ("calls", "calls"),
        ("memory", "memory"),
        ("device", "device"),
        ("name", "a_name"),
    ] {
        let run = opsmith(&["profile", "show", &file, "--sort", order, "--limit", "1"]);
        assert_fine(&run);
        let row = run.stdout.lines().nth(2).unwrap_or_default();
        assert!(row.starts_with(&format!("{first} ")), "{order}: {}", run.stdout);
        assert!(run.stdout.contains("… and 6 more"), "{}", run.stdout);
    }
}

#[test]
fn kernels_have_file_and_line() {
    let files = Files::new("places");
    let mut value = profile("a", 10_000);
    value["kernels"][0]["source"] = json!("src/kernels/leak.rs:7");
    // Every other call runs on a device, by a kernel of the same name.
    let on_device =
        json!({"name": "shop::leak", "operator": 0, "backend": "cuda", "source": "cuda/leak.cu:9"});
    value["kernels"].as_array_mut().unwrap().push(on_device);
    (2..40).step_by(4).for_each(|number| value["events"][number][1][1] = json!(1));
    let file = files.write("a.json", &value);
    for arguments in [&["show", "--group", "kernel"][..], &["show", "--group", "kernel", "--csv"], &["tree"]]
    {
        let run = opsmith(&[&["profile"], &arguments[..1], &[&*file], &arguments[1..]].concat());
        assert_fine(&run);
        for (backend, source) in [("cpu", "src/kernels/leak.rs:7"), ("cuda", "cuda/leak.cu:9")] {
            let has_row = |line: &str| [backend, "shop::leak", source].iter().all(|part| line.contains(part));
            assert_eq!(run.stdout.lines().filter(|line| has_row(line)).count(), 1, "{}", run.stdout);
        }
    }
    // Without times of the device the difference says that it is of the host alone.
    let run = opsmith(&["profile", "diff", &file, &file]);
    run.assert_parts(&["note: times in `a` are those of the host alone, which does not wait for cuda"]);
    value["kernels"][1]["operator"] = json!(99);
    let run = opsmith(&["profile", "show", &files.write("b.json", &value)]);
    let message = "the operator of the kernel `shop::leak` is not there";
    assert!(run.status != Some(0) && run.stderr.contains(message), "{}", run.stderr);
}

/// Twenty kernels of 3 us on a device, and a block of its memory.
#[test]
fn work_of_devices_has_columns_of_its_own() {
    let files = Files::new("devices");
    let mut value = profile("a", 10_000);
    value["devices"] = json!(["cuda:0"]);
    // The longest on the device is not that of the host.
    let slowest = 7;
    let span = |number: u64| json!({"event": 2 + 2 * number, "device": 0, "stream": 0, "start_ns": 1000 + 4000 * number, "duration_ns": if number == slowest { 3500 } else { 3000 }});
    value["device_spans"] = (0..20).map(span).collect();
    let block = json!({"at_ns": 400, "address": 128, "bytes": 8192, "thread": 0, "event": 1, "device": 0});
    value["changes"].as_array_mut().unwrap().push(block);
    let file = files.write("a.json", &value);
    let run = opsmith(&["profile", "show", &file, "--sort", "device"]);
    assert_fine(&run);
    run.assert_parts(&["Self device %", "Self device mem", " 60.500 us ", " 3.025 us ", " 8.00 KiB "]);
    // 8 KiB in each 3 us of the device.
    run.assert_parts(&["2.71\n", "Self device in all: 60.500 us"]);
    let run = opsmith(&["profile", "show", &file, "--csv"]);
    run.assert_parts(&[",163840,0,60500,60500,8192,8192,0\n"]);
    // Against the host alone, calls have the time that the device took.
    let of_host = files.write("host.json", &profile("host", 10_000));
    let run = opsmith(&["profile", "diff", &of_host, &file]);
    run.assert_parts(&["203.790 us  60.500 us (device)         0.297  *"]);
    // The slowest call is that of the device's clock, in tables, trees and reproducers.
    let run = opsmith(&["profile", "top", &file, "-n", "1"]);
    run.assert_parts(&["Self device", "leak.Scalar", " 3.500 us "]);
    let run = opsmith(&["profile", "tree", &file]);
    run.assert_parts(&["leak.Scalar  ", "device 60.500 us  20 calls"]);
    let run = opsmith(&["profile", "repro", &file, "leak"]);
    run.assert_parts(&[": 3.500 us there."]);
    value["device_spans"][1]["start_ns"] = json!(2000);
    let run = opsmith(&["profile", "show", &files.write("b.json", &value)]);
    assert!(run.status == Some(2) && run.stderr.contains("a kernel on a device"), "{}", run.stderr);
}

#[test]
fn files_for_other_programs() {
    let files = Files::new("files");
    let file = files.write("a.json", &profile("a", 10_000));
    for (command, name, part) in [
        ("flame", "a.svg", "<title>leak.Scalar: "),
        ("trace", "a.trace.json", "\"cat\":\"cpu_op\",\"name\":\"leak.Scalar\""),
        ("trace", "a.pftrace", "leak.Scalar"),
        ("memory", "a.svg", ">Memory of the host, peak 4.00 KiB</text>"),
        (
            "memory",
            "a.csv",
            "at_ns,device,change_bytes,total_bytes,owner\n300,cpu,4096,4096,\"leak.Scalar at src/model.rs:12:20\"\n",
        ),
        ("report", "a.html", "leak.Scalar at src/model.rs:12:20"),
    ] {
        let output = files.path(name);
        let run = opsmith(&["profile", command, &file, "-o", &output]);
        run.assert(0, "", &format!("wrote {output}\n"));
        let bytes = std::fs::read(&output).unwrap();
        assert!(String::from_utf8_lossy(&bytes).contains(part), "{command}");
    }
    let report = std::fs::read_to_string(files.path("a.html")).unwrap();
    for part in ["Operators", "Flame graph", "Timeline", "Memory", "Call tree"] {
        assert!(report.contains(&format!("<h2>{part}</h2>")), "{part}");
    }
    // Other endings are no format.
    for (command, name) in [("memory", "a.html"), ("memory", "a"), ("trace", "a.jsno"), ("trace", "a.svg")] {
        let output = files.path(name);
        let run = opsmith(&["profile", command, &file, "-o", &output]);
        assert_eq!(run.status, Some(2), "{command} {name}");
        assert!(run.stderr.contains("the ending gives the format"), "{}", run.stderr);
        assert!(name == "a.svg" || name == "a.html" || !Path::new(&output).exists(), "{output}");
    }
    for share in ["-5", "NaN", "101"] {
        let run = opsmith(&["profile", "tree", &file, "--least", share]);
        assert!(run.stderr.contains("write a number from 0 to 100"), "{}", run.stderr);
    }
    let run = opsmith(&["profile", "report", &file, "-o", &files.path("none/a.html")]);
    assert_eq!(run.status, Some(2));
    assert!(run.stderr.contains("none/a.html"), "{}", run.stderr);
}

#[test]
fn differences_that_are_real_are_marked() {
    let files = Files::new("differences");
    let [slow, fast] = [("before", 10_000), ("after", 5_000)]
        .map(|(name, time)| files.write(&format!("{name}.json"), &profile(name, time)));
    let run = opsmith(&["profile", "diff", &slow, &fast]);
    run.assert_parts(&["A: before, B: after\n", "leak.Scalar  ", "  0.509  *\n"]);
    assert!(!run.stdout.contains("Operands"), "{}", run.stdout);
    assert_fine(&run);
    let run = opsmith(&["profile", "diff", &slow, &slow, "--shapes", "--limit", "1"]);
    run.assert_parts(&["Operands", "float32[32, 32], 0.5, none"]);
    assert!(run.stdout.contains("1.000\n") && !run.stdout.contains("  *\n"), "{}", run.stdout);
}

#[test]
fn a_reproducer_names_the_operators_own_library() {
    let files = Files::new("repro");
    let file = files.write("a.json", &profile("a", 10_000));
    let run = opsmith(&["profile", "repro", &file, "leak"]);
    assert_fine(&run);
    run.assert_parts(&[
        "//! Repeats one call of `leak.Scalar` (ops.yaml:7) as it was recorded in `a`, called at src/model.rs:12:20: 10.199 us",
        "use shop as _;",
        "let tensor0 = operand(&[32, 32], &[32, 1], DType::F32, Device::CPU, fill)?;",
        "let args = [Value::Tensor(tensor0), Value::Float(0.5)];",
        "let named: Vec<(&str, Value)> = [(\"weight\", Value::None)].to_vec();",
        "time(Device::CPU, prepare, || shop::call(\"leak.Scalar\", &args, &named))",
    ]);
    let run = opsmith(&["profile", "repro", &file, "relu"]);
    assert_eq!(run.status, Some(2));
    let message = "error: no call of `relu` is in the profile\n  help: its operators are leak.Scalar\n";
    assert_eq!(run.stderr, message);
}

#[test]
fn a_reproducer_has_the_calls_form_and_device() {
    let files = Files::new("forms");
    let mut value = profile("a", 10_000);
    value["texts"].as_array_mut().unwrap().extend([json!("leak_.Scalar"), json!("leak.out")]);
    value["events"][1][0][3] = json!(4);
    value["events"][3][0][3] = json!(5);
    value["operands"][0]["args"][0]["Tensor"]["device"] = json!("cuda:1");
    let file = files.write("a.json", &value);
    let run = opsmith(&["profile", "repro", &file, "leak_.Scalar"]);
    assert_fine(&run);
    run.assert_parts(&[
        "let tensor0 = operand(&[32, 32], &[32, 1], DType::F32, Device::cuda(1), fill)?;",
        "let first0 = operand(&[32, 32], &[32, 1], DType::F32, Device::cuda(1), fill)?;",
        "let args = [Value::Tensor(tensor0.clone()), ",
        "        tensor0.copy_(&first0)?;\n",
        "time(Device::cuda(1), prepare, || shop::call(\"leak_.Scalar\", &args, &named))",
    ]);
    let run = opsmith(&["profile", "repro", &file, "leak.out"]);
    assert_fine(&run);
    run.assert_parts(&[
        "let results = shop::call(\"leak.Scalar\", &args, &named)?;",
        "time(Device::cuda(1), prepare, || shop::call(\"leak.out\", &args, &outs))",
    ]);
    assert!(!run.stdout.contains("first0"), "{}", run.stdout);
    value["operands"][0]["args"][0]["Tensor"]["device"] = json!("tpu:0");
    let run = opsmith(&["profile", "repro", &files.write("b.json", &value), "leak"]);
    assert!(run.status == Some(2) && run.stderr.contains("there is no device `tpu:0`"), "{}", run.stderr);
}

#[test]
fn a_reproducer_is_of_the_chosen_call() {
    let files = Files::new("chosen");
    let mut value = profile("a", 10_000);
    // The first of the calls, which is the fastest, has other operands and another line.
    let tensor = json!({"dtype": "float64", "item_bytes": 8, "sizes": [7], "strides": [2], "device": "cpu"});
    let operands = json!({"args": [{"Tensor": tensor}, value["operands"][0]["args"][1], "None"], "outs": []});
    value["operands"].as_array_mut().unwrap().push(operands);
    value["texts"].as_array_mut().unwrap().push(json!("src/other.rs:3:1"));
    value["events"][1][1][2] = json!(4);
    value["events"][1][1][3] = json!(2);
    let file = files.write("a.json", &value);
    for choice in [["--operands", "float64[7]"], ["--site", "other.rs:3"]] {
        let run = opsmith(&["profile", "repro", &file, "leak", choice[0], choice[1]]);
        assert_fine(&run);
        run.assert_parts(&[
            "called at src/other.rs:3:1: 10.180 us",
            "operand(&[7], &[2], DType::F64, Device::CPU, fill)?",
        ]);
    }
    let run = opsmith(&["profile", "repro", &file, "leak", "--operands", "[32", "--site", "other"]);
    assert_eq!(run.status, Some(2));
    let message = "error: no call of `leak` is like that\n  help: there are \
                   float32[32, 32], 0.5, none at src/model.rs:12:20; float64[7], 0.5, none at src/other.rs:3:1\n";
    assert_eq!(run.stderr, message);
}

#[test]
fn limits_are_those_that_are_kept() {
    let files = Files::new("limits");
    let limits = |arguments: &[&str]| {
        let run = opsmith_with(&[("OPSMITH_CACHE_DIR", &files.path("cache"))], arguments);
        assert_fine(&run);
        run.assert_parts(&["copies ", " GB/s, read and written\n", "arithmetic ", "threads "]);
        run.stdout
    };
    limits(&["profile", "limits"]);
    limits(&["profile", "limits", "--again"]);
}
