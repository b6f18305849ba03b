//! Damaged, hostile and unsuitable programs: each is an error with the mistake, its location and the cure.

mod programs_support;

use std::io::Write;

use opsmith::{DType, Tensor, TensorOps};
use opsmith_programs::Program;
use programs_support::{bytes, changed};

/// The text of the error of loading, checking or running a program.
#[track_caller]
fn refusal(archive: Vec<u8>) -> String {
    let program = match Program::from_bytes(archive) {
        Err(error) => return error.to_string(),
        Ok(program) => program,
    };
    match program.check() {
        Err(errors) => errors.to_string(),
        Ok(_) => panic!("the program has no mistakes"),
    }
}

/// The program `mlp` with its model's JSON changed.
fn with_model(change: impl Fn(&mut serde_json::Value)) -> Vec<u8> {
    of_model("mlp.pt2", change)
}

fn of_model(program: &str, change: impl Fn(&mut serde_json::Value)) -> Vec<u8> {
    changed(&bytes(program), |name, bytes| {
        if !name.ends_with("models/model.json") {
            return Some(bytes);
        }
        let mut document = serde_json::from_slice(&bytes).unwrap();
        change(&mut document);
        Some(serde_json::to_vec(&document).unwrap())
    })
}

#[track_caller]
fn says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

#[test]
fn truncated_archives_are_refused() {
    let whole = bytes("cond.pt2");
    for length in (0..whole.len()).step_by(97) {
        let error = refusal(whole[..length].to_vec());
        assert!(!error.is_empty());
    }
    says(&refusal(whole[..100].to_vec()), &["the file is no zip archive", "torch.export.save"]);
}

#[test]
fn flipped_bits_never_panic() {
    let whole = bytes("cond.pt2");
    let x = Tensor::from_slice(&[0.5f32; 12], &[3, 4]).unwrap();
    let mut refused = 0;
    for position in (0..whole.len()).step_by(7) {
        let mut archive = whole.clone();
        archive[position] ^= 1 << (position % 8);
        let ran = Program::from_bytes(archive).and_then(|program| program.run(&[&x]));
        refused += usize::from(ran.is_err());
    }
    // A flipped bit fails the check sum of its member, unless it is in one that is not read.
    assert!(refused > whole.len() / 7 / 2, "{refused} of {}", whole.len() / 7);
}

#[test]
fn changed_documents_never_panic() {
    let x = Tensor::from_slice(&[0.5f32; 12], &[3, 4]).unwrap();
    let mut places = Vec::new();
    of_model("cond.pt2", |_| {});
    let original = bytes("cond.pt2");
    changed(&original, |name, bytes| {
        if name.ends_with(".json") && !name.contains("constants") {
            let document: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
            collect(&document, String::new(), &mut |place| places.push((name.to_owned(), place)));
        }
        Some(bytes)
    });
    let values = [
        serde_json::json!(-1),
        serde_json::json!(i64::MAX),
        serde_json::json!("x"),
        serde_json::json!([]),
        serde_json::json!(null),
        serde_json::json!({"as_int": 7}),
    ];
    let mut refused = 0;
    for (number, (member, place)) in places.iter().enumerate() {
        let value = &values[number % values.len()];
        let archive = changed(&original, |name, bytes| {
            if name != *member {
                return Some(bytes);
            }
            let mut document: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
            *document.pointer_mut(place).unwrap() = value.clone();
            Some(serde_json::to_vec(&document).unwrap())
        });
        refused += usize::from(Program::from_bytes(archive).and_then(|program| program.run(&[&x])).is_err());
    }
    assert!(refused > 50, "{refused} of {}", places.len());
}

/// Calls a function with the pointer of each value in a document.
fn collect(value: &serde_json::Value, place: String, visit: &mut impl FnMut(String)) {
    match value {
        serde_json::Value::Object(object) => object.iter().for_each(|(key, value)| {
            let key = key.replace('~', "~0").replace('/', "~1");
            collect(value, format!("{place}/{key}"), visit);
        }),
        serde_json::Value::Array(list) => {
            list.iter().enumerate().for_each(|(at, value)| collect(value, format!("{place}/{at}"), visit));
        }
        _ => {}
    }
    if !place.is_empty() {
        visit(place);
    }
}

#[test]
fn deep_documents_are_refused() {
    let deep = format!("{{\"a\": {}", "[".repeat(1_000_000));
    let archive = changed(&bytes("mlp.pt2"), |name, bytes| {
        Some(if name.ends_with("models/model.json") { deep.clone().into_bytes() } else { bytes })
    });
    says(&refusal(archive), &["`models/model.json` of the archive cannot be read", "damaged"]);
}

#[test]
fn names_that_lead_out_are_refused() {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    writer.start_file("mlp/../../etc/passwd", zip::write::SimpleFileOptions::default()).unwrap();
    writer.write_all(b"x").unwrap();
    let archive = writer.finish().unwrap().into_inner();
    says(&refusal(archive), &["leads out of it"]);
}

#[test]
fn bombs_are_refused() {
    let options =
        zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    writer.start_file("a/archive_format", options).unwrap();
    writer.write_all(b"pt2").unwrap();
    writer.start_file("a/models/model.json", options).unwrap();
    let zeros = vec![b' '; 1 << 20];
    (0..100).for_each(|_| writer.write_all(&zeros).unwrap());
    let archive = writer.finish().unwrap().into_inner();
    assert!(archive.len() < 1 << 20);
    says(&refusal(archive), &["expands to more than the file can hold"]);
}

#[test]
fn other_archives_are_refused() {
    let without = |part: &'static str| {
        changed(&bytes("mlp.pt2"), move |name, bytes| (!name.ends_with(part)).then_some(bytes))
    };
    says(&refusal(without("archive_format")), &["no exported program", "torch.save"]);
    says(&refusal(without("models/model.json")), &["the archive has no model"]);
    let old = changed(&bytes("mlp.pt2"), |name, bytes| match name {
        "mlp/archive_format" => None,
        _ => Some(bytes),
    });
    assert!(refusal(old).contains("archive_format"));
    let big = changed(&bytes("mlp.pt2"), |name, bytes| {
        Some(if name.ends_with("byteorder") { b"big".to_vec() } else { bytes })
    });
    says(&refusal(big), &["not little-endian"]);
    says(
        &refusal(with_model(|model| model["schema_version"]["major"] = 9.into())),
        &["a schema of version 9.20", "PyTorch 2.15.0", "knows 8.x", "update opsmith"],
    );
}

#[test]
fn all_mistakes_come_at_once() {
    let archive = with_model(|model| {
        let nodes = &mut model["graph_module"]["graph"]["nodes"];
        nodes[1]["target"] = "torch.ops.aten.rellu.default".into();
        model["range_constraints"] = serde_json::json!({"s77": {"min_val": 2, "max_val": null}});
    });
    let archive = changed(&archive, |name, bytes| (!name.ends_with("weights/weight_3")).then_some(bytes));
    says(
        &refusal(archive),
        &[
            "the program has 2 mistakes",
            "the archive has no `data/weights/weight_3`",
            "for the weight `b.bias`",
            "no library in this program has the operator `torch.ops.aten.rellu.default`",
            "did you mean `relu`",
            "called by the node `relu`, written in",
            "F.relu(s.a(x))",
        ],
    );
}

#[test]
fn calls_that_inference_rejects_are_errors_of_their_nodes() {
    let archive = with_model(|model| {
        let nodes = &mut model["graph_module"]["graph"]["nodes"];
        nodes[0]["inputs"][1]["arg"]["as_tensor"]["name"] = "p_b_weight".into();
    });
    says(
        &refusal(archive),
        &["in the node `linear` (torch.ops.aten.linear.default), written in", "F.linear(input, self.weight"],
    );
}

#[test]
fn unknown_kinds_of_arguments_are_errors_of_their_nodes() {
    let archive = with_model(|model| {
        model["graph_module"]["graph"]["nodes"][0]["inputs"][1]["arg"] = serde_json::json!({"as_magic": 1});
    });
    says(
        &refusal(archive),
        &[
            "the node `linear` of `torch.ops.aten.linear.default` cannot be read",
            "arguments of kind `as_magic`",
        ],
    );
    let archive = with_model(|model| {
        model["graph_module"]["graph"]["nodes"][0]["inputs"][1]["arg"]["as_tensor"]["name"] = "later".into();
    });
    says(&refusal(archive), &["there is no value `later` before it"]);
}

#[test]
fn weights_of_other_shapes_are_refused() {
    let change = |to: serde_json::Value| {
        changed(&bytes("mlp.pt2"), move |name, bytes| {
            if !name.ends_with("model_weights_config.json") {
                return Some(bytes);
            }
            let mut document: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
            document["config"]["a.weight"]["tensor_meta"]["sizes"][0] = to.clone();
            Some(serde_json::to_vec(&document).unwrap())
        })
    };
    says(
        &refusal(change(serde_json::json!({"as_int": 127}))),
        &["is float32 of shape (127, 64), and the program takes float32 of shape (128, 64)", "`a.weight`"],
    );
    says(&refusal(change(serde_json::json!({"as_int": -1}))), &["a size or stride is -1"]);
    let short = changed(&bytes("mlp.pt2"), |name, mut bytes| {
        if name.ends_with("weights/weight_0") {
            bytes.truncate(100);
        }
        Some(bytes)
    });
    says(&refusal(short), &["`data/weights/weight_0` of the archive cannot be read", "`a.weight`"]);
}

#[test]
fn symbols_without_bounds_are_refused() {
    let archive = with_model(|model| model["range_constraints"] = serde_json::json!({}));
    says(&refusal(archive), &["the symbol `s77` has no bounds", "for dimension 0 of input `x`"]);
}

#[test]
fn unsuitable_inputs_are_refused() {
    let archive = with_model(|model| {
        model["range_constraints"] = serde_json::json!({"s77": {"min_val": 3, "max_val": 5}});
    });
    let program = Program::from_bytes(archive).unwrap();
    let error = |inputs: &[Tensor]| program.run(inputs).unwrap_err().to_string();
    let of = |sizes: &[i64]| opsmith::ones(sizes).unwrap();
    says(&error(&[]), &["the program takes 1 inputs, and got 0", "x: float32 (s77, 64)"]);
    let long = of(&[4, 64]).to_dtype(DType::I64).unwrap();
    says(&error(&[long]), &["input `x` is int64, and the program takes float32"]);
    says(&error(&[of(&[4])]), &["the program takes 2 dimensions"]);
    says(&error(&[of(&[4, 63])]), &["dimension 1 is 63, and the program was exported for 64"]);
    for size in [2, 6] {
        says(&error(&[of(&[size, 64])]), &["dimension 0, `s77`, is", "its bounds are 3 to 5"]);
    }
    for size in 3..=5 {
        assert_eq!(program.run(&[of(&[size, 64])]).unwrap()[0].shape(), [size, 10]);
    }
}

#[test]
fn conditions_of_the_exporter_are_checked() {
    let archive = with_model(|model| {
        model["guards_code"] = serde_json::json!(["L['x'].size()[0] % 2 == 0", "L['x'][0].size()[0] == 1"]);
    });
    let program = Program::from_bytes(archive).unwrap();
    assert_eq!(program.check().unwrap().unread, ["L['x'][0].size()[0] == 1"]);
    let of = |size: i64| program.run(&[opsmith::ones([size, 64]).unwrap()]);
    assert!(of(4).is_ok());
    // A condition of one size bounds it.
    says(&of(3).unwrap_err().to_string(), &["dimension 0, `s77`, is 3, no multiple of 2"]);
}

#[test]
fn extreme_numbers_are_refused() {
    let extreme = [i64::MAX, i64::MIN, -1, 1 << 40];
    for number in extreme {
        for bound in ["min_val", "max_val"] {
            let archive = with_model(|model| {
                let mut range = serde_json::json!({"min_val": 2, "max_val": null});
                range[bound] = number.into();
                model["range_constraints"] = serde_json::json!({ "s77": range });
            });
            // An upper bound that no tensor reaches is fine.
            _ = Program::from_bytes(archive).map(|program| program.check().is_ok());
        }
        let archive = with_model(|model| {
            let sizes = &mut model["graph_module"]["graph"]["tensor_values"]["x"]["sizes"];
            sizes[1] = serde_json::json!({"as_int": number});
        });
        assert!(!refusal(archive).is_empty());
        let huge = with_weight(|meta| {
            meta["sizes"] = serde_json::json!([{"as_int": number}, {"as_int": number}]);
            meta["strides"] = serde_json::json!([{"as_int": 0}, {"as_int": 0}]);
        });
        says(&refusal(huge), &["`a.weight`"]);
        let offset = with_weight(|meta| meta["storage_offset"] = serde_json::json!({"as_int": number}));
        says(&refusal(offset), &["`a.weight`"]);
    }
    let many = with_weight(|meta| meta["sizes"] = vec![serde_json::json!({"as_int": 1}); 100_000].into());
    says(&refusal(many), &["at most 64 are read"]);
}

/// The program `mlp` with the layout of its first weight changed.
fn with_weight(change: impl Fn(&mut serde_json::Value)) -> Vec<u8> {
    changed(&bytes("mlp.pt2"), |name, bytes| {
        if !name.ends_with("model_weights_config.json") {
            return Some(bytes);
        }
        let mut document: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        change(&mut document["config"]["a.weight"]["tensor_meta"]);
        Some(serde_json::to_vec(&document).unwrap())
    })
}
