//! Chains of element-wise calls as one kernel.

use opsmith::{DType, Result, Tensor, TensorOps};
use opsmith_graph::{Graph, Pass, Passes, Place};

use super::{fused, kernels, moved, numbers};

pub fn patterns() {
    let gate = |x: &[Tensor]| Ok(vec![x[0].add(&x[1])?.tanh()?.mul(&x[0].sigmoid()?)?]);
    // One shape; a row and a column that are broadcast; a number.
    for other in [&[6, 50][..], &[50], &[6, 1], &[]] {
        let graph = fused(gate, &[numbers(&[6, 50], 1), numbers(other, 2)]);
        assert_eq!(kernels(&graph), [4], "{}", graph.describe());
        let report = graph.memory().unwrap();
        let registers = report.buffers.iter().filter(|buffer| buffer.place == Place::Register).count();
        assert_eq!((report.planned, registers), (0, 3), "{}", graph.describe());
        assert!(graph.describe().contains("one kernel each: steps 0–3"), "{}", graph.describe());
    }
    // Results inside the chain are outputs, too; numbers of the call; conditions; dtypes of results.
    let several = |x: &[Tensor]| {
        let scaled = x[0].mul(0.25)?.clamp_with(opsmith::ClampOptions::new().min(-0.1))?;
        let positive = scaled.gt(&x[1])?;
        let chosen = scaled.where_(&positive, &x[1])?;
        Ok(vec![scaled, chosen.exp()?, positive])
    };
    let graph = fused(several, &[numbers(&[700], 3), numbers(&[700], 4)]);
    assert_eq!(kernels(&graph), [5], "{}", graph.describe());
    // Transposed and sliced operands, views between calls, more elements than a block has.
    let turned = |x: &[Tensor]| {
        let y = x[0].transpose(0, 1)?.mul(&x[1])?;
        Ok(vec![y.neg()?.add(&x[1].narrow(1, 0, 90)?.abs()?)?, y.unsqueeze(0)?.sin()?])
    };
    fused(turned, &[numbers(&[90, 40], 5), numbers(&[40, 90], 6)]);
    // In place: the last value of a buffer is the one that is kept.
    let in_place = |x: &[Tensor]| {
        let y = x[0].mul(2.0)?;
        y.add_(&x[1])?;
        y.mul_(&y.exp()?)?;
        Ok(vec![y])
    };
    let graph = fused(in_place, &[numbers(&[33, 5], 7), numbers(&[5], 8)]);
    assert_eq!(kernels(&graph).len(), 1, "{}", graph.describe());
    // Parts of a buffer that is written are other elements, so they end the chain.
    let parts = |x: &[Tensor]| {
        let y = x[0].mul(2.0)?;
        y.narrow(0, 0, 15)?.mul_(&y.narrow(0, 15, 15)?)?;
        Ok(vec![y.narrow(0, 5, 20)?.add(&y.narrow(0, 0, 20)?)?])
    };
    fused(parts, &[numbers(&[30, 4], 9)]);
    kinds();
}

fn kinds() {
    // Reductions and products stay kernels of their own.
    let broken = |x: &[Tensor]| {
        let y = x[0].mul(2.0)?.exp()?;
        let sums = y.sum_dim(Some(&[1]))?.unsqueeze(1)?;
        Ok(vec![y.div(&sums)?.add(1.0)?.sqrt()?.matmul(&x[1])?.relu()?.neg()?])
    };
    let graph = fused(broken, &[numbers(&[12, 8], 10), numbers(&[8, 3], 11)]);
    assert_eq!(kernels(&graph), [2, 3, 2], "{}", graph.describe());
    // Integers, halves, complex numbers.
    for dtype in [DType::I32, DType::U8, DType::F16, DType::BF16, DType::F64, DType::C64] {
        let inputs =
            [numbers(&[300], 12), numbers(&[300], 13)].map(|x| x.mul(20.0).unwrap().to_dtype(dtype).unwrap());
        let graph = fused(|x| Ok(vec![x[0].mul(&x[1])?.add(&x[0])?.square()?]), &inputs);
        assert_eq!(kernels(&graph), [3], "{}", graph.describe());
    }
    // More calls than one kernel takes.
    let long = |x: &[Tensor]| {
        let mut y = x[0].clone();
        for number in 0..60 {
            y = if number % 3 == 0 { y.sin()? } else { y.mul(1.01)?.add(&x[0])? };
        }
        Ok(vec![y])
    };
    let graph = fused(long, &[numbers(&[100], 14)]);
    assert!(
        kernels(&graph).iter().sum::<usize>() == 100 && kernels(&graph).len() < 8,
        "{:?}",
        kernels(&graph)
    );
}

/// Casts between calls, from every dtype to every other.
pub fn conversions() {
    let computed: Vec<DType> = DType::ALL.into_iter().filter(|dtype| !dtype.is_stored()).collect();
    for from in &computed {
        let values = [-300.7, -2.5, -1.0, -0.3, 0.0, 0.3, 1.0, 2.5, 90.2, 255.0, 70_000.5, 3e9];
        let x = Tensor::of(&values).to_dtype(*from).unwrap();
        let targets: Vec<DType> = computed.iter().copied().filter(|to| to != from).collect();
        let function = |x: &[Tensor]| {
            let y = x[0].add(&x[0])?;
            targets.iter().map(|to| y.to_dtype(*to)).collect::<Result<Vec<Tensor>>>()
        };
        let graph = fused(function, &[x]);
        assert!(!kernels(&graph).is_empty(), "{from}: {}", graph.describe());
    }
}

/// Programs of random calls over tensors with rows, columns, parts and casts, also in place.
pub fn random_programs() {
    for seed in 1..40u64 {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut next = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let choices: Vec<[usize; 3]> = (0..10).map(|_| [next(9), next(64), next(64)]).collect();
        let shape = [[5, 7, 12], [12, 1, 9], [1, 30, 6]][next(3)];
        let program = |x: &[Tensor]| {
            let mut whole = vec![x[0].clone(), x[0].mul(&x[1])?];
            for [kind, one, other] in &choices {
                let (a, b) = (whole[one % whole.len()].clone(), whole[other % whole.len()].clone());
                match kind {
                    0 => whole.push(a.add(&b)?.tanh()?),
                    1 => whole.push(a.mul(&x[2])?),
                    2 => whole.push(a.sub(&x[1])?.abs()?),
                    3 => whole.push(a.to_dtype(DType::F16)?.mul(0.5)?.to_dtype(DType::F32)?),
                    4 => whole.push(a.where_(&a.gt(&b)?, &b)?),
                    5 => whole.push(a.reshape([-1, shape[2]])?.exp()?.reshape(shape)?),
                    6 => whole[1].add_(&a)?,
                    7 => whole.push(a.transpose(0, 1)?.neg()?.transpose(0, 1)?.add(&b)?),
                    _ => whole.last().unwrap().narrow(2, 1, 4)?.mul_(0.5)?,
                }
            }
            whole.iter().skip(1).map(|result| result.mul(1.0)).collect::<Result<Vec<Tensor>>>()
        };
        let inputs = [
            numbers(&shape, seed),
            numbers(&shape[2..], seed + 1),
            numbers(&[shape[0], shape[1], 1], seed + 2),
        ];
        fused(program, &inputs);
    }
}

pub fn launched(fuse: bool) {
    let function = |x: &[Tensor]| {
        let y = x[0].add(&x[1])?.mul(0.5)?.tanh()?;
        Ok(vec![y.sin()?.mul(&y)?.add(1.0)?.sqrt()?.neg()?.exp()?])
    };
    let inputs = moved(&[numbers(&[64], 1), numbers(&[64], 2)]);
    let passes = if fuse { Passes::all() } else { Passes::all().without(Pass::Fusion) };
    let graph = Graph::trace(function, &inputs).unwrap().optimize(&passes);
    for _ in 0..10 {
        // Outputs at other addresses each time, so that nothing is recorded.
        let outputs = graph.run(&inputs).unwrap();
        std::mem::forget(outputs);
    }
    assert_eq!(graph.replays().recorded, 0);
}
