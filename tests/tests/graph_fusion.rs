//! Fusion by rows: reductions, normalisations and the calls before and after them run for some rows after the other, with
//! the bits of separate calls.

use opsmith::autograd::{self, Options};
use opsmith::{
    AmaxOptions, DType, Generator, LayerNormOptions, MeanDimOptions, Result, RmsNormOptions, SumDimOptions,
    Tensor, TensorOps, VectorNormOptions,
};
use opsmith_graph::{Graph, Passes};

fn numbers(shape: &[i64], seed: u64) -> Tensor {
    opsmith::rand_generator(shape, Some(&Generator::new(seed))).unwrap().sub(0.5).unwrap()
}

fn bits(tensor: &Tensor) -> Vec<u64> {
    let wide = tensor.to_dtype(DType::F64).unwrap();
    wide.to_vec::<f64>().unwrap().into_iter().map(f64::to_bits).collect()
}

fn all_bits(tensors: &[Tensor]) -> Vec<Vec<u64>> {
    tensors.iter().map(bits).collect()
}

/// The graph of a function with all passes, after a check that it gives the bits of eager mode: in tiles of the usual
/// size and of others, at whose ends there are fewer rows, in several threads.
#[track_caller]
fn fused(function: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>, inputs: &[Tensor]) -> Graph {
    let eager = all_bits(&function(inputs).unwrap());
    let traced = Graph::trace(function, inputs).unwrap();
    let graph = traced.optimize(&Passes::all());
    for threads in [1, 2, 5] {
        opsmith::runtime::parallel::set_num_threads(threads).unwrap();
        for tile in [None, Some(1), Some(64), Some(500), Some(3000)] {
            let graph = tile.map_or_else(|| graph.clone(), |tile| graph.clone().with_tiles(tile));
            for _ in 0..2 {
                let found = all_bits(&graph.run(inputs).unwrap());
                assert!(found == eager, "{threads} threads, tiles of {tile:?}\n{}", graph.describe());
            }
        }
    }
    graph
}

/// The numbers of calls of each group, views among them.
fn groups(graph: &Graph) -> Vec<usize> {
    graph.memory().unwrap().fused.iter().map(ExactSizeIterator::len).collect()
}

fn last() -> SumDimOptions {
    SumDimOptions::new().keepdim(true)
}

fn softmax(x: &[Tensor]) -> Result<Vec<Tensor>> {
    let scaled = x[0].mul(0.125)?;
    let powers = scaled.sub(&scaled.amax_with(AmaxOptions::new().dim([-1]).keepdim(true))?)?.exp()?;
    Ok(vec![powers.div(&powers.sum_dim_with(Some(&[-1]), last())?)?])
}

fn layer_norm(x: &[Tensor]) -> Result<Vec<Tensor>> {
    let mean = x[0].mean_dim_with(Some(&[-1]), MeanDimOptions::new().keepdim(true))?;
    let centred = x[0].sub(&mean)?;
    let variance = centred.mul(&centred)?.mean_dim(Some(&[-1]))?;
    let scale = variance.add(1e-5)?.rsqrt()?.unsqueeze(-1)?;
    Ok(vec![centred.mul(&scale)?.mul(&x[1])?.add(&x[2])?])
}

#[test]
fn normalisations_by_hand_are_one_group() {
    for shape in [&[300, 100][..], &[7, 20_011], &[3, 8192], &[9, 33, 64], &[2, 3, 20, 100]] {
        let width = *shape.last().unwrap();
        let inputs = [numbers(shape, 1), numbers(&[width], 2), numbers(&[width], 3)];
        let report = fused(layer_norm, &inputs).memory().unwrap();
        assert_eq!((report.planned, report.fused.len()), (0, 1), "{shape:?}");
        let graph = fused(softmax, &inputs[..1]);
        assert_eq!((graph.memory().unwrap().planned, groups(&graph).len()), (0, 1), "{shape:?}");
        assert!(graph.describe().contains("tile by tile: steps 0–"), "{}", graph.describe());
    }
}

#[test]
fn rows_that_fill_the_cache_alone_stay_whole() {
    let inputs = [numbers(&[2, 40_000], 1)];
    let graph = fused(softmax, &inputs);
    assert!(graph.memory().unwrap().planned > 0, "{}", graph.describe());
}

#[test]
fn every_kind_of_reduction() {
    let shape = [40, 6, 80];
    let function = |x: &[Tensor]| {
        let shifted = x[0].add(&x[1])?;
        let (most, place) = shifted.max_dim(-1)?;
        let norm = opsmith::vector_norm_with(&shifted, VectorNormOptions::new().dim([2]))?;
        let results = [
            shifted.sum_dim(Some(&[1, 2]))?,
            shifted.sum_dim(Some(&[-1]))?.mul(2.0)?,
            shifted.prod_dim(2)?,
            shifted.var_dim(Some(&[2]))?.sqrt()?,
            shifted.argmax_with(2)?.add(1)?,
            shifted.gt(0.25)?.any_dim(2)?.logical_not()?,
            shifted.gt(-0.4)?.all_dim(-1)?,
            most.sub(&norm)?,
            place,
            shifted.to_dtype(DType::F16)?.mean_dim(Some(&[-1]))?,
            shifted.to_dtype(DType::F64)?.mul(0.1)?.sum_dim(Some(&[2, 1]))?,
        ];
        Ok(results.into())
    };
    let graph = fused(function, &[numbers(&shape, 1), numbers(&[80], 2)]);
    assert!(groups(&graph).iter().sum::<usize>() > 12, "{}", graph.describe());
    // The middle dimension, whose lines lie apart, with a kept one after it.
    let middle = |x: &[Tensor]| {
        let sums = x[0].mul(&x[0])?.sum_dim_with(Some(&[1]), last())?;
        Ok(vec![x[0].div(&sums)?, sums.sqrt()?])
    };
    for shape in [[30, 80, 24], [90, 80, 3], [200, 80, 1], [100, 64, 9]] {
        let graph = fused(middle, &[numbers(&shape, 3)]);
        assert_eq!(groups(&graph).len(), 1, "{}", graph.describe());
    }
}

/// Operators that compute lines, with the calls before and after them.
#[test]
fn operators_of_lines_join_their_neighbours() {
    let scores = |x: &[Tensor]| {
        let powers = x[0].mul(0.125)?.add(&x[1])?.softmax(-1)?.mul(2.0)?;
        let logarithms = powers.sub(0.5)?.log_softmax(-1)?.neg()?;
        Ok(vec![logarithms.cumsum(-1)?.mul(&x[0])?])
    };
    let norms = |x: &[Tensor]| {
        let width = x[1].shape().to_vec();
        let options = LayerNormOptions::new().weight(&x[1]).bias(&x[2]);
        let normal = opsmith::layer_norm_with(&x[0].add(&x[0].tanh()?)?, &width, options)?.gelu()?;
        let options = RmsNormOptions::new().weight(&x[2]).eps(1e-6);
        Ok(vec![opsmith::rms_norm_with(&normal, &width, options)?.mul(0.5)?, normal])
    };
    // Weights whose sizes are those of rows, too, are the same for all of them.
    for shape in [&[300, 100][..], &[128, 128], &[9, 33, 64], &[3, 9000]] {
        let width = *shape.last().unwrap();
        let inputs = [numbers(shape, 1), numbers(&[width], 2), numbers(&[width], 3)];
        let graph = fused(scores, &inputs[..2]);
        assert_eq!((graph.memory().unwrap().planned, groups(&graph).len()), (0, 1), "{}", graph.describe());
        let graph = fused(norms, &inputs);
        assert_eq!(groups(&graph).len(), 1, "{}", graph.describe());
    }
    // Lines of two dimensions, and along one that is not the last.
    let others = |x: &[Tensor]| {
        let options = LayerNormOptions::new().weight(&x[1]);
        let normal = opsmith::layer_norm_with(&x[0].neg()?, [20, 30], options)?.exp()?;
        Ok(vec![normal.softmax(1)?.mul(3.0)?, x[0].mul(2.0)?.softmax(0)?.add(1.0)?])
    };
    fused(others, &[numbers(&[50, 20, 30], 1), numbers(&[20, 30], 2)]);
    let wide = |x: &[Tensor]| Ok(vec![x[0].neg()?.softmax(1)?.mul(3.0)?]);
    assert_eq!(groups(&fused(wide, &[numbers(&[20, 70, 30], 1)])).len(), 1);
}

#[test]
fn gradients_of_lines() {
    let function = |x: &[Tensor]| {
        let leaves: Vec<Tensor> = x.iter().map(|x| x.detach().requires_grad_(true)).collect::<Result<_>>()?;
        let options = LayerNormOptions::new().weight(&leaves[1]).bias(&leaves[2]);
        let normal = opsmith::layer_norm_with(&leaves[0].mul(2.0)?, [x[1].size(0)?], options)?;
        let loss = normal.gelu()?.softmax(-1)?.mul(&x[0])?.add(&normal.log_softmax(-1)?)?.sum()?;
        let leaves: Vec<&Tensor> = leaves.iter().collect();
        let found = autograd::grad(&[&loss], &leaves, &[None], Options::default())?;
        Ok(found.into_iter().flatten().collect())
    };
    for shape in [[200, 96], [100, 100]] {
        let inputs = [numbers(&shape, 1), numbers(&[shape[1]], 2), numbers(&[shape[1]], 3)];
        assert!(!groups(&fused(function, &inputs)).is_empty());
    }
}

/// Kernels take short lines, and lines whose elements lie apart, several at once.
#[test]
fn lines_that_kernels_take_together_are_not_divided() {
    let rows = |x: &[Tensor]| Ok(vec![x[0].mul(2.0)?.sum_dim(Some(&[1]))?.add(1.0)?]);
    for width in [1, 3, 15, 40] {
        assert!(groups(&fused(rows, &[numbers(&[3000, width], 1)])).is_empty());
    }
    let turned = |x: &[Tensor]| {
        let x = x[0].transpose(0, 1)?;
        Ok(vec![x.mul(2.0)?.sub(&x.sum_dim_with(Some(&[1]), last())?)?])
    };
    fused(turned, &[numbers(&[100, 200], 2)]);
    // One line for all rows.
    let expanded = |x: &[Tensor]| {
        let x = x[0].expand([300, 100])?;
        Ok(vec![x.sum_dim_with(Some(&[1]), last())?.mul(&x)?])
    };
    fused(expanded, &[numbers(&[100], 3)]);
}

/// A result of a row that others read as a column's, or in other rows.
#[test]
fn results_that_are_read_in_other_rows_are_not_fused() {
    let columns = |x: &[Tensor]| {
        let sums = x[0].mul(2.0)?.sum_dim(Some(&[1]))?;
        Ok(vec![x[0].add(&sums)?.mul(3.0)?])
    };
    fused(columns, &[numbers(&[128, 128], 1)]);
    let parts = |x: &[Tensor]| {
        let y = x[0].mul(2.0)?;
        let sums = y.narrow(1, 0, 64)?.sum_dim_with(Some(&[1]), last())?;
        let shifted = y.narrow(0, 1, 99)?.add(&y.narrow(0, 0, 99)?)?;
        y.narrow(1, 64, 64)?.mul_(&sums)?;
        Ok(vec![y.sub(&sums)?, shifted])
    };
    fused(parts, &[numbers(&[100, 128], 2)]);
    let first = |x: &[Tensor]| {
        let y = x[0].exp()?;
        Ok(vec![y.sub(&y.sum_dim_with(Some(&[0]), last())?)?, y.sub(&y.select(0, 3)?)?])
    };
    fused(first, &[numbers(&[100, 128], 3)]);
    let reshaped = |x: &[Tensor]| {
        let sums = x[0].mul(2.0)?.sum_dim(Some(&[2]))?;
        Ok(vec![x[0].reshape([6, 20, 80])?.mul(&sums.reshape([6, 20, 1])?)?, sums])
    };
    fused(reshaped, &[numbers(&[10, 12, 80], 4)]);
}

#[test]
fn gradients_of_rows() {
    let function = |x: &[Tensor]| {
        let leaves = [&x[0], &x[1], &x[2]];
        let leaves: Vec<Tensor> =
            leaves.into_iter().map(|x| x.detach().requires_grad_(true)).collect::<Result<_>>()?;
        let result = layer_norm(&leaves)?.remove(0).tanh()?;
        let loss = result.mul(&x[0])?.sum_dim(Some(&[-1]))?.mean()?;
        let leaves: Vec<&Tensor> = leaves.iter().collect();
        let found = autograd::grad(&[&loss], &leaves, &[None], Options::default())?;
        Ok(found.into_iter().flatten().collect())
    };
    for shape in [[200, 96], [33, 700]] {
        let inputs = [numbers(&shape, 1), numbers(&[shape[1]], 2), numbers(&[shape[1]], 3)];
        let graph = fused(function, &inputs);
        assert!(!groups(&graph).is_empty(), "{}", graph.describe());
    }
}

/// Programs of random calls over tensors with rows, columns and parts.
#[test]
fn random_programs_of_rows() {
    for seed in 1..120u64 {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut next = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let choices: Vec<[usize; 4]> = (0..12).map(|_| [next(12), next(64), next(64), next(2)]).collect();
        let shape = [[5, 7, 64], [12, 1, 70], [1, 30, 66], [3, 3, 130]][next(4)];
        let program = |x: &[Tensor]| {
            // Tensors of the whole shape, and of a number a row.
            let (mut whole, mut rows) = (vec![x[0].clone(), x[0].mul(&x[1])?], vec![x[2].clone()]);
            for [kind, one, other, keep] in &choices {
                let (a, b) = (&whole[one % whole.len()].clone(), &whole[other % whole.len()].clone());
                let row = rows[other % rows.len()].clone();
                match kind {
                    0 => whole.push(a.add(b)?.tanh()?),
                    1 => whole.push(a.mul(&row)?),
                    2 => whole.push(a.sub(&x[1])?),
                    3 => rows.push(a.sum_dim_with(Some(&[-1]), last())?),
                    4 => rows.push(a.mul(0.5)?.mean_dim(Some(&[2]))?.unsqueeze(2)?),
                    5 => rows.push(row.abs()?.add(1.0)?.rsqrt()?),
                    6 if *keep == 0 => whole.last().unwrap().narrow(2, 3, 60)?.mul_(&row)?,
                    6 => whole.push(a.amax_with(AmaxOptions::new().dim([1, 2]).keepdim(true))?.add(b)?),
                    7 => rows.push(a.narrow(2, 0, 64)?.sum_dim(Some(&[-1]))?.unsqueeze(-1)?),
                    8 => whole.push(row.expand(shape)?.add(&a.neg()?)?),
                    9 => whole.push(a.reshape([-1, shape[2]])?.exp()?.reshape(shape)?),
                    10 => rows.push(a.var_dim(Some(&[2]))?.unsqueeze(2)?.add(&row)?),
                    _ => whole.push(a.sub(&a.sum_dim_with(Some(&[1]), last())?)?.sin()?),
                }
            }
            let results = whole.iter().rev().take(2).chain(rows.last());
            results.map(|result| result.mul(1.0)).collect::<Result<Vec<Tensor>>>()
        };
        let rows = [shape[0], shape[1], 1];
        let inputs = [numbers(&shape, seed), numbers(&shape[2..], seed + 1), numbers(&rows, seed + 2)];
        let eager = all_bits(&program(&inputs).unwrap());
        let traced = Graph::trace(program, &inputs).unwrap();
        for tile in [1, 70, 150, 400, 1000] {
            let mut graph = traced.optimize(&Passes::all()).with_tiles(tile);
            if seed % 3 == 0 {
                graph.set_threads(2);
            }
            let found = all_bits(&graph.run(&inputs).unwrap());
            assert!(found == eager, "program {seed} in tiles of {tile}\n{}", graph.describe());
        }
    }
}
