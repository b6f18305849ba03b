//! Correct kernels for a device: the numbers of issue and documents, in every form of call.

use opsmith::{DType, Result, Tensor, TensorOps, Value, autograd};
use opsmith_aot::{AttrType, AttrValue, Declaration};
use opsmith_graph::{Graph, InputSpec};
use opsmith_runtime::Backend;

use super::{floats, kernel, on_device, simple};

/// Shapes of every kind, eager and by name.
pub fn calls() -> Result<()> {
    let add = on_device("Add", &["x", "y"], &["sum"]).listed().declare()?;
    for shape in [vec![], vec![3], vec![0, 5], vec![4, 5], vec![1000, 100], vec![2, 3]] {
        let count = shape.iter().product::<i64>() as usize;
        let element = |scale: f32| (0..count).map(|index| index as f32 * scale).collect::<Vec<f32>>();
        let x = Tensor::from_slice(&element(1.0), &shape)?;
        let y = Tensor::from_slice(&element(10.0), &shape)?;
        let sum = add.call(&[&x, &y])?;
        assert_eq!((sum.shape(), floats(&sum)), (shape.as_slice(), element(11.0)));
        assert_eq!(floats(&x), element(1.0), "the input is as it was");
    }
    // By name, with an input that is no block of memory: rows of a transposed matrix.
    let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[2, 2])?;
    let sums = opsmith::call("device_Add", &[Value::from(&x.t()?), Value::from(&x)], &[])?;
    let [Value::Tensor(sum)] = sums.as_slice() else { panic!("{sums:?}") };
    assert_eq!(floats(sum), [2.0, 5.0, 5.0, 8.0]);
    // Converted as for every kernel, by the documented casts.
    let whole = Tensor::from_slice(&[0.5f64, 1.5], &[2])?;
    assert_eq!(floats(&add.call(&[&whole, &whole])?), [1.0, 3.0]);
    let three = on_device("AddMulDiv", &["x", "y"], &["sum", "product", "quotient"]).declare()?;
    let (x, y) = (Tensor::of(&[1.0f32, 4.0, 9.0]), Tensor::of(&[1.0f32, 2.0, 3.0]));
    let outs: Vec<Vec<f32>> = three.call_several(&[&x, &y])?.iter().map(floats).collect();
    assert_eq!(outs, [[2.0, 6.0, 12.0], [1.0, 8.0, 27.0], [1.0, 2.0, 3.0]]);
    // One that forgets its stream runs between the same copies.
    assert_eq!(floats(&simple("IgnoresStream").declare()?.call(&[&x])?), [1.0, 4.0, 9.0]);
    add.unload();
    Ok(())
}

/// The numbers of the documents, by a function and by other kernels.
pub fn gradients() -> Result<()> {
    let by_function = simple("Square").bprop(|call| {
        let two = Tensor::scalar(2.0, DType::F32);
        Ok(vec![Some(call.input(0)?.mul(&two)?.mul(&call.grad_or_zeros(0)?)?)])
    });
    let bprop = on_device("SquareBprop", &["x", "out", "dout"], &["dx"]).declare()?;
    for square in [by_function.declare()?, simple("Square").bprop_operator(&bprop).declare()?] {
        let x = Tensor::of(&[1.0f32, 4.0, 9.0]).requires_grad_(true)?;
        square.call(&[&square.call(&[&x])?])?.sum()?.backward()?;
        assert_eq!(floats(&x.grad().unwrap()), [4.0, 256.0, 2916.0]);
    }
    let bprop = on_device("AddMulDivBprop", &["x", "y", "dsum", "dproduct", "dquotient"], &["dx", "dy"]);
    let bprop = bprop.declare()?;
    let three = on_device("AddMulDiv", &["x", "y"], &["sum", "product", "quotient"]);
    let three = three.bprop_operator(&bprop).declare()?;
    let x = Tensor::of(&[1.0f32, 4.0, 9.0]).requires_grad_(true)?;
    let y = Tensor::of(&[1.0f32, 1.0, 1.0]).requires_grad_(true)?;
    let outs = three.call_several(&[&x, &y])?;
    outs[0].add(&outs[1])?.mul(&outs[2])?.sum()?.backward()?;
    assert_eq!(floats(&x.grad().unwrap()), [5.0, 17.0, 37.0]);
    assert_eq!(floats(&y.grad().unwrap()), [-1.0, -16.0, -81.0]);
    let x = Tensor::of(&[2.0f32]).requires_grad_(true)?;
    let error = simple("Square").declare()?.call(&[&x])?.backward().unwrap_err().to_string();
    assert!(error.contains("device_Square"), "{error}");
    Ok(())
}

/// The documented example: a workspace, attributes, shapes by the library.
fn reduce(name: &str) -> Result<opsmith_aot::Operator> {
    Declaration::new(name, kernel("Reduce"))
        .input("x")
        .input("y")
        .output("sums")
        .attribute_at_call("axis", AttrType::Int)
        .attribute_with_default("keep_dim", false)
        .dtypes([DType::F32; 3])
        .target(Backend::Cuda)
        .declare()
}

/// Which way to reduce, the result and its shape.
type Reduced = ((i64, bool), Vec<f64>, Vec<i64>);

/// Two matrices of four rows, and the results of all ways to reduce their sum.
fn case(columns: usize) -> Result<([Tensor; 2], Vec<Reduced>)> {
    let row = |seed: usize| (0..columns).map(move |index| ((index % 997) * seed % 1000) as f32 / 500.0);
    let xs: Vec<f32> = (0..4).flat_map(|index| row(7919 + index)).collect();
    let ys: Vec<f32> = (0..4).flat_map(|index| row(104_729 + 3 * index)).collect();
    let sums: Vec<f64> = xs.iter().zip(&ys).map(|(x, y)| f64::from(x + y)).collect();
    let by_row: Vec<f64> = sums.chunks(columns).map(|row| row.iter().sum()).collect();
    let by_column: Vec<f64> =
        (0..columns).map(|column| sums[column..].iter().step_by(columns).sum()).collect();
    let shape = [4, columns as i64];
    let mut ways = Vec::new();
    for keep in [false, true] {
        let column_shape = if keep { vec![1, shape[1]] } else { vec![shape[1]] };
        ways.push(((0, keep), by_column.clone(), column_shape));
        ways.push(((1, keep), by_row.clone(), if keep { vec![4, 1] } else { vec![4] }));
    }
    Ok(([Tensor::from_slice(&xs, &shape)?, Tensor::from_slice(&ys, &shape)?], ways))
}

#[track_caller]
fn close(got: &Tensor, (way, expected, shape): &Reduced) {
    assert_eq!(got.shape(), shape, "{way:?}");
    for (got, want) in floats(got).iter().zip(expected) {
        assert!((f64::from(*got) - want).abs() <= 1e-6 * want.abs(), "{way:?}: {got} instead of {want}");
    }
}

pub fn reductions() -> Result<()> {
    let op = reduce("device_reduce")?;
    let ones = Tensor::from_slice(&[1.0f32; 20], &[4, 5])?;
    let documented = op.call_with(&[&ones, &ones], &[("axis", 1.into())])?;
    assert_eq!((documented[0].shape(), floats(&documented[0])), (&[4][..], vec![10.0; 4]));
    let inferred = op.infer(&[(&[4, -1], DType::F32), (&[4, -1], DType::F32)], &[("axis", 0.into())])?;
    assert_eq!(inferred, [(vec![-1], DType::F32)]);
    for columns in [5usize, 50, 5000, 500_000, 50, 5_000_000, 5] {
        let ([x, y], ways) = case(columns)?;
        for way in &ways {
            let attributes = [("axis", AttrValue::Int(way.0.0)), ("keep_dim", way.0.1.into())];
            close(&op.call_with(&[&x, &y], &attributes)?[0], way);
        }
    }
    op.unload();
    Ok(())
}

/// Graph mode: sizes that differ from run to run, gradients, and branches on two threads.
pub fn graphs() -> Result<()> {
    let op = reduce("device_graph_reduce")?;
    let spec = || InputSpec::new(DType::F32, [4.into(), "columns".into()]);
    for (axis, keep) in [(0, false), (1, true)] {
        let attributes = [("axis", AttrValue::Int(axis)), ("keep_dim", keep.into())];
        let run = |x: &[Tensor]| op.call_with(&[&x[0], &x[1]], &attributes);
        let graph = Graph::trace(run, [spec(), spec()])?;
        for columns in [5usize, 500, 50_000, 5] {
            let ([x, y], ways) = case(columns)?;
            let way = ways.iter().find(|way| way.0 == (axis, keep)).unwrap();
            close(&graph.run(&[&x, &y])?[0], way);
            close(&graph.run(&[&x, &y])?[0], way);
        }
    }
    let bprop = on_device("SquareBprop", &["x", "out", "dout"], &["dx"]).declare()?;
    let square = simple("Square").bprop_operator(&bprop).declare()?;
    let gradient = |x: &[Tensor]| {
        let y = square.call(&[&square.call(&[&x[0]])?])?.sum()?;
        let found = autograd::grad(&[&y], &[&x[0]], &[None], Default::default())?;
        Ok(found.into_iter().flatten().collect::<Vec<Tensor>>())
    };
    let graph = Graph::trace(gradient, [InputSpec::new(DType::F32, ["n".into()]).requiring_grad()])?;
    assert_eq!(floats(&graph.run(&[Tensor::of(&[1.0f32, 4.0, 9.0])])?[0]), [4.0, 256.0, 2916.0]);
    Ok(())
}

/// Inputs that are absent, lists, and the kernel's view of all.
pub fn inputs() -> Result<()> {
    let facts = Declaration::new("device_facts", kernel("Facts"))
        .input("x")
        .optional_input("y")
        .output("out")
        .output_dtype(DType::F32)
        .output_shape_fn(|call| Ok(vec![call.shape(0)?.to_vec()]))
        .target(Backend::Cuda)
        .unlisted()
        .declare()?;
    let x = Tensor::of(&[1.0f32, 2.0]);
    assert_eq!(floats(&facts.call(&[&x, &x])?), [1.0, 2.0]);
    let absent = [opsmith::Arg::Tensor(&x), opsmith::Arg::None];
    assert_eq!(floats(&facts.invoke(&absent)?[0]), [1.0, 2.0]);
    // Zero elements: addresses all the same.
    let empty = Tensor::from_slice::<f32>(&[], &[0])?;
    assert_eq!(facts.call(&[&empty, &empty])?.shape(), [0]);
    facts.unload();
    let list = Declaration::new("device_list", kernel("SumOfList"))
        .dynamic_input("xs")
        .output("sum")
        .output_dtype(DType::F32)
        .output_shape_fn(|call| Ok(vec![call.shape(0)?.to_vec()]))
        .target(Backend::Cuda)
        .unlisted()
        .declare()?;
    assert_eq!(floats(&list.call(&[&x, &x, &x])?), [3.0, 6.0]);
    assert_eq!(floats(&list.call(&[&x])?), [1.0, 2.0]);
    Ok(())
}

/// Calls from several threads do not disturb each other.
pub fn threads() -> Result<()> {
    let op = reduce("device_threads")?;
    std::thread::scope(|scope| {
        for thread in 0..8 {
            scope.spawn(move || {
                for round in 0..10 {
                    let ([x, y], ways) = case(5 + 100 * ((thread + round) % 4)).unwrap();
                    for way in &ways {
                        let attributes = [("axis", AttrValue::Int(way.0.0)), ("keep_dim", way.0.1.into())];
                        close(&op.call_with(&[&x, &y], &attributes).unwrap()[0], way);
                    }
                }
            });
        }
    });
    op.unload();
    Ok(())
}

/// The same calls as often as the environment says.
pub fn warm() -> Result<()> {
    let times: usize = std::env::var("AOT_DEVICE_TIMES").map_or(3, |text| text.parse().unwrap());
    let op = reduce("device_warm")?;
    let cases = [case(5)?, case(5000)?];
    for _ in 0..times {
        for ([x, y], ways) in &cases {
            for way in ways {
                let attributes = [("axis", AttrValue::Int(way.0.0)), ("keep_dim", way.0.1.into())];
                close(&op.call_with(&[x, y], &attributes)?[0], way);
            }
        }
    }
    if times > 100 {
        let ([x, y], _) = &cases[0];
        let attributes = [("axis", AttrValue::Int(1))];
        let start = std::time::Instant::now();
        for _ in 0..times {
            op.call_with(&[x, y], &attributes)?;
        }
        println!("a warm call takes {:.1} µs", start.elapsed().as_secs_f64() * 1e6 / times as f64);
    }
    Ok(())
}

/// Whoever has the result has it whole, however long the device took.
pub fn waits() -> Result<()> {
    let slow = simple("Slow").declare()?;
    for round in 1..4 {
        let x = Tensor::of(&[round as f32, 2.0, 3.0]);
        assert_eq!(floats(&slow.call(&[&x])?), [round as f32, 2.0, 3.0]);
    }
    Ok(())
}
