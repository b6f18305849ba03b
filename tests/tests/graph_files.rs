//! Graphs as files: loading preserves them, reports changed operators, and rejects hostile files.

use std::path::PathBuf;

use opsmith::{DType, Generator, Result, Tensor, TensorOps};
use opsmith_graph::{Graph, InputSpec, Passes};
use opsmith_testing::{Report, checks};

/// A folder of this test alone, which is gone afterwards.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("opsmith-graph-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Folder(path)
    }

    fn structure(&self) -> String {
        std::fs::read_to_string(self.0.join("graph.json")).unwrap()
    }

    fn change(&self, text: &str) {
        std::fs::write(self.0.join("graph.json"), text).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn batch() -> InputSpec {
    InputSpec::new(DType::F32, ["batch".into(), 4.into()]).named("x")
}

fn model(x: &[Tensor]) -> Result<(Tensor, Tensor)> {
    let scale = Tensor::of(&[1.0f32, 0.25, f32::INFINITY, 4.0]);
    let wide = x[0].exp()?.mul(&scale)?.transpose(0, 1)?;
    Ok((wide.sin()?.reshape([-1])?, x[0].sum_dim(Some(&[1]))?))
}

fn bits(tensor: &Tensor) -> Vec<u32> {
    tensor.to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect()
}

fn saved(name: &str) -> Folder {
    let folder = Folder::new(name);
    Graph::trace(model, [batch()]).unwrap().save(&folder.0).unwrap();
    folder
}

#[test]
fn a_saved_graph_comes_back() {
    let folder = Folder::new("comes_back");
    let graph = Graph::trace(model, [batch()]).unwrap().optimize(&Passes::all());
    graph.save(&folder.0).unwrap();
    let loaded = Graph::load(&folder.0).unwrap();
    assert_eq!(loaded.describe(), graph.describe());
    assert!(loaded.to_dot().contains("graph_files.rs"), "places of calls stay");
    for rows in [1, 3, 8] {
        let x = opsmith::rand_generator([rows, 4], Some(&Generator::new(rows as u64))).unwrap();
        let (found, expected) = (loaded.run(&[&x]).unwrap(), graph.run(&[&x]).unwrap());
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!((found.shape(), bits(found)), (expected.shape(), bits(expected)));
        }
    }
}

#[test]
fn every_sample_can_be_saved_and_loaded() {
    let folder = Folder::new("samples");
    let mut report = Report::default();
    opsmith::LIBRARY.ops.iter().for_each(|op| report.add(checks::saved_graphs(op, &folder.0)));
    report.assert_right();
    assert!(report.compared > 500, "{} graphs were saved", report.compared);
}

#[test]
fn what_changed_of_operators_is_listed() {
    let folder = saved("changes");
    let mut document: serde_json::Value = serde_json::from_str(&folder.structure()).unwrap();
    let operators = document["operators"].as_object_mut().unwrap();
    let mut gone = operators["exp"].clone();
    gone["signature"] = "gone(Tensor self) -> Tensor".into();
    operators.insert("gone".to_owned(), gone);
    let exp = operators.get_mut("exp").unwrap();
    exp["args"].as_array_mut().unwrap().push(serde_json::json!({
        "name": "base", "type": "a float", "default": "1", "elements": null, "row_major": false,
    }));
    let sum = operators.get_mut("sum.dim_IntList").unwrap();
    sum["args"][2]["default"] = "true".into();
    sum["args"][1]["type"] = "an int".into();
    sum["args"].as_array_mut().unwrap().pop();
    folder.change(&document.to_string());
    let error = Graph::load(&folder.0).unwrap_err().to_string();
    for part in [
        "5 things about operators changed since the graph was saved",
        "`exp`: the argument `base` was removed",
        "`gone`: no library in this program has it any more",
        "`sum.dim_IntList`: the argument `dim` was an int, and is a list of ints or none",
        "`sum.dim_IntList`: the default of `keepdim` was true, and is false",
        "`sum.dim_IntList`: the argument `dtype` was added: a dtype or none, none by default",
    ] {
        assert!(error.contains(part), "{part}\nin {error}");
    }
}

#[test]
fn hostile_files_are_refused() {
    let folder = saved("hostile");
    let good = folder.structure();
    let document: serde_json::Value = serde_json::from_str(&good).unwrap();
    // Every number, text and list in the file in turn is replaced by others.
    let mut places = Vec::new();
    collect(&document, String::new(), &mut places);
    let (mut refused, mut harmless) = (0, 0);
    let x = opsmith::ones([3, 4]).unwrap();
    for place in &places {
        for value in [
            serde_json::json!(-1),
            serde_json::json!(1_000_000_000_000_i64),
            serde_json::json!(i64::MAX),
            serde_json::json!(3),
            serde_json::json!("float64"),
            serde_json::json!([]),
            serde_json::json!(null),
        ] {
            let mut changed = document.clone();
            *changed.pointer_mut(place).unwrap() = value;
            folder.change(&changed.to_string());
            // Neither a panic nor memory that is not there.
            match Graph::load(&folder.0).and_then(|graph| graph.run(&[&x])) {
                Ok(_) => harmless += 1,
                Err(error) => {
                    assert!(!error.message().is_empty());
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 4 * harmless && refused > 1000, "{refused} refused, {harmless} harmless");
    for text in
        ["", "{", "[]", "null", &"[".repeat(100_000), "{\"format\": \"opsmith graph\", \"version\": 9}"]
    {
        folder.change(text);
        assert!(Graph::load(&folder.0).is_err());
    }
    folder.change(&good);
    let constants = folder.0.join("constants.safetensors");
    let bytes = std::fs::read(&constants).unwrap();
    for length in [0, 4, 8, 20, bytes.len() - 1] {
        std::fs::write(&constants, &bytes[..length]).unwrap();
        assert!(Graph::load(&folder.0).is_err());
    }
    std::fs::remove_file(&constants).unwrap();
    assert!(Graph::load(&folder.0).unwrap_err().to_string().contains("constants.safetensors"));
}

/// The places of everything that holds nothing else.
fn collect(value: &serde_json::Value, at: String, places: &mut Vec<String>) {
    match value {
        serde_json::Value::Array(list) => {
            list.iter()
                .enumerate()
                .for_each(|(number, value)| collect(value, format!("{at}/{number}"), places));
        }
        serde_json::Value::Object(map) => {
            for (key, value) in map {
                collect(value, format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), places);
            }
        }
        _ => places.push(at),
    }
}

#[test]
fn what_cannot_be_saved_is_refused() {
    let generator = Generator::new(1);
    let graph =
        Graph::trace(|x: &[Tensor]| x[0].add(&opsmith::rand_generator([4], Some(&generator))?), [batch()])
            .unwrap();
    let error = graph.save(Folder::new("generator").0.clone()).unwrap_err().to_string();
    assert!(error.contains("a random generator other than the default one cannot be saved"), "{error}");
}
