//! Damaged, hostile and unsuitable ONNX models: each is an error with the mistake, its location and the cure.

mod onnx_support;
mod programs_support;

use std::path::Path;

use onnx_support::{Message, graph, int_attribute, model, node, of_nodes, tensor, value};
use opsmith::Tensor;
use opsmith_programs::Program;
use programs_support::LIBRARY;

fn load(bytes: Vec<u8>) -> Result<Program, String> {
    assert!(!LIBRARY.ops.is_empty());
    Program::from_bytes(bytes).map_err(|error| error.to_string())
}

/// The text of the error of loading or checking a model.
#[track_caller]
fn refusal(bytes: Vec<u8>) -> String {
    match load(bytes) {
        Err(error) => error,
        Ok(program) => match program.check() {
            Err(errors) => errors.to_string(),
            Ok(_) => panic!("the model has no mistakes"),
        },
    }
}

#[track_caller]
fn says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("data/onnx").join(name)).unwrap()
}

#[test]
fn a_model_of_this_file_runs() {
    let program = load(of_nodes(&[node("Relu", &["x"], &["y"])])).unwrap();
    program.check().unwrap();
    assert_eq!(program.inputs()[0].to_string(), "x: float32 (n)");
    let outputs = program.run(&[&Tensor::of(&[-1.0f32, 2.0])]).unwrap();
    assert_eq!(outputs[0].to_vec::<f32>().unwrap(), [0.0, 2.0]);
}

#[test]
fn truncated_models_are_refused() {
    let whole = bytes("cond.onnx");
    for length in (0..whole.len()).step_by(13) {
        // A file that ends between two fields is a model without the others.
        if let Ok(program) = load(whole[..length].to_vec()) {
            _ = program.check();
        }
    }
    says(&refusal(whole[..whole.len() / 2].to_vec()), &["of the model cannot be read", "onnx.checker"]);
}

#[test]
fn flipped_bits_never_panic() {
    let whole = bytes("cond.onnx");
    let x = Tensor::from_slice(&[0.5f32; 12], &[3, 4]).unwrap();
    for place in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[place] ^= 1 << (place % 8);
        if let Ok(program) = load(damaged)
            && program.check().is_ok()
        {
            _ = program.run(&[&x]);
        }
    }
}

#[test]
fn other_versions_name_the_range() {
    let graph = graph(&[node("Relu", &["x"], &["y"])], Message::new());
    says(&refusal(model(17, &graph)), &["version 17", "18 to 23", "opset_version"]);
    says(&refusal(model(24, &graph)), &["version 24", "18 to 23"]);
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let text = refusal(of_nodes(&[
        node("Relux", &["x"], &["a"]),
        node("Gelu", &["x"], &["b"])
            .bytes(5, Message::new().bytes(1, "approximate").bytes(4, "exact").int(20, 3)),
        node("softmax", &["x"], &["c"]),
        node("Transpose", &["x"], &["d"])
            .bytes(5, Message::new().bytes(1, "perm").int(8, 0).int(8, 1).int(20, 7)),
        node("Relu", &["x"], &["y"]),
    ]));
    says(
        &text,
        &["4 mistakes", "`Relux`", "called by the node `call_Relux`", "did you mean `Softmax`?", "exact"],
    );
    says(&text, &["in the node `call_Transpose` (Transpose)"]);
}

#[test]
fn operators_of_other_domains_are_those_of_linked_libraries() {
    let custom = |name: &str| node(name, &["x"], &["y"]).bytes(7, "opsmith");
    let program = load(of_nodes(&[custom("erfinv")])).unwrap();
    let outputs = program.run(&[&Tensor::of(&[0.0f32])]).unwrap();
    assert_eq!(outputs[0].to_vec::<f32>().unwrap(), [0.0]);
    let text = refusal(of_nodes(&[node("sharpen", &["x"], &["y"]).bytes(7, "my.lib")]));
    says(&text, &["`my.lib::sharpen`", "a library of operators whose crate is called `my_lib`"]);
    let wrong = custom("erfinv").bytes(5, int_attribute("axis", 1));
    says(&refusal(of_nodes(&[wrong])), &["has no argument `axis`"]);
}

#[test]
fn cycles_and_unknown_values_are_refused() {
    let cycle = [node("Add", &["x", "b"], &["y"]), node("Relu", &["y"], &["b"])];
    says(&refusal(of_nodes(&cycle)), &["`b` is used before a node makes it", "call_Add"]);
    let twice = [node("Relu", &["x"], &["y"]), node("Abs", &["x"], &["y"])];
    says(&refusal(of_nodes(&twice)), &["`y`", "defined twice"]);
    says(&refusal(of_nodes(&[node("Relu", &["x"], &["z"])])), &["the output `y`", "no node makes it"]);
}

#[test]
fn tensors_have_the_size_that_they_say() {
    let add = |weight: Message| {
        model(20, &graph(&[node("Add", &["x", "w"], &["y"])], Message::new().bytes(5, weight)))
    };
    assert!(load(add(tensor("w", 1, &[1], &[0; 4]))).unwrap().check().is_ok());
    says(&refusal(add(tensor("w", 1, &[2], &[0; 4]))), &["the tensor `w`", "4 bytes", "need 8"]);
    says(&refusal(add(tensor("w", 1, &[-1], &[0; 4]))), &["the tensor `w`", "a size is -1"]);
    says(&refusal(add(tensor("w", 1, &[1 << 40, 1 << 40], &[0; 4]))), &["the tensor `w`"]);
    says(&refusal(add(tensor("w", 1, &[1 << 40], &[0; 4]))), &["the tensor `w`", "need"]);
    says(&refusal(add(tensor("w", 18, &[4], &[0; 4]))), &["float8e4m3fnuz"]);
    says(&refusal(add(tensor("w", 99, &[4], &[0; 4]))), &["no element type with the number 99"]);
    says(&refusal(add(tensor("w", 9, &[1], &[7]))), &["a truth value is neither 0 nor 1"]);
}

#[test]
fn declared_types_are_compared() {
    let relu = [node("Abs", &["x"], &["a"]), node("Relu", &["a"], &["y"])];
    let with = |declared: Message| model(20, &graph(&relu, Message::new().bytes(13, declared)));
    assert!(load(with(value("a", 1, &[-1]))).unwrap().check().is_ok());
    says(&refusal(with(value("a", 1, &[7]))), &["the value `a` has the shape", "declares (7)", "call_Abs"]);
    says(&refusal(with(value("a", 1, &[-1, 1]))), &["the value `a` has the shape", "declares (n, 1)"]);
    says(&refusal(with(value("a", 7, &[-1]))), &["the value `a` is float32, and the model declares int64"]);
}

/// A folder of the test with a model whose weight is in a file.
fn external(name: &str, location: &str, length: i64) -> Result<Program, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("onnx-{}-{name}", std::process::id()));
    std::fs::create_dir_all(folder.join("inner")).unwrap();
    let weights: Vec<u8> = [1.0f32, 2.0, 3.0].iter().flat_map(|number| number.to_le_bytes()).collect();
    std::fs::write(folder.join("inner/weights.bin"), &weights).unwrap();
    std::fs::write(folder.join("inner/model.bin"), &weights).unwrap();
    let entry = |key: &str, text: &str| Message::new().bytes(1, key).bytes(2, text);
    let tensor = Message::new()
        .int(1, 1)
        .int(2, 1)
        .bytes(8, "w")
        .bytes(13, entry("location", location))
        .bytes(13, entry("offset", "4"))
        .bytes(13, entry("length", &length.to_string()))
        .int(14, 1);
    let bytes = model(20, &graph(&[node("Add", &["x", "w"], &["y"])], Message::new().bytes(5, tensor)));
    std::fs::write(folder.join("inner/model.onnx"), bytes).unwrap();
    std::fs::write(folder.join("outside.bin"), &weights).unwrap();
    let program = Program::load(folder.join("inner/model.onnx")).map_err(|error| error.to_string());
    if program.is_err() {
        std::fs::remove_dir_all(folder).unwrap();
    }
    program
}

#[test]
fn weights_in_other_files_stay_inside_the_folder() {
    let program = external("fine", "weights.bin", 4).unwrap();
    assert_eq!(program.run(&[&Tensor::of(&[1.0f32])]).unwrap()[0].to_vec::<f32>().unwrap(), [3.0]);
    // The weight may be written: the file stays as it is.
    let weight = program.weights().next().unwrap().1.clone();
    opsmith::TensorOps::fill_(&weight, 5.0).unwrap();
    assert_eq!(program.run(&[&Tensor::of(&[1.0f32])]).unwrap()[0].to_vec::<f32>().unwrap(), [6.0]);
    let refused = |name: &str, location: &str, length: i64| external(name, location, length).err().unwrap();
    for (name, location) in
        [("up", "../outside.bin"), ("root", "/etc/hostname"), ("hidden", "a/../../outside.bin")]
    {
        says(&refused(name, location, 4), &["outside the folder of the model", "the tensor `w`"]);
    }
    says(&refused("missing", "none.bin", 4), &["the tensor `w`", "none.bin", "copy the files"]);
    says(&refused("long", "weights.bin", 400), &["400 bytes from byte 4", "which has 12"]);
    says(&refused("short", "weights.bin", 2), &["needs 4 bytes, and is 2"]);
}

#[test]
fn deep_nesting_is_refused() {
    let mut inner = Message::new().bytes(12, value("x", 1, &[-1]));
    for depth in 0..60 {
        let attribute = |name: &str| Message::new().bytes(1, name).bytes(6, &inner).int(20, 5);
        let outputs = [format!("v{depth}")];
        let branch = node("If", &["c"], &[&outputs[0]]).bytes(5, attribute("then_branch"));
        inner = Message::new().bytes(1, branch).bytes(12, value(&outputs[0], 1, &[-1]));
    }
    let text = refusal(model(20, &inner));
    assert!(text.contains("cannot be read"), "{text}");
}

#[test]
fn functions_that_call_each_other_are_refused() {
    let function = |name: &str, calls: &str| {
        let inner = Message::new().bytes(1, "a").bytes(2, "b").bytes(4, calls).bytes(7, "own");
        Message::new().bytes(1, name).bytes(4, "a").bytes(5, "b").bytes(7, inner).bytes(10, "own")
    };
    let call = node("f", &["x"], &["y"]).bytes(7, "own");
    let mut bytes = model(20, &graph(&[call], Message::new()));
    bytes.extend(Message::new().bytes(25, function("f", "g")).bytes(25, function("g", "f")).0);
    says(&refusal(bytes), &["functions call each other", "32 deep"]);
}

#[test]
fn other_files_are_refused() {
    says(&refusal(vec![0x08, 0x09]), &["the graph of the model cannot be read", "it is missing"]);
    says(&refusal(b"hello".to_vec()), &["no zip archive"]);
}
