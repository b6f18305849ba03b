//! Functions as graphs over sizes: quotients, parities, sizes that elements decide, and graphs for single sizes.

use opsmith::autograd::{self, Options};
use opsmith::{DType, Result, Tensor, TensorOps};
use opsmith_graph::{Dim, Graph, InputSpec, Passes};
use opsmith_runtime::infer::symbolic::Size;

fn numbers(shape: &[i64]) -> Tensor {
    let numel = shape.iter().product::<i64>();
    let values: Vec<f32> = (0..numel).map(|at| ((at * 37 + 11) % 23) as f32 / 11.0 - 1.0).collect();
    Tensor::from_slice(&values, shape).unwrap()
}

fn values(tensor: &Tensor) -> Vec<f32> {
    tensor.to_vec().unwrap()
}

/// Quotients of sizes in a function: halves, padding to a multiple, and windows with a stride.
fn divided(x: &[Tensor]) -> Result<Vec<Tensor>> {
    let n = x[0].shape()[0];
    let (first, second) = (x[0].narrow(0, 0, n / 2)?, x[0].narrow(0, n - n / 2, n / 2)?);
    let padded = opsmith::cat(&[x[0].clone(), opsmith::zeros([(8 - n % 8) % 8, 4])?])?;
    let blocks = padded.reshape([(n + 7) / 8, 8, 4])?;
    let pooled = opsmith::avg_pool2d(&x[0].reshape([1, n, 4])?, [2, 2])?;
    let rows = pooled.shape()[1];
    Ok(vec![(first * second)?, blocks.sum_dim(Some(&[1]))?, pooled.reshape([rows * 2])?])
}

#[test]
fn what_a_function_divides_has_formulas() {
    let spec = InputSpec::new(DType::F32, ["n".into(), 4.into()]);
    let traced = Graph::trace(divided, [spec]).unwrap();
    assert!(traced.guards().is_empty(), "{:?}", traced.guards());
    let shape = |number: usize| {
        let sizes = &traced.tensors()[traced.outputs()[number].0 as usize].layout.sizes;
        sizes.iter().map(|size| traced.text(size)).collect::<Vec<_>>().join(", ")
    };
    assert_eq!([shape(0), shape(1), shape(2)], ["floor(n/2), 4", "floor((n+7)/8), 4", "2*floor(n/2)"]);
    assert!(traced.describe().contains("symbol floor(n/2): computed from n"), "{}", traced.describe());
    // Inference divides as the trace does, so nothing is left to ask.
    let half = Size::from(traced.symbols().all().nth(1).unwrap());
    let mut symbols = traced.symbols().clone();
    assert_eq!(symbols.quotient(&Size::from(symbols.all().next().unwrap()), &Size::Const(2)), half);
    traced.check().unwrap();
    traced.check_at(&[("n", 21)]).unwrap();
    let folder = std::env::temp_dir().join(format!("opsmith-divided-{}", std::process::id()));
    traced.save(&folder).unwrap();
    let loaded = Graph::load(&folder).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    for graph in [&traced, &traced.optimize(&Passes::all()), &loaded] {
        for n in [2, 3, 7, 8, 9, 16, 23, 1000, 1001] {
            let x = numbers(&[n, 4]);
            let (eager, found) =
                (divided(std::slice::from_ref(&x)).unwrap(), graph.run(std::slice::from_ref(&x)).unwrap());
            for (eager, found) in eager.iter().zip(&found) {
                assert_eq!((values(eager), eager.shape()), (values(found), found.shape()), "{n}");
            }
        }
    }
}

#[test]
fn half_of_an_even_size_is_a_size() {
    let function = |x: &[Tensor]| {
        let halves = x[0].chunk(2)?;
        &halves[0] * &halves[1].sigmoid()?
    };
    let graph = Graph::trace(function, [InputSpec::new(DType::F32, [Dim::multiple("n", 2)])]).unwrap();
    for n in [2, 10, 64] {
        let x = numbers(&[n]);
        let eager = function(std::slice::from_ref(&x)).unwrap();
        assert_eq!(values(&graph.run(&[&x]).unwrap()[0]), values(&eager));
    }
    let error = graph.run(&[numbers(&[7])]).unwrap_err();
    assert!(error.to_string().contains("`n` is 7, and was declared to be a multiple of 2"), "{error}");
}

#[test]
fn even_and_odd_sizes_are_told_apart() {
    let function = |x: &[Tensor]| if x[0].shape()[0] % 2 == 0 { x[0].relu() } else { x[0].neg() };
    let graph = Graph::trace(function, [InputSpec::new(DType::F32, ["n".into()])]).unwrap();
    assert_eq!(graph.guards().len(), 1);
}

#[test]
fn unknown_sizes_have_symbols_of_their_own() {
    let function = |x: &[Tensor]| x[0].mm(&x[1]);
    let unknown = |rows: i64, columns: i64| InputSpec::new(DType::F32, [rows.into(), columns.into()]);
    let graph = Graph::trace(function, [unknown(-1, 4), unknown(4, -1)]).unwrap();
    let sizes = &graph.tensors()[graph.outputs()[0].0 as usize].layout.sizes;
    assert_eq!([graph.text(&sizes[0]), graph.text(&sizes[1])], ["s0", "s1"]);
    assert_eq!(graph.run(&[numbers(&[3, 4]), numbers(&[4, 2])]).unwrap()[0].shape(), [3, 2]);
    let error = Graph::trace(function, [unknown(-3, 4), unknown(4, 2)]).map(drop).unwrap_err();
    assert!(error.to_string().contains("negative size"), "{error}");
}

#[test]
fn what_a_function_makes_from_numbers_it_may_not_change() {
    // Eager mode makes the tensor anew in each run, so it starts at 1 each time.
    let function = |x: &[Tensor]| {
        let sum = Tensor::of(&[1.0f32, 1.0]);
        sum.add_(&x[0])?;
        Ok(sum)
    };
    let error = Graph::trace(function, [&numbers(&[2])]).map(drop).unwrap_err();
    assert!(error.to_string().contains("makes from numbers is changed"), "{error}");
    let copied = |x: &[Tensor]| {
        let sum = (&Tensor::of(&[1.0f32, 1.0]) * 1.0)?;
        sum.add_(&x[0])?;
        Ok(sum)
    };
    let graph = Graph::trace(copied, [&numbers(&[2])]).unwrap();
    for _ in 0..2 {
        assert_eq!(values(&graph.run(&[Tensor::of(&[2.0f32, 3.0])]).unwrap()[0]), [3.0, 4.0]);
    }
}

/// Attention over `batch` sequences of `length`, which copies where a view cannot show heads side by side.
fn attention(inputs: &[Tensor], weight: &Tensor) -> Result<Vec<Tensor>> {
    let [x] = inputs else { panic!("one input") };
    let (batch, length) = (x.shape()[0], x.shape()[1]);
    let parts = x.matmul(weight)?.reshape([batch, length, 3, 2, 4])?.permute([2, 0, 3, 1, 4])?;
    let (q, k, v) = (parts.select(0, 0)?, parts.select(0, 1)?, parts.select(0, 2)?);
    let mixed = q.matmul(&k.transpose(-1, -2)?)?.softmax(-1)?.matmul(&v)?;
    let loss = mixed.transpose(1, 2)?.reshape([batch, length, 8])?.sum()?;
    let gradient = autograd::grad(&[&loss], &[weight], &[None], Options::default())?;
    Ok(vec![loss.detach(), gradient[0].clone().expect("the loss depends on it")])
}

#[test]
fn sizes_with_steps_of_their_own_have_graphs_of_their_own() {
    let weight = numbers(&[8, 24]).requires_grad_(true).unwrap();
    let function = |x: &[Tensor]| attention(x, &weight);
    let spec = InputSpec::new(DType::F32, ["batch".into(), "length".into(), 8.into()]);
    let traced = Graph::trace(function, [spec]).unwrap();
    assert!(traced.guards().is_empty(), "{:?}", traced.guards());
    let variants: Vec<_> = traced.variants().map(|(symbol, value, _)| (symbol, value)).collect();
    assert!(variants.contains(&("batch", 1)) && variants.contains(&("length", 1)), "{variants:?}");
    assert!(traced.describe().contains("where batch = 1, a graph of its own"), "{}", traced.describe());
    assert!(traced.describe_at(&[("batch", 1), ("length", 5)]).unwrap().contains("(1, length, 8)"));
    traced.check_at(&[("batch", 1), ("length", 1)]).unwrap();
    let folder = std::env::temp_dir().join(format!("opsmith-variants-{}", std::process::id()));
    traced.save(&folder).unwrap();
    let loaded = Graph::load(&folder).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    for graph in [&traced, &traced.optimize(&Passes::all()), &loaded] {
        for (batch, length) in [(3, 5), (1, 5), (3, 1), (1, 1), (2, 2), (1, 9)] {
            let x = numbers(&[batch, length, 8]);
            let (eager, found) = (function(std::slice::from_ref(&x)).unwrap(), graph.run(&[&x]).unwrap());
            for (eager, found) in eager.iter().zip(&found) {
                assert_eq!(
                    (values(eager), eager.shape()),
                    (values(found), found.shape()),
                    "{batch} {length}"
                );
            }
        }
    }
}

#[test]
fn variants_share_what_they_change() {
    let total = opsmith::zeros([1]).unwrap();
    let function = |x: &[Tensor]| {
        let flat = x[0].permute([1, 0, 2])?.reshape([-1])?;
        total.add_(&flat.sum()?)?;
        total.deep_clone()
    };
    let spec = InputSpec::new(DType::F32, ["n".into(), 2.into(), 2.into()]);
    let graph = Graph::trace(function, [spec]).unwrap();
    assert!(graph.variants().count() > 0);
    let folder = std::env::temp_dir().join(format!("opsmith-shared-{}", std::process::id()));
    graph.save(&folder).unwrap();
    let loaded = Graph::load(&folder).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    for graph in [graph, loaded] {
        let ones = |n: i64| opsmith::ones([n, 2, 2]).unwrap();
        let sums: Vec<f32> = [3, 1, 2].map(|n| values(&graph.run(&[ones(n)]).unwrap()[0])[0]).to_vec();
        assert_eq!(sums, [12.0, 16.0, 24.0]);
    }
}

#[test]
fn a_tensor_of_another_traced_function_is_refused() {
    let kept = std::cell::RefCell::new(None);
    let spec = || [InputSpec::new(DType::F32, [4.into()])];
    let first = |x: &[Tensor]| {
        *kept.borrow_mut() = Some(x[0].clone());
        x[0].relu()
    };
    Graph::trace(first, spec()).unwrap();
    let foreign = kept.into_inner().unwrap();
    let error = Graph::trace(|x: &[Tensor]| &x[0] + &foreign, spec()).map(drop).unwrap_err();
    assert!(error.to_string().contains("of another traced function"), "{error}");
}

#[test]
fn different_names_are_different_sizes() {
    let inputs = ["rows", "others"].map(|name| InputSpec::new(DType::F32, [name.into()]));
    let error = Graph::trace(|x: &[Tensor]| &x[0] + &x[1], inputs).map(drop).unwrap_err().to_string();
    assert!(error.contains("traced with rows = 6, others = "), "{error}");
    assert!(error.contains("give the same name to those that are equal"), "{error}");
}

#[test]
fn sizes_that_elements_decide_are_equal_where_they_have_to_be() {
    // Two selections by each of two masks, and the places that the first of them selects.
    let function = |x: &[Tensor]| {
        let [x, target] = x else { panic!("two inputs") };
        let (positive, small) = (x.gt(0.0)?, x.lt(-0.5)?);
        let (a, b) = (x.masked_select(&positive)?, x.masked_select(&small)?);
        let (c, d) = (target.masked_select(&positive)?, target.masked_select(&small)?);
        let places = positive.nonzero()?.squeeze_dim(1)?;
        let errors = ((a - c)? * x.index_select(0, &places)?)?;
        Ok(vec![errors, (b - d)?])
    };
    let spec = || InputSpec::new(DType::F32, ["n".into()]);
    let traced = Graph::trace(function, [spec(), spec()]).unwrap();
    let shapes: Vec<String> = traced
        .outputs()
        .iter()
        .map(|id| traced.text(&traced.tensors()[id.0 as usize].layout.sizes[0]))
        .collect();
    assert_eq!(shapes, ["u0", "u1"]);
    for graph in [&traced, &traced.optimize(&Passes::all())] {
        for n in [5, 23, 2, 40] {
            let (x, target) = (numbers(&[n]), (numbers(&[n]) * 0.5).unwrap());
            let eager = function(&[x.clone(), target.clone()]).unwrap();
            let found = graph.run(&[&x, &target]).unwrap();
            for (eager, found) in eager.iter().zip(&found) {
                assert_eq!(values(eager), values(found), "{n}");
            }
        }
    }
}

#[test]
fn sizes_that_were_taken_to_be_equal_and_are_not_are_refused() {
    let function = |x: &[Tensor]| {
        let of = |x: &Tensor| x.masked_select(&x.gt(0.0)?);
        &of(&x[0])? + &of(&x[1])?
    };
    let spec = || InputSpec::new(DType::F32, ["n".into()]);
    let graph = Graph::trace(function, [spec(), spec()]).unwrap();
    let (x, y) = (Tensor::of(&[1.0f32, -2.0, 3.0]), Tensor::of(&[-1.0f32, 4.0, 5.0]));
    assert_eq!(values(&graph.run(&[&x, &y]).unwrap()[0]), [5.0, 8.0]);
    let error = graph.run(&[&x, &x.neg().unwrap()]).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("masked_select: dimension 0 of the result has the size 1, and `u0` is 2"),
        "{text}"
    );
    assert!(text.contains("graph_sizes.rs"), "{text}");
}

#[test]
fn a_function_is_traced_within_the_bounds_of_a_size() {
    let table = numbers(&[16, 3]);
    let function = |x: &[Tensor]| &x[0] + &table.narrow(0, 0, x[0].shape()[1])?;
    let spec = |dim: Dim| InputSpec::new(DType::F32, ["batch".into(), dim, 3.into()]);
    // Without bounds, sizes are tried that the table does not have.
    assert!(Graph::trace(function, [spec("length".into())]).is_err());
    for (least, most) in [(2, 16), (0, 16), (16, 16), (3, 4)] {
        let graph = Graph::trace(function, [spec(Dim::between("length", least, Some(most)))]).unwrap();
        graph.check().unwrap();
        for length in [least, most] {
            let x = numbers(&[2, length, 3]);
            assert_eq!(values(&graph.run(&[&x]).unwrap()[0]), values(&function(&[x]).unwrap()), "{length}");
        }
        for length in [least - 1, most + 1].into_iter().filter(|length| *length >= 0) {
            let error = graph.run(&[&numbers(&[2, length, 3])]).unwrap_err().to_string();
            assert!(error.contains(&format!("`length` is {length}")), "{error}");
        }
    }
    let refused = |dim: Dim| Graph::trace(function, [spec(dim)]).unwrap_err().to_string();
    let text = refused(Dim::between("length", 5, Some(4)));
    assert!(text.contains("`length` would be a size from 5 to 4"), "{text}");
    let odd = Dim::Symbol { name: "length".to_owned(), multiple_of: 7, least: 8, most: Some(13) };
    let text = refused(odd);
    assert!(text.contains("a size from 8 to 13, a multiple of 7"), "{text}");
}

#[test]
fn a_site_may_be_a_line_of_another_language() {
    let function = |x: &[Tensor]| opsmith_graph::at_source("model.py:12", || x[0].exp());
    let graph = Graph::trace(function, [InputSpec::new(DType::F32, ["n".into()])]).unwrap();
    assert_eq!(graph.nodes()[0].site.to_string(), "model.py:12");
}
