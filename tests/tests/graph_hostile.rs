//! Saved graphs that were changed on purpose: the violations that each rule of loading rejects, and the valid changes.
//!
//! `graph_fuzz.rs` searches for more of them; its findings become tests here.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use opsmith::{DType, Result, Tensor, TensorOps};
use opsmith_graph::{Graph, InputSpec, IntoTensors, Pass, Passes};
use serde_json::{Value, json};

/// A graph in a folder of its own, which is gone afterwards.
struct Saved {
    folder: PathBuf,
    document: Value,
}

impl Saved {
    fn of(name: &str, graph: &Graph) -> Saved {
        let folder = std::env::temp_dir().join(format!("opsmith-hostile-{name}-{}", std::process::id()));
        graph.save(&folder).unwrap();
        let text = std::fs::read_to_string(folder.join("graph.json")).unwrap();
        Saved { folder, document: serde_json::from_str(&text).unwrap() }
    }

    fn load(&self, document: &Value) -> Result<Graph> {
        std::fs::write(self.folder.join("graph.json"), document.to_string()).unwrap();
        Graph::load(&self.folder)
    }

    /// The graph after a change of it.
    fn changed(&self, change: impl FnOnce(&mut Value)) -> Result<Graph> {
        let mut document = self.document.clone();
        change(&mut document["graph"]);
        self.load(&document)
    }

    #[track_caller]
    fn refused(&self, part: &str, change: impl FnOnce(&mut Value)) {
        let error = self.changed(change).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(part), "{part} in {error}");
    }
}

impl Drop for Saved {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn numbers(shape: &[i64]) -> Tensor {
    let numel: i64 = shape.iter().product();
    let values: Vec<f32> = (0..numel).map(|at| ((at * 37 + 11) % 23) as f32 / 11.0 - 1.0).collect();
    Tensor::from_slice(&values, shape).unwrap()
}

fn values(tensor: &Tensor) -> Vec<f32> {
    tensor.to_vec().unwrap()
}

fn trace<R: IntoTensors>(function: impl Fn(&[Tensor]) -> Result<R>, rows: &str) -> Graph {
    let rows = rows.parse().map_or_else(|_| rows.into(), |rows: i64| rows.into());
    Graph::trace(function, [InputSpec::new(DType::F32, [rows, 4.into()])]).unwrap()
}

fn wide(x: &[Tensor]) -> Result<Vec<Tensor>> {
    let turned = (&x[0] * 2.0)?.transpose(0, 1)?;
    Ok(vec![turned.narrow(0, 1, 2)?.exp()?, turned.reshape([-1])?, x[0].sum_dim(Some(&[1]))?])
}

/// Every number below a value, by its place.
fn places(value: &Value, at: &str) -> Vec<String> {
    match value {
        Value::Array(list) => {
            list.iter().enumerate().flat_map(|(key, value)| places(value, &format!("{at}/{key}"))).collect()
        }
        Value::Object(map) => {
            map.iter().flat_map(|(key, value)| places(value, &format!("{at}/{key}"))).collect()
        }
        Value::Number(_) => vec![at.to_owned()],
        _ => Vec::new(),
    }
}

/// Without symbols, with symbols, and in a variant: for any layout in the file, a run stays inside its memory.
#[test]
fn no_number_of_a_layout_leads_outside() {
    for (rows, input) in [("3", [3, 4]), ("n", [5, 4]), ("n", [1, 4])] {
        let saved = Saved::of(&format!("layouts-{rows}-{}", input[0]), &trace(wide, rows));
        let right: Vec<Vec<f32>> = wide(&[numbers(&input)]).unwrap().iter().map(values).collect();
        let of_layouts = |place: &String| place.contains("/tensors/") && !place.ends_with("/buffer");
        for place in places(&saved.document["graph"], "").into_iter().filter(of_layouts) {
            for number in [0, 2, 1000, 1 << 20, 1 << 40, i64::MAX, -1, i64::MIN] {
                let changed = saved.changed(|graph| *graph.pointer_mut(&place).unwrap() = number.into());
                let Ok(found) = changed.and_then(|graph| graph.run(&[numbers(&input)])) else { continue };
                // A layout that is right at these sizes, or of a tensor that no output shows.
                let found: Vec<Vec<f32>> = found.iter().map(values).collect();
                assert!(found == right, "{place} = {number}: {found:?} in place of {right:?}");
            }
        }
    }
}

#[test]
fn symbols_have_bounds_that_sizes_can_have() {
    let saved = Saved::of("symbols", &trace(wide, "n"));
    let start = Instant::now();
    for (key, number) in [
        ("least", json!(-1)),
        ("least", json!(i64::MAX)),
        ("most", json!(0)),
        ("most", json!(i64::MIN)),
        ("example", json!(-6)),
        ("multiple_of", json!(0)),
        ("multiple_of", json!(-3)),
        ("multiple_of", json!(i64::MAX)),
    ] {
        saved.refused("`n` is a size from", |graph| graph["symbols"][0][key] = number.clone());
    }
    saved.refused("symbols, at most", |graph| {
        let many = vec![graph["symbols"][0].clone(); 5000];
        graph["symbols"] = many.into();
    });
    // Two symbols of one name are two symbols.
    let twice = saved.changed(|graph| {
        let list = graph["symbols"].as_array_mut().unwrap();
        list.push(list[0].clone());
    });
    let twice = twice.unwrap();
    assert!(twice.check().is_ok() && !twice.describe().is_empty() && !twice.to_html().is_empty());
    assert!(start.elapsed() < Duration::from_secs(60), "it took {:?}", start.elapsed());
}

#[test]
fn values_of_symbols_are_only_numbers() {
    let graph = trace(wide, "n");
    let saved = Saved::of("values", &graph);
    let loaded = saved.load(&saved.document).unwrap();
    for graph in [&graph, &loaded] {
        for value in [i64::MAX, i64::MAX / 2, 1 << 60, i64::MIN, -1] {
            let at = [("n", value)];
            let refused = graph.describe_at(&at).is_err() && graph.memory_at(&at).is_err();
            assert!(refused && graph.check_at(&at).is_err(), "{value}");
        }
    }
    // All buffers together have more bytes than can be counted.
    let many = |x: &[Tensor]| Ok(vec![x[0].exp()?, x[0].sin()?, x[0].neg()?, x[0].relu()?]);
    let error = trace(many, "n").memory_at(&[("n", (1 << 57) - 1)]).unwrap_err().to_string();
    assert!(error.contains("more bytes than can be addressed"), "{error}");
}

fn in_place(x: &[Tensor]) -> Result<Vec<Tensor>> {
    let own = (&x[0] * 2.0)?;
    let turned = own.transpose(0, 1)?;
    own.narrow(1, 1, 2)?.add_(&x[0].narrow(1, 0, 2)?)?;
    Ok(vec![own, turned.exp()?])
}

#[test]
fn steps_do_not_write_over_what_they_read() {
    let saved = Saved::of("aliasing", &trace(in_place, "4"));
    let nodes = saved.document["graph"]["nodes"].as_array().unwrap();
    let exp = nodes.iter().position(|node| node["do"]["call"]["op"] == "exp").unwrap();
    let mul = nodes
        .iter()
        .position(|node| node["do"]["call"]["op"] == "mul.Tensor" || node["do"]["call"]["op"] == "mul.Scalar")
        .unwrap();
    // The result of `exp` over its own input, which is transposed.
    let out = nodes[mul]["outs"][0].clone();
    saved.refused("shares memory", |graph| {
        graph["nodes"][exp]["outs"][0] = out.clone();
    });
    saved.refused("which nothing wrote", |graph| {
        graph["nodes"].as_array_mut().unwrap().remove(mul);
    });
    saved.refused("nothing writes tensor", |graph| {
        graph["nodes"].as_array_mut().unwrap().remove(exp);
    });
}

fn scanned(x: &[Tensor]) -> Result<[Tensor; 2]> {
    let (state, sums) = opsmith_graph::scan(&[opsmith::zeros([4])?], &[x[0].clone()], |state, part| {
        let sum = (&state[0] + &part[0])?;
        Ok((vec![sum.clone()], vec![(&sum * 10.0)?]))
    })?;
    Ok([state[0].clone(), sums[0].clone()])
}

#[test]
fn loops_stay_inside_what_they_go_over() {
    let saved = Saved::of("scan", &trace(scanned, "n"));
    let at = saved.document["graph"]["nodes"].as_array().unwrap().len() - 1;
    let scan = |graph: &mut Value, change: &dyn Fn(&mut Value)| change(&mut graph["nodes"][at]["do"]["scan"]);
    for step in [5, 1000, -4, i64::MAX, i64::MIN] {
        saved.refused("", |graph| scan(graph, &|scan| scan["moving"][0][1] = step.into()));
    }
    for length in [json!(7), json!(1_i64 << 50), json!(i64::MAX), json!(-1), json!(i64::MIN), json!(null)] {
        saved.refused("", |graph| scan(graph, &|scan| scan["length"] = length.clone()));
    }
    let twice = |scan: &mut Value| {
        let moving = scan["moving"][0].clone();
        scan["moving"].as_array_mut().unwrap().push(moving);
    };
    saved.refused("two loops move one tensor", |graph| scan(graph, &twice));
    let moving = saved.document["graph"]["nodes"][at]["do"]["scan"]["moving"][0][0].clone();
    saved.refused("a tensor that a loop moves", |graph| {
        scan(graph, &|scan| {
            let body = scan["body"].as_array_mut().unwrap();
            let call = body.iter_mut().find(|node| node["do"]["call"].is_object()).unwrap();
            call["args"][0] = json!({"tensor": moving});
        });
    });
    saved.refused("another length than what it goes over", |graph| {
        graph["nodes"][at]["args"] = json!([{"tensor": graph["outputs"][0]}]);
    });
    // Positions that a loop leaves out contain zeros, not former contents of the memory.
    let sparse = saved.changed(|graph| scan(graph, &|scan| scan["moving"][1][1] = 1.into())).unwrap();
    for run in 0..3 {
        // Memory of the same size that is full of other numbers, and free again.
        drop((0..64).map(|_| opsmith::full([6, 4], 7.0 + f64::from(run)).unwrap()).collect::<Vec<_>>());
        let found = sparse.run(&[numbers(&[6, 4])]).unwrap();
        assert_eq!(values(&found[1])[9..], [0.0; 15], "{:?}", found[1]);
    }
}

#[test]
fn branches_that_write_less_leave_zeros() {
    let function = |x: &[Tensor]| {
        let positive = x[0].sum()?.gt(0.0)?;
        opsmith_graph::cond(&positive, || &x[0] * 2.0, || x[0].neg())
    };
    let saved = Saved::of("cond", &trace(function, "3"));
    let at = saved.document["graph"]["nodes"].as_array().unwrap().len() - 1;
    let less = saved.changed(|graph| graph["nodes"][at]["do"]["cond"]["otherwise"] = json!([]));
    let less = less.unwrap();
    let negative = (&numbers(&[3, 4]) - 5.0).unwrap();
    for _ in 0..3 {
        drop((0..64).map(|_| opsmith::full([3, 4], 7.0).unwrap()).collect::<Vec<_>>());
        assert_eq!(values(&less.run(&[&negative]).unwrap()[0]), [0.0; 12]);
    }
    assert_ne!(values(&less.run(&[(&numbers(&[3, 4]) + 5.0).unwrap()]).unwrap()[0]), [0.0; 12]);
}

#[test]
fn elements_are_of_the_kind_that_memory_holds() {
    let function = |x: &[Tensor]| {
        let bytes = opsmith::to_dtype(&x[0], DType::U8)?;
        Ok([opsmith::to_dtype(&bytes, DType::F32)?, opsmith::to_dtype(&bytes.transpose(0, 1)?, DType::F32)?])
    };
    let saved = Saved::of("kinds", &trace(function, "3"));
    let of_bytes = |info: &&mut Value| info["dtype"] == "uint8";
    saved.refused("elements of another kind", |graph| {
        let tensors = graph["tensors"].as_array_mut().unwrap();
        tensors.iter_mut().filter(of_bytes).last().unwrap()["dtype"] = "bool".into();
    });
}

#[test]
fn passes_take_any_graph_that_was_loaded() {
    let function = |x: &[Tensor]| {
        let table = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3])?;
        let part = table.transpose(0, 1)?.narrow(0, 0, 2)?.exp()?;
        Ok(vec![part, x[0].relu()?])
    };
    let saved = Saved::of("passes", &trace(function, "n"));
    for place in places(&saved.document["graph"], "") {
        for number in [0, 7, 1 << 40, i64::MAX, i64::MIN] {
            let changed = saved.changed(|graph| *graph.pointer_mut(&place).unwrap() = number.into());
            let Ok(graph) = changed else { continue };
            for pass in Pass::all() {
                let less = graph.optimize(&Passes::none().with(pass).frozen());
                let _ = (less.describe(), less.run(&[numbers(&[5, 4])]).is_ok());
            }
        }
    }
}

/// Sizes in a file of which tracing knew no formula are found again at every size, not those of the example.
#[test]
fn sizes_without_a_formula_are_found_again() {
    let function =
        |x: &[Tensor]| Ok(vec![x[0].narrow(0, 0, 2)?.exp()?, (&x[0] * 2.0)?.transpose(0, 1)?.relu()?]);
    let graph = trace(function, "n");
    let saved = Saved::of("unknown", &graph);
    let made: Vec<Value> = saved.document["graph"]["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|node| node["do"]["view"].is_object())
        .flat_map(|node| node["outs"].as_array().unwrap().clone())
        .collect();
    let open = saved.changed(|graph| {
        for tensor in &made {
            let info = &mut graph["tensors"][tensor.as_u64().unwrap() as usize];
            info["sizes"].as_array_mut().unwrap().iter_mut().for_each(|size| *size = json!(null));
            info["strides"].as_array_mut().unwrap().iter_mut().for_each(|stride| *stride = json!(null));
            info["offset"] = json!(null);
        }
    });
    let open = open.unwrap();
    for rows in [2, 5, 9] {
        let x = numbers(&[rows, 4]);
        let (found, right) = (open.run(&[&x]).unwrap(), function(std::slice::from_ref(&x)).unwrap());
        for (found, right) in found.iter().zip(&right) {
            assert_eq!((found.shape(), values(found)), (right.shape(), values(right)));
        }
    }
}
