//! Features of exported programs beyond the recorded ones: written buffers, in-place calls, loops, arithmetic and
//! checks of sizes, operators of other libraries. The graphs are written here, over the weights of `cond`.

mod programs_support;

use opsmith::{Tensor, TensorOps};
use opsmith_programs::Program;
use programs_support::{bytes, changed};
use serde_json::{Value, json};

/// A program with an input `x` of the shape `(s77, 4)`, a weight `p_l_weight` of (4, 4) and a bias `p_l_bias` of (4).
fn program(nodes: Value, outputs: &[&str], change: impl Fn(&mut Value)) -> Program {
    let archive = changed(&bytes("cond.pt2"), |name, bytes| {
        if !name.ends_with("models/model.json") {
            return Some(bytes);
        }
        let mut document: Value = serde_json::from_slice(&bytes).unwrap();
        let module = &mut document["graph_module"];
        let tensors: Vec<Value> = outputs.iter().map(|name| tensor(name)).collect();
        module["graph"]["nodes"] = nodes.clone();
        module["signature"]["output_specs"] =
            tensors.iter().map(|output| json!({"user_output": {"arg": output}})).collect();
        module["graph"]["outputs"] = tensors.into();
        change(module);
        Some(serde_json::to_vec(&document).unwrap())
    });
    Program::from_bytes(archive).unwrap()
}

fn tensor(name: &str) -> Value {
    json!({"as_tensor": {"name": name}})
}

fn size(name: &str) -> Value {
    json!({"as_sym_int": {"as_name": name}})
}

/// A node with arguments by position.
fn node(target: &str, args: &[Value], output: Value) -> Value {
    let inputs: Vec<Value> = args.iter().map(|arg| json!({"name": "", "arg": arg, "kind": 1})).collect();
    json!({"target": target, "inputs": inputs, "outputs": [output], "metadata": {}})
}

fn graph(inputs: &[Value], nodes: &[Value], outputs: &[Value]) -> Value {
    let graph = json!({"inputs": inputs, "nodes": nodes, "outputs": outputs, "tensor_values": {}});
    json!({"as_graph": {"name": "graph", "graph": graph}})
}

fn numbers(rows: i64) -> Tensor {
    let elements: Vec<f32> = (0..rows * 4).map(|at| at as f32 + 1.0).collect();
    Tensor::from_slice(&elements, &[rows, 4]).unwrap()
}

fn run(program: &Program, x: &Tensor) -> Vec<f32> {
    program.run(&[x]).unwrap()[0].to_vec().unwrap()
}

#[test]
fn buffers_that_a_program_writes_keep_their_values() {
    let nodes = json!([
        node("torch.ops.aten.add.Tensor", &[tensor("p_l_bias"), json!({"as_int": 1})], tensor("next")),
        node("torch.ops.aten.add.Tensor", &[tensor("x"), tensor("p_l_bias")], tensor("out")),
    ]);
    let program = program(nodes, &["next", "out"], |module| {
        let signature = &mut module["signature"];
        signature["input_specs"][1] =
            json!({"buffer": {"arg": {"name": "p_l_bias"}, "buffer_name": "l.bias", "persistent": true}});
        signature["output_specs"][0] =
            json!({"buffer_mutation": {"arg": {"name": "next"}, "buffer_name": "l.bias"}});
    });
    let bias: Vec<f32> = program.weights().find(|(name, _)| *name == "l.bias").unwrap().1.to_vec().unwrap();
    let x = opsmith::zeros([1, 4]).unwrap();
    for turn in 0..3 {
        let expected: Vec<f32> = bias.iter().map(|bias| bias + turn as f32).collect();
        let found = run(&program, &x);
        assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-6), "{found:?}, {expected:?}");
    }
}

#[test]
fn inputs_that_a_program_writes_are_the_callers() {
    let nodes = json!([
        node("torch.ops.aten.mul.Tensor", &[tensor("x"), json!({"as_float": 2.0})], tensor("twice")),
        node("torch.ops.aten.sum.default", &[tensor("x")], tensor("out")),
    ]);
    let program = program(nodes, &["twice", "out"], |module| {
        module["signature"]["output_specs"][0] =
            json!({"user_input_mutation": {"arg": {"name": "twice"}, "user_input_name": "x"}});
    });
    let x = numbers(2);
    assert_eq!(run(&program, &x), [36.0]);
    assert_eq!(x.to_vec::<f32>().unwrap()[7], 16.0);
    assert_eq!(run(&program, &x), [72.0]);
}

#[test]
fn in_place_calls_write() {
    let nodes = json!([
        node("torch.ops.aten.neg.default", &[tensor("x")], tensor("copy")),
        node(
            "torch.ops.aten.select.int",
            &[tensor("copy"), json!({"as_int": 0}), json!({"as_int": 0})],
            tensor("row")
        ),
        node("torch.ops.aten.relu_.default", &[tensor("row")], tensor("relu")),
    ]);
    let program = program(nodes, &["copy"], |_| {});
    for rows in [1, 2, 3] {
        let found = run(&program, &numbers(rows));
        assert_eq!(found[..4], [0.0; 4]);
        assert!(found[4..].iter().all(|value| *value <= -5.0), "{found:?}");
    }
}

#[test]
fn arithmetic_with_sizes_is_pythons() {
    let nodes = json!([
        node("torch.ops.aten.sym_size.int", &[tensor("x"), json!({"as_int": 0})], size("n")),
        node("_operator.floordiv", &[size("n"), json!({"as_int": 2})], size("half")),
        node("torch.sym_max", &[size("half"), json!({"as_int": 1})], size("count")),
        node(
            "torch.ops.aten.slice.Tensor",
            &[tensor("x"), json!({"as_int": 0}), json!({"as_int": 0}), size("count")],
            tensor("out")
        ),
    ]);
    let program = program(nodes, &["out"], |_| {});
    for rows in [1, 2, 3, 8, 15] {
        assert_eq!(run(&program, &numbers(rows)).len() as i64, 4 * (rows / 2).max(1), "{rows}");
    }
}

#[test]
fn checks_of_sizes_hold_at_every_run() {
    let nodes = json!([
        node("torch.ops.aten.sym_size.int", &[tensor("x"), json!({"as_int": 0})], size("n")),
        node(
            "_operator.ne",
            &[size("n"), json!({"as_int": 21})],
            json!({"as_sym_bool": {"as_name": "other"}})
        ),
        node(
            "torch.ops.aten._assert_scalar.default",
            &[json!({"as_sym_bool": {"as_name": "other"}}), json!({"as_string": "n is not 21"})],
            json!({"as_none": true})
        ),
        node("torch.ops.aten.neg.default", &[tensor("x")], tensor("out")),
    ]);
    let program = program(nodes, &["out"], |_| {});
    for rows in [20, 22, 20] {
        assert_eq!(run(&program, &numbers(rows))[0], -1.0);
    }
    let error = program.run(&[numbers(21)]).unwrap_err().to_string();
    assert!(error.contains("a check of the program does not hold: n is not 21"), "{error}");
}

#[test]
fn loops_run_while_their_condition_holds() {
    let given = [tensor("a"), tensor("b")];
    let condition = graph(
        &given,
        &[
            node("torch.ops.aten.sum.default", &[tensor("a")], tensor("sum")),
            node("torch.ops.aten.lt.Scalar", &[tensor("sum"), json!({"as_float": 100.0})], tensor("less")),
        ],
        &[tensor("less")],
    );
    let body = graph(
        &given,
        &[node("torch.ops.aten.add.Tensor", &[tensor("a"), tensor("b")], tensor("next"))],
        &[tensor("next")],
    );
    let list = |name: &str| json!({"as_tensors": [{"name": name}]});
    let nodes = json!([
        node("torch.ops.aten.abs.default", &[tensor("x")], tensor("size")),
        node("torch.ops.higher_order.while_loop", &[condition, body, list("size"), list("x")], tensor("out")),
    ]);
    let program = program(nodes, &["out"], |_| {});
    // 36, 72, 108.
    assert_eq!(run(&program, &numbers(2))[7], 24.0);
    assert_eq!(run(&program, &numbers(5))[19], 20.0);
}

#[test]
fn operators_of_other_libraries_are_found_by_their_crates() {
    let of = |target: &str| {
        let nodes = json!([node(target, &[tensor("x")], tensor("out"))]);
        program(nodes, &["out"], |_| {})
    };
    assert_eq!(run(&of("torch.ops.opsmith.neg.default"), &numbers(1))[0], -1.0);
    let error = of("torch.ops.their_library.neg.default").check().unwrap_err().to_string();
    assert!(error.contains("the operator `torch.ops.their_library.neg.default`"), "{error}");
    let error = of("my_module.function").check().unwrap_err().to_string();
    assert!(error.contains("there is no operator `my_module.function`"), "{error}");
}

#[test]
fn a_view_of_elements_out_of_order_is_a_copy() {
    let nodes = json!([
        node("torch.ops.aten.t.default", &[tensor("x")], tensor("turned")),
        node("torch.ops.aten.view.default", &[tensor("turned"), json!({"as_ints": [-1]})], tensor("out")),
    ]);
    let x = numbers(2);
    let expected = x.t().unwrap().reshape([8]).unwrap().to_vec::<f32>().unwrap();
    assert_eq!(run(&program(nodes, &["out"], |_| {}), &x), expected);
}
