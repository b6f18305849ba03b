//! Reading and writing at indices that are data: integers, and masks that denote the positions of true elements.

use opsmith::autograd::{self, Options};
use opsmith::{DType, IndexPutOptions, Result, Tensor, TensorOps, Value, call};
use opsmith_graph::{Dim, Graph, InputSpec, Place};

fn numbers(shape: &[i64]) -> Tensor {
    let count: i64 = shape.iter().product();
    Tensor::from_slice(&(0..count).map(|at| at as f64).collect::<Vec<_>>(), shape).unwrap()
}

fn number(value: f64) -> Tensor {
    Tensor::scalar(value, DType::F64)
}

fn mask(bits: &[u8], shape: &[i64]) -> [Tensor; 2] {
    let bools: Vec<bool> = bits.iter().map(|bit| *bit != 0).collect();
    [Tensor::from_slice(&bools, shape).unwrap(), Tensor::from_slice(bits, shape).unwrap()]
}

/// Shape and elements of a selection, which may be refused.
fn selected(x: &Tensor, indices: &[Option<&Tensor>]) -> Result<(Vec<i64>, Vec<f64>)> {
    let indices: Vec<Option<Tensor>> = indices.iter().map(|index| index.cloned()).collect();
    let result = x.index(&indices)?;
    Ok((result.shape().to_vec(), result.to_vec::<f64>()?))
}

#[test]
fn masks_select_as_their_places_do() {
    let x = numbers(&[3, 4]);
    let two = Tensor::of(&[0i64, 1]);
    for rows in mask(&[1, 0, 7], &[3]) {
        assert_eq!(
            selected(&x, &[Some(&rows)]).unwrap(),
            (vec![2, 4], vec![0., 1., 2., 3., 8., 9., 10., 11.])
        );
        // With indices beside it, whose shape it broadcasts with.
        assert_eq!(selected(&x, &[Some(&rows), Some(&two)]).unwrap(), (vec![2], vec![0., 9.]));
        let column = two.reshape([2, 1]).unwrap();
        assert_eq!(selected(&x, &[Some(&rows), Some(&column)]).unwrap(), (vec![2, 2], vec![0., 8., 1., 9.]));
        let others = Tensor::of(&[0i32]);
        assert_eq!(selected(&x, &[Some(&rows), Some(&others)]).unwrap(), (vec![2], vec![0., 8.]));
        for columns in mask(&[1, 0, 1, 0], &[4]) {
            assert_eq!(selected(&x, &[Some(&rows), Some(&columns)]).unwrap(), (vec![2], vec![0., 10.]));
        }
        let error = selected(&x, &[Some(&rows), Some(&Tensor::of(&[0i64, 1, 2]))]).unwrap_err();
        assert!(error.to_string().contains("do not broadcast"), "{error}");
    }
    let columns = &mask(&[1, 0, 1, 1], &[4])[0];
    assert_eq!(
        selected(&x, &[None, Some(columns)]).unwrap(),
        (vec![3, 3], vec![0., 2., 3., 4., 6., 7., 8., 10., 11.])
    );
    // Strides of the mask and of the tensor.
    let above = x.gt(5).unwrap();
    assert_eq!(selected(&x, &[Some(&above)]).unwrap(), (vec![6], vec![6., 7., 8., 9., 10., 11.]));
    let turned = selected(&x.t().unwrap(), &[Some(&above.t().unwrap())]).unwrap();
    assert_eq!(turned, (vec![6], vec![8., 9., 6., 10., 7., 11.]));
    assert_eq!(selected(&x, &[Some(&x.gt(99).unwrap())]).unwrap(), (vec![0], vec![]));
}

#[test]
fn masks_take_as_many_dimensions_as_they_have() {
    let x = numbers(&[2, 3, 4]);
    let all = &mask(&[1; 6], &[2, 3])[0];
    let one = Tensor::of(&[1i64]);
    assert_eq!(selected(&x, &[Some(all), Some(&one)]).unwrap(), (vec![6], vec![1., 5., 9., 13., 17., 21.]));
    assert_eq!(selected(&x, &[Some(all), None]).unwrap().0, [6, 4]);
    let inner = &mask(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0], &[3, 4])[0];
    assert_eq!(selected(&x, &[None, Some(inner)]).unwrap(), (vec![2, 1], vec![9., 21.]));
    // Separated indices: the indexed dimensions come first.
    let both = &mask(&[1, 1], &[2])[0];
    let apart = selected(&x, &[Some(both), None, Some(&Tensor::of(&[0i64, 1]))]).unwrap();
    assert_eq!(apart, (vec![2, 3], vec![0., 4., 8., 13., 17., 21.]));
    // A truth value without dimensions takes none.
    let x = numbers(&[2]);
    assert_eq!(
        selected(&x, &[Some(&Tensor::scalar(true, DType::Bool))]).unwrap(),
        (vec![1, 2], vec![0., 1.])
    );
    assert_eq!(selected(&x, &[Some(&Tensor::scalar(false, DType::Bool))]).unwrap(), (vec![0, 2], vec![]));
}

#[test]
fn masks_that_do_not_fit_are_refused() {
    let x = numbers(&[3, 4]);
    for (indices, part) in [
        (vec![Some(mask(&[1, 0], &[2])[0].clone())], "a mask has the sizes of the dimensions"),
        (vec![None, Some(mask(&[1, 0, 1], &[3])[1].clone())], "a mask has the sizes of the dimensions"),
        (vec![Some(mask(&[], &[0])[1].clone())], "a mask has the sizes of the dimensions"),
        (vec![Some(x.gt(5).unwrap()), Some(Tensor::of(&[0i64]))], "too many"),
        (vec![Some(Tensor::of(&[0.0f32]))], "`indices` must be int64 or int32, or masks of bool or uint8"),
        (vec![Some(Tensor::of(&[0i16]))], "got int16"),
    ] {
        let error = x.index(&indices).unwrap_err().to_string();
        assert!(error.contains(part), "{part}: {error}");
        let error = x.index_put(&indices, &number(1.0)).unwrap_err().to_string();
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn values_are_put_where_masks_hold() {
    let x = numbers(&[2, 3]);
    for above in [x.gt(2).unwrap(), x.gt(2).unwrap().to_dtype(DType::U8).unwrap()] {
        let put = |values: &Tensor, accumulate| {
            x.index_put_with(
                &[Some(above.clone())],
                values,
                IndexPutOptions::default().accumulate(accumulate),
            )
            .map(|result| result.to_vec::<f64>().unwrap())
        };
        assert_eq!(put(&number(9.0), false).unwrap(), [0., 1., 2., 9., 9., 9.]);
        assert_eq!(put(&Tensor::of(&[7.0f64, 8.0, 9.0]), true).unwrap(), [0., 1., 2., 10., 12., 14.]);
        assert!(put(&Tensor::of(&[7.0f64, 8.0]), false).is_err());
        let own = x.mul(1).unwrap();
        own.index_put_(&[Some(above.clone())], &number(0.0)).unwrap();
        assert_eq!(own.to_vec::<f64>().unwrap(), [0., 1., 2., 0., 0., 0.]);
    }
    let none = x.gt(99).unwrap();
    let nothing = Tensor::from_slice(&[] as &[f64], &[0]).unwrap();
    assert_eq!(
        x.index_put(&[Some(none)], &nothing).unwrap().to_vec::<f64>().unwrap(),
        x.to_vec::<f64>().unwrap()
    );
}

#[test]
fn gradients_flow_to_where_masks_hold() {
    let x = numbers(&[2, 3]).requires_grad_(true).unwrap();
    let values = Tensor::of(&[5.0f64]).requires_grad_(true).unwrap();
    let above = x.detach().gt(2).unwrap();
    let picked = x.index(&[Some(above.clone())]).unwrap();
    let loss = picked.mul(&picked).unwrap().sum().unwrap();
    let grads = autograd::grad(&[&loss], &[&x], &[None], Options::default()).unwrap();
    assert_eq!(grads[0].as_ref().unwrap().to_vec::<f64>().unwrap(), [0., 0., 0., 6., 8., 10.]);
    let put = x.index_put(&[Some(above)], &values).unwrap();
    let loss = put.mul(&put).unwrap().sum().unwrap();
    let grads = autograd::grad(&[&loss], &[&x, &values], &[None], Options::default()).unwrap();
    assert_eq!(grads[0].as_ref().unwrap().to_vec::<f64>().unwrap(), [0., 2., 4., 0., 0., 0.]);
    assert_eq!(grads[1].as_ref().unwrap().to_vec::<f64>().unwrap(), [30.]);
}

#[test]
fn graphs_select_and_put_by_masks_that_they_compute() {
    let sizes = || InputSpec::new(DType::F64, [Dim::from("n"), 3.into()]);
    let graph = Graph::trace(|x: &[Tensor]| x[0].index(&[Some(x[0].gt(2)?)])?.mul(2), [sizes()]).unwrap();
    assert_eq!(graph.run(&[numbers(&[2, 3])]).unwrap()[0].to_vec::<f64>().unwrap(), [6., 8., 10.]);
    assert_eq!(graph.run(&[numbers(&[3, 3])]).unwrap()[0].shape(), [6]);
    assert_eq!(graph.run(&[numbers(&[1, 3])]).unwrap()[0].shape(), [0]);
    // Rows by a mask, beside indices.
    let rows = |x: &[Tensor]| {
        let chosen = x[0].sum_dim(Some(&[1]))?.gt(5)?;
        x[0].index(&[Some(chosen), Some(Tensor::of(&[1i64]))])
    };
    let graph = Graph::trace(rows, [sizes()]).unwrap();
    assert_eq!(graph.run(&[numbers(&[4, 3])]).unwrap()[0].to_vec::<f64>().unwrap(), [4., 7., 10.]);
    let clear = |x: &[Tensor]| x[0].index_put(&[Some(x[0].gt(2)?)], &number(0.0));
    let graph = Graph::trace(clear, [sizes()]).unwrap();
    assert_eq!(graph.run(&[numbers(&[2, 3])]).unwrap()[0].to_vec::<f64>().unwrap(), [0., 1., 2., 0., 0., 0.]);
    // Integer indices do not influence shapes, computed or not, and a constant mask is a constant.
    let gather = |x: &[Tensor]| x[0].index(&[Some(x[1].add(1)?)]);
    let graph = Graph::trace(gather, [sizes(), InputSpec::new(DType::I64, [Dim::from("m")])]).unwrap();
    assert_eq!(graph.run(&[numbers(&[2, 3]), Tensor::of(&[0i64, -1])]).unwrap()[0].shape(), [2, 3]);
    let constant = mask(&[1, 0], &[2])[0].clone();
    let by_constant = |x: &[Tensor]| x[0].index(&[Some(constant.clone())]);
    let graph = Graph::trace(by_constant, [InputSpec::new(DType::F64, [2.into(), Dim::from("m")])]).unwrap();
    assert_eq!(graph.run(&[numbers(&[2, 5])]).unwrap()[0].shape(), [1, 5]);
}

#[test]
fn masks_are_taken_by_name() {
    let x = numbers(&[2, 3]);
    let above = x.gt(2).unwrap();
    let args = [x.into(), Value::OptionalTensors(vec![Some(above)])];
    let result = call("index", &args, &[]).unwrap();
    assert_eq!(result[0].clone().into_tensor().unwrap().shape(), [3]);
}

/// Invalid indices are errors even if there is nothing to read or write at them.
#[test]
fn indices_are_checked_where_nothing_is_written() {
    let mut tried = 0;
    for (sizes, dim) in [([0i64, 3], 0i64), ([3, 0], 1), ([0, 3], 1), ([3, 0], 0)] {
        let x = || Value::from(numbers(&sizes));
        let mut one = sizes;
        one[dim as usize] = 1;
        let every =
            || Value::from(Tensor::from_slice(&vec![7i64; (one[0] * one[1]) as usize], &one).unwrap());
        let (index, source) = (|| Value::from(Tensor::of(&[7i64])), || Value::from(numbers(&one)));
        let mut calls = vec![
            ("index_select", vec![x(), dim.into(), index()]),
            ("index_add", vec![x(), dim.into(), index(), source()]),
        ];
        // An index without elements names nothing.
        if one[0] * one[1] > 0 {
            calls.extend([
                ("gather", vec![x(), dim.into(), every()]),
                ("scatter.src", vec![x(), dim.into(), every(), source()]),
                ("scatter.value", vec![x(), dim.into(), every(), 1i64.into()]),
                ("scatter_add", vec![x(), dim.into(), every(), source()]),
                ("scatter_reduce.two", vec![x(), dim.into(), every(), source(), "sum".into()]),
            ]);
            let mut indices = vec![None; dim as usize];
            indices.push(Some(Tensor::of(&[7i64])));
            calls.push(("index_put", vec![x(), Value::OptionalTensors(indices), number(1.0).into()]));
        }
        for (name, args) in calls {
            let error = call(name, &args, &[]).map(|_| ()).expect_err(name).to_string();
            assert!(
                error.contains("the index 7 is out of range for dimension"),
                "{name} of {sizes:?}: {error}"
            );
            tried += 1;
        }
    }
    assert_eq!(tried, 20);
    let table = |rows, columns| Value::from(numbers(&[rows, columns]));
    let seven = || Value::from(Tensor::of(&[7i64]));
    for (name, args) in [
        ("embedding", vec![table(0, 3), seven()]),
        ("embedding", vec![table(3, 0), seven()]),
        ("embedding_dense_backward", vec![table(1, 0), seven(), 3i64.into(), (-1i64).into(), false.into()]),
    ] {
        let error = call(name, &args, &[]).map(|_| ()).expect_err(name).to_string();
        assert!(error.contains("the index 7 is out of range"), "{name}: {error}");
    }
    // In graphs, too.
    let select = |x: &[Tensor]| x[0].index_select(0, &x[1]);
    let specs = [InputSpec::new(DType::F64, [3.into(), 0.into()]), InputSpec::new(DType::I64, [1.into()])];
    let graph = Graph::trace(select, specs).unwrap();
    assert!(graph.run(&[numbers(&[3, 0]), Tensor::of(&[2i64])]).is_ok());
    let error = graph.run(&[numbers(&[3, 0]), Tensor::of(&[7i64])]).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("the index 7 is out of range"), "{error}");
    // Valid calls stay valid.
    for (sizes, dim) in [([0i64, 3], 1i64), ([3, 0], 0)] {
        let at = Tensor::of(&[2i64]);
        assert_eq!(numbers(&sizes).index_select(dim, &at).unwrap().numel(), 0);
    }
}

#[test]
fn sources_without_elements_have_the_shape_of_others() {
    let x = numbers(&[3, 4]);
    let add = |index: &[i64], sizes: &[i64]| x.index_add(0, &Tensor::of(index), &numbers(sizes)).map(|_| ());
    add(&[], &[0, 4]).unwrap();
    for (index, sizes) in [(&[1i64][..], &[0i64, 4][..]), (&[1], &[1, 0]), (&[], &[0, 3]), (&[1], &[0])] {
        let error = add(index, sizes).unwrap_err().to_string();
        assert!(error.contains("the slices at the indices have"), "{error}");
    }
}

/// A form in place gives the kernel the tensor's own memory: a table is not copied for some rows.
#[test]
fn updates_in_place_copy_nothing() {
    let table = opsmith::zeros([4096, 64]).unwrap();
    let (index, rows) = (Tensor::of(&[3i64, 5, 3]), opsmith::ones([3, 64]).unwrap());
    let whole = opsmith::zeros([3, 64]).unwrap().to_dtype(DType::I64).unwrap();
    let (peak, done) = opsmith::runtime::allocator::peak_bytes(|| {
        let before = opsmith::runtime::allocator::live_bytes();
        table.index_add_(0, &index, &rows)?;
        table.scatter_add_(0, &whole, &rows)?;
        table.scatter_(0, &whole.add(1)?, 2.0)?;
        table.index_put_(&[Some(index.clone())], &rows)?;
        table.index_copy_(0, &Tensor::of(&[2i64]), &opsmith::full([1, 64], 4.0)?)?;
        table.tril_()?;
        Ok::<usize, opsmith::Error>(before)
    });
    let before = done.unwrap();
    assert!(peak < before + 500_000, "{} bytes more than {before}", peak - before);
    let expected = [3.0, 2.0, 4.0, 1.0, 0.0, 1.0];
    for (row, expected) in (0..).zip(expected) {
        assert_eq!(table.select(0, row).unwrap().to_vec::<f32>().unwrap()[0], expected, "{row}");
    }
}

#[test]
fn updates_in_place_take_any_layout_and_operands_of_their_own_memory() {
    let index = Tensor::of(&[2i64, 0, 2]);
    let update = |x: &Tensor, source: &Tensor| x.index_add(0, &index, source);
    // The source is a part of the tensor; the tensor is a view with gaps; both.
    let x = numbers(&[4, 6]);
    let whole = opsmith::deep_clone(&x).unwrap();
    let expected = update(&whole, &whole.narrow(0, 1, 3).unwrap()).unwrap();
    x.index_add_(0, &index, &x.narrow(0, 1, 3).unwrap()).unwrap();
    assert_eq!(x.to_vec::<f64>().unwrap(), expected.to_vec::<f64>().unwrap());
    let part = |x: &Tensor| x.transpose(0, 1).unwrap().narrow(0, 1, 4).unwrap();
    let source = numbers(&[3, 4]);
    let expected = update(&part(&x), &source).unwrap();
    part(&x).index_add_(0, &index, &source).unwrap();
    assert_eq!(part(&x).to_vec::<f64>().unwrap(), expected.to_vec::<f64>().unwrap());
    // An out that is the argument itself, and one that is another.
    let mut out = opsmith::deep_clone(&x).unwrap();
    let expected = update(&x, &numbers(&[3, 6])).unwrap();
    opsmith::index_add_out(&out.clone(), 0, &index, &numbers(&[3, 6]), &mut out).unwrap();
    assert_eq!(out.to_vec::<f64>().unwrap(), expected.to_vec::<f64>().unwrap());
    let error = opsmith::index_add_out(&x, 0, &index, &out.narrow(0, 0, 3).unwrap(), &mut out).unwrap_err();
    assert!(error.to_string().contains("shares memory with the input `source`"), "{error}");
    // Nothing is half done.
    let before = x.to_vec::<f64>().unwrap();
    assert!(x.scatter_(0, &Tensor::of(&[0i64, 9]).reshape([2, 1]).unwrap(), 3.0).is_err());
    assert!(x.index_add_(0, &Tensor::of(&[0i64, 9]), &numbers(&[2, 6])).is_err());
    assert_eq!(x.to_vec::<f64>().unwrap(), before);
}

/// A kernel's `bool`s are valid before it writes them; those that it updates keep their values.
#[test]
fn updates_keep_truth_values() {
    let x = Tensor::of(&[true, false, true, true]);
    let (index, none) = (Tensor::of(&[1i64]), Tensor::of(&[false]));
    let put = x.scatter(0, &index, &Tensor::of(&[true])).unwrap();
    assert_eq!(put.to_vec::<bool>().unwrap(), [true; 4]);
    assert_eq!(x.index_add(0, &index, &none).unwrap().to_vec::<bool>().unwrap(), [true, false, true, true]);
    let square = x.reshape([2, 2]).unwrap();
    assert_eq!(square.tril().unwrap().to_vec::<bool>().unwrap(), [true, false, true, true]);
    square.triu_().unwrap();
    assert_eq!(x.to_vec::<bool>().unwrap(), [true, false, false, true]);
    let mut out = Tensor::of(&[false; 4]);
    opsmith::scatter_out(&x, 0, &index, &Tensor::of(&[true]), &mut out).unwrap();
    assert_eq!(out.to_vec::<bool>().unwrap(), [true, true, false, true]);
}

/// In a graph, an update in place is one node, which writes the memory that it reads.
#[test]
fn updates_in_place_are_traced_and_differentiated() {
    let function = |x: &[Tensor]| {
        let sums = x[0].mul(2.0)?;
        sums.index_add_(0, &x[1], &x[2])?;
        sums.tril_()?;
        sums.mul(&x[0])
    };
    let inputs = [numbers(&[3, 4]), Tensor::of(&[1i64, 1]), numbers(&[2, 4])];
    let eager = function(&inputs).unwrap().to_vec::<f64>().unwrap();
    let traced = Graph::trace(function, &inputs).unwrap();
    let folder = std::env::temp_dir().join(format!("opsmith-updates-{}", std::process::id()));
    traced.save(&folder).unwrap();
    let loaded = Graph::load(&folder).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    for graph in [&traced, &traced.optimize(&opsmith_graph::Passes::all()), &loaded] {
        for _ in 0..2 {
            assert_eq!(graph.run(&inputs).unwrap()[0].to_vec::<f64>().unwrap(), eager);
        }
    }
    // A functional form copies its argument only if another call, or another argument, reads it.
    let forms = |x: &[Tensor]| x[0].mul(2.0)?.index_add(0, &x[1], &x[2])?.tril()?.mul(&x[0]);
    let reuse = opsmith_graph::Passes::none().with(opsmith_graph::Pass::InPlaceReuse);
    let graph = Graph::trace(forms, &inputs).unwrap().optimize(&reuse);
    let own_memory = |graph: &Graph| {
        let buffers = graph.memory().unwrap().buffers;
        let own = buffers.iter().filter(|buffer| {
            matches!(buffer.place, Place::Arena { over: None, .. } | Place::Lent { over: None, .. })
        });
        own.count()
    };
    assert_eq!(own_memory(&graph), 1);
    assert_eq!(graph.run(&inputs).unwrap()[0].to_vec::<f64>().unwrap(), eager);
    let shared = |x: &[Tensor]| {
        let y = x[0].mul(2.0)?;
        y.index_add(0, &x[1], &y.narrow(0, 0, 2)?)?.mul(3.0)
    };
    let graph = Graph::trace(shared, &inputs).unwrap().optimize(&reuse);
    assert_eq!(own_memory(&graph), 2);
    let eager = shared(&inputs).unwrap().to_vec::<f64>().unwrap();
    assert_eq!(graph.run(&inputs).unwrap()[0].to_vec::<f64>().unwrap(), eager);
    let tracked = [inputs[0].requires_grad_(true).unwrap(), inputs[2].requires_grad_(true).unwrap()];
    let out = function(&[tracked[0].clone(), inputs[1].clone(), tracked[1].clone()]).unwrap();
    let grads =
        autograd::grad(&[&out.sum().unwrap()], &[&tracked[0], &tracked[1]], &[None], Options::default())
            .unwrap();
    // The sum of rows 0 and 1 of the source is in row 1, of which the lower triangle has two columns.
    let source = grads[1].as_ref().unwrap().to_vec::<f64>().unwrap();
    assert_eq!(source, [4.0, 5.0, 0.0, 0.0, 4.0, 5.0, 0.0, 0.0]);
}
