//! Programs with other weights: safetensors files, several with an index, NumPy archives, tied names, and ones that do not fit.

mod programs_support;

use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};

use opsmith::{DType, Tensor, TensorOps};
use opsmith_programs::Program;
use programs_support::{LIBRARY, bytes, changed, compare};
use safetensors::tensor::TensorView;
use serde_json::Value;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

fn scratch(name: &str) -> PathBuf {
    assert!(!LIBRARY.ops.is_empty());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("programs-weights-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn program(name: &str) -> Program {
    Program::load(Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join(name)).unwrap()
}

/// Writes tensors as `float32`, or as `float16`.
fn save(path: &Path, tensors: &[(&str, Tensor)], half: bool) {
    let bytes: Vec<(&str, Vec<u8>, Vec<usize>)> = tensors
        .iter()
        .map(|(name, tensor)| {
            let tensor = tensor.to_dtype(if half { DType::F16 } else { DType::F32 }).unwrap();
            let bytes = match half {
                true => tensor
                    .to_vec::<opsmith_runtime::f16>()
                    .unwrap()
                    .iter()
                    .flat_map(|x| x.to_le_bytes())
                    .collect(),
                false => tensor.to_vec::<f32>().unwrap().iter().flat_map(|x| x.to_le_bytes()).collect(),
            };
            (*name, bytes, tensor.shape().iter().map(|size| *size as usize).collect())
        })
        .collect();
    let dtype = if half { safetensors::Dtype::F16 } else { safetensors::Dtype::F32 };
    let views = bytes
        .iter()
        .map(|(name, bytes, shape)| (*name, TensorView::new(dtype, shape.clone(), bytes).unwrap()));
    std::fs::write(path, safetensors::serialize(views, None).unwrap()).unwrap();
}

/// The parameters of the program times a number.
fn scaled(program: &Program, by: f64) -> Vec<(String, Tensor)> {
    let weights = program.weights().filter(|(_, tensor)| tensor.dtype() == DType::F32);
    weights.map(|(name, tensor)| (name.to_owned(), tensor.mul(by).unwrap())).collect()
}

#[test]
fn a_program_runs_with_the_weights_of_several_files() {
    let folder = scratch("several");
    for (name, half) in [("programs/mlp.pt2", false), ("programs/mlp.pt2", true), ("onnx/mlp.onnx", false)] {
        let mut program = program(name);
        let x = opsmith::linspace(-1.0, 1.0, 128)
            .unwrap()
            .reshape([2, 64])
            .unwrap()
            .to_dtype(DType::F32)
            .unwrap();
        let before = program.run(&[&x]).unwrap();
        let new = scaled(&program, 0.5);
        let named: Vec<(&str, Tensor)> =
            new.iter().map(|(name, tensor)| (name.as_str(), tensor.clone())).collect();
        let (first, second) = named.split_at(2);
        save(&folder.join("part-1.safetensors"), first, half);
        save(&folder.join("part-2.safetensors"), second, half);
        let map: serde_json::Map<String, serde_json::Value> = named
            .iter()
            .enumerate()
            .map(|(at, (name, _))| (name.to_string(), format!("part-{}.safetensors", 1 + at / 2).into()))
            .collect();
        let index = folder.join("model.safetensors.index.json");
        std::fs::write(&index, serde_json::json!({ "metadata": {}, "weight_map": map }).to_string()).unwrap();
        program.load_weights(&index).unwrap();
        let after = program.run(&[&x]).unwrap();
        // Without biases a factor of a half at two layers would be a quarter: the results are others, and those of `call`.
        assert_ne!(before[0].to_vec::<f32>().unwrap(), after[0].to_vec::<f32>().unwrap());
        compare(name, &after, &program.call(&[&x]).unwrap());
        if !half {
            let (names, tensors): (Vec<_>, Vec<_>) =
                program.weights().map(|(n, t)| (n.to_owned(), t.clone())).unzip();
            for ((name, expected), _) in new.iter().zip(&tensors) {
                let found = &tensors[names.iter().position(|known| known == name).unwrap()];
                compare(name, std::slice::from_ref(found), std::slice::from_ref(expected));
            }
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn weights_that_do_not_fit_are_all_reported_and_change_nothing() {
    let folder = scratch("misfit");
    let mut program = program("programs/mlp.pt2");
    let names: Vec<String> = program.weights().map(|(name, _)| name.to_owned()).collect();
    let wrong = Tensor::of(&[1.0f32, 2.0]);
    let path = folder.join("model.safetensors");
    save(&path, &[(names[0].as_str(), wrong.clone()), ("other", wrong)], false);
    let text = program.load_weights(&path).unwrap_err().to_string();
    for part in
        ["`other`", "the program has no weight", &names[0], "has the shape [2]", "the files have no weight"]
    {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    let kept: Vec<String> = program.weights().map(|(name, _)| name.to_owned()).collect();
    assert_eq!(kept, names);
    let whole = std::fs::read(&path).unwrap();
    for length in 0..whole.len() {
        std::fs::write(&path, &whole[..length]).unwrap();
        assert!(!program.load_weights(&path).unwrap_err().to_string().is_empty());
    }
    let index = folder.join("outside.json");
    std::fs::write(&index, r#"{"weight_map": {"a": "../model.safetensors"}}"#).unwrap();
    let text = program.load_weights(&index).unwrap_err().to_string();
    assert!(text.contains("not beside it"), "{text}");
    std::fs::remove_dir_all(folder).unwrap();
}

/// The bytes of a NumPy archive of tensors.
fn npz(tensors: &[(String, Tensor)], method: CompressionMethod) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, tensor) in tensors {
        let mut array = Vec::new();
        tensor.write_npy(&mut array).unwrap();
        let options = SimpleFileOptions::default().compression_method(method);
        writer.start_file(format!("{name}.npy"), options).unwrap();
        writer.write_all(&array).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// Gives a program the weights of a NumPy archive; the text of its mistakes, if there are any.
fn load(program: &mut Program, folder: &Path, tensors: &[(String, Tensor)]) -> Result<(), String> {
    let path = folder.join("weights.npz");
    std::fs::write(&path, npz(tensors, CompressionMethod::Stored)).unwrap();
    program.load_weights(path).map_err(|errors| errors.to_string())
}

/// The weights of a program, those of floats times a number.
fn all_scaled(program: &Program, by: f64) -> Vec<(String, Tensor)> {
    let scale = |tensor: &Tensor| match tensor.dtype().is_float() {
        true => tensor.mul(by).unwrap(),
        false => tensor.clone(),
    };
    program.weights().map(|(name, tensor)| (name.to_owned(), scale(tensor))).collect()
}

/// The weights but one.
fn without(tensors: &[(String, Tensor)], name: &str) -> Vec<(String, Tensor)> {
    let others: Vec<_> = tensors.iter().filter(|(known, _)| known != name).cloned().collect();
    assert_eq!(others.len() + 1, tensors.len(), "{name}");
    others
}

fn weight(program: &Program, name: &str) -> Tensor {
    program.weights().find(|(known, _)| *known == name).unwrap().1.clone()
}

#[track_caller]
fn assert_has(result: Result<(), String>, parts: &[&str]) {
    let text = result.unwrap_err();
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

#[test]
fn numpy_archives_are_weights() {
    let folder = scratch("arrays");
    let path = folder.join("weights");
    for name in ["programs/convnet.pt2", "onnx/convnet.onnx"] {
        for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
            let mut program = program(name);
            let mut new = all_scaled(&program, 0.5);
            let expected = new.clone();
            // Another dtype, which is converted.
            let wide = new.iter_mut().find(|(_, tensor)| tensor.dtype() == DType::F32).unwrap();
            wide.1 = wide.1.to_dtype(DType::F64).unwrap();
            // The content tells the format.
            std::fs::write(&path, npz(&new, method)).unwrap();
            program.load_weights(&path).unwrap();
            for (name, expected) in &expected {
                compare(name, &[weight(&program, name)], std::slice::from_ref(expected));
            }
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn numpy_archives_that_do_not_fit_are_reported() {
    let folder = scratch("arrays-misfit");
    let mut program = program("programs/mlp.pt2");
    let new = all_scaled(&program, 0.5);
    let with = |tensor: Tensor| {
        let mut others = without(&new, "a.bias");
        others.push(("a.bias".to_owned(), tensor));
        others
    };
    let small = Tensor::of(&[1.0f32, 2.0]);
    assert_has(load(&mut program, &folder, &with(small)), &["`a.bias`", "has the shape [2]"]);
    let large = opsmith::zeros([262_144]).unwrap();
    assert_has(
        load(&mut program, &folder, &with(large)),
        &["`a.bias`", "bytes", "the program's has the shape"],
    );
    let complex = weight(&program, "a.bias").to_dtype(DType::C64).unwrap();
    assert_has(load(&mut program, &folder, &with(complex)), &["`a.bias`", "complex64", "float32"]);
    let mut more = new.clone();
    more.push(("other".to_owned(), Tensor::of(&[1.0f32])));
    assert_has(load(&mut program, &folder, &more), &["the program has no weight `other`"]);
    assert_has(load(&mut program, &folder, &without(&new, "a.bias")), &["the files have no weight `a.bias`"]);

    let path = folder.join("weights.npz");
    let whole = npz(&new, CompressionMethod::Stored);
    for length in (0..whole.len()).step_by(97) {
        std::fs::write(&path, &whole[..length]).unwrap();
        let text = program.load_weights(&path).unwrap_err().to_string();
        assert!(text.contains("it is no NumPy archive"), "{text}");
    }
    // A changed element, which the check sum shows.
    let element = new[0].1.to_vec::<f32>().unwrap()[0].to_le_bytes();
    let at = whole.windows(4).position(|bytes| bytes == element.as_slice()).unwrap();
    let mut damaged = whole.clone();
    damaged[at] ^= 1;
    std::fs::write(&path, damaged).unwrap();
    let text = program.load_weights(&path).unwrap_err().to_string();
    assert!(text.contains(&format!("the weight `{}` cannot be read", new[0].0)), "{text}");
    // An archive of other things, such as one of `torch.save`.
    std::fs::write(&path, bytes("mlp.pt2")).unwrap();
    let text = program.load_weights(&path).unwrap_err().to_string();
    assert!(text.contains("is no array") && text.contains("`numpy.savez`"), "{text}");

    std::fs::write(&path, whole).unwrap();
    program.load_weights(&path).unwrap();
    std::fs::remove_dir_all(folder).unwrap();
}

/// A program with a changed table of weights, or a changed graph.
fn changed_json(name: &str, suffix: &str, mut change: impl FnMut(&mut Value)) -> Program {
    let archive = changed(&bytes(name), |member, bytes| {
        if !member.ends_with(suffix) {
            return Some(bytes);
        }
        let mut json: Value = serde_json::from_slice(&bytes).unwrap();
        change(&mut json);
        Some(serde_json::to_vec(&json).unwrap())
    });
    Program::from_bytes(archive).unwrap()
}

#[test]
fn one_name_of_tied_weights_is_enough() {
    let folder = scratch("tied");
    let (first, second) = ("l.bias_ih_l0", "l.bias_hh_l0");
    let mut program = changed_json("lstm.pt2", "_weights_config.json", |table| {
        table["config"][second] = table["config"][first].clone();
    });
    assert!(weight(&program, first).same(&weight(&program, second)));
    let new = all_scaled(&program, 0.5);
    let expected = weight(&program, first).mul(0.5).unwrap();
    for given in [without(&new, first), without(&new, second), new.clone()] {
        load(&mut program, &folder, &given).unwrap();
        assert!(weight(&program, first).same(&weight(&program, second)));
        compare(first, &[weight(&program, first)], std::slice::from_ref(&expected));
    }
    let none = without(&without(&new, first), second);
    let names = "`l.bias_ih_l0` or `l.bias_hh_l0`";
    assert_has(
        load(&mut program, &folder, &none),
        &["the files have no weight", names, "one of them is enough"],
    );
    let mut different = without(&new, second);
    different.push((second.to_owned(), expected.mul(2.0).unwrap()));
    assert_has(
        load(&mut program, &folder, &different),
        &[first, second, "differ, and the program has one tensor"],
    );
    std::fs::remove_dir_all(folder).unwrap();
}

/// The exporter has chosen `tied.weight`, and the archive has `first.weight`, too.
#[test]
fn names_that_an_exporter_left_out_are_names_of_their_tensors() {
    let folder = scratch("aliases");
    let mut program = program("programs/old.pt2");
    let new = without(&all_scaled(&program, 0.5), "offset");
    let renamed: Vec<_> = new.iter().map(|(name, x)| (name.replace("tied.", "first."), x.clone())).collect();
    let mut both = renamed.clone();
    both.extend(new.iter().filter(|(name, _)| name.starts_with("tied.")).cloned());
    assert_eq!(both.len(), renamed.len() + 2);
    let expected = weight(&program, "tied.weight").mul(0.5).unwrap();
    for given in [&renamed, &both, &new] {
        load(&mut program, &folder, given).unwrap();
        compare("tied.weight", &[weight(&program, "tied.weight")], std::slice::from_ref(&expected));
    }
    both.retain(|(name, _)| name != "first.weight");
    both.push(("first.weight".to_owned(), expected.mul(2.0).unwrap()));
    assert_has(load(&mut program, &folder, &both), &["`tied.weight`", "`first.weight`", "differ"]);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn persistent_buffers_must_be_in_the_files() {
    let folder = scratch("buffers");
    let mut whole = program("programs/convnet.pt2");
    let new = all_scaled(&whole, 0.5);
    for name in ["bn.running_mean", "bn.num_batches_tracked"] {
        let given = without(&new, name);
        let missing = format!("the files have no buffer `{name}`");
        assert_has(load(&mut whole, &folder, &given), &[missing.as_str(), "state_dict"]);
        let mut program = changed_json("convnet.pt2", "models/model.json", |json| {
            let specs = json["graph_module"]["signature"]["input_specs"].as_array_mut().unwrap();
            let buffers = specs.iter_mut().filter_map(|spec| spec.get_mut("buffer"));
            for buffer in buffers.filter(|buffer| buffer["buffer_name"] == name) {
                buffer["persistent"] = false.into();
            }
        });
        let kept = weight(&program, name);
        load(&mut program, &folder, &given).unwrap();
        assert!(weight(&program, name).same(&kept));
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn progress_is_reported_after_each_weight() {
    let folder = scratch("progress");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/programs/mlp.pt2");
    let mut calls = Vec::new();
    let mut program = Program::load_with(path, None, &mut |done, of| calls.push((done, of))).unwrap();
    let expected = [(1, 4), (2, 4), (3, 4), (4, 4)];
    assert_eq!(calls, expected);
    let path = folder.join("weights.npz");
    std::fs::write(&path, npz(&all_scaled(&program, 0.5), CompressionMethod::Stored)).unwrap();
    calls.clear();
    program.load_weights_with(&path, &mut |done, of| calls.push((done, of))).unwrap();
    assert_eq!(calls, expected);
    std::fs::remove_dir_all(folder).unwrap();
}
