//! `graph`: the cost of a graph beyond its kernels.
//!
//! The chain consists of 1,000 additions of one element. A kernel of one element is not free, so `graph.kernels_1000`
//! calls the same kernel as often with prepared arguments, and nothing else. The cost of the graph is the difference to
//! `graph.run_1000`: the line `graph.overhead` has it per node (`overhead_ns`), with both times.

use opsmith::runtime::internals::{run_in_turn, until_out_of_memory, with_one_shape};
use opsmith::runtime::op::KernelCall;
use opsmith::runtime::{Arg, Backend};
use opsmith::{AmaxOptions, DType, MeanDimOptions, Result, SumDimOptions, Tensor, TensorOps};
use opsmith_graph::{Graph, InputSpec, Pass, Passes};
use serde_json::json;

use super::normal;
use crate::harness::{CALL, Harness, Work};

pub fn run(harness: &mut Harness) -> Result<()> {
    if !harness.wants("graph.") {
        return Ok(());
    }
    chains(harness)?;
    layers(harness)?;
    fusion(harness)?;
    branches(harness)
}

fn chain(x: &Tensor, length: usize) -> Result<Tensor> {
    (0..length).try_fold(x.clone(), |sum, _| sum.add(x))
}

fn chains(harness: &mut Harness) -> Result<()> {
    let x = Tensor::of(&[1.0f32]);
    let small = Graph::trace(|x: &[Tensor]| chain(&x[0], 1000), [&x])?;
    let mut outputs = Vec::new();
    let run = harness.case("graph.run_1000", CALL, || small.run_into(&[&x], &mut outputs));
    let kernels = kernels(harness, &x, 1000)?;
    if let (Some(run), Some(kernels)) = (run, kernels) {
        let [run, kernels] = [run, kernels].map(|nanoseconds| nanoseconds / 1000.0);
        let fields = json!({"node_ns": run, "kernel_ns": kernels, "overhead_ns": run - kernels});
        harness.line("graph.overhead", fields);
    }
    let mut out = Tensor::of(&[0.0f32]);
    harness.case("graph.out_forms_1000", CALL, || (0..1000).try_for_each(|_| x.add_out(&x, &mut out)));
    harness.case("graph.eager_1000", CALL, || chain(&x, 1000));
    let optimised = small.optimize(&Passes::all());
    harness.case("graph.run_1000_optimised", CALL, || optimised.run_into(&[&x], &mut outputs));

    let fixed = || Graph::trace(|x: &[Tensor]| chain(&x[0], 10_000), [&x]);
    harness.case("graph.trace_10000", CALL, fixed);
    let spec = InputSpec::new(DType::F32, ["n".into()]);
    let symbolic = Graph::trace(|x: &[Tensor]| chain(&x[0], 10_000), [spec])?;
    harness.case("graph.infer_10000", CALL, || symbolic.check_at(&[("n", 8)]));
    harness.case("graph.check_10000", CALL, || symbolic.check());
    harness.case("graph.plan_10000", CALL, || symbolic.memory_at(&[("n", 8)]));
    harness.case("graph.optimise_10000", CALL, || symbolic.optimize(&Passes::all()));
    Ok(())
}

/// Chains of element-wise calls, alone and around reductions of rows, eager, and as graphs with and without fusion.
fn fusion(harness: &mut Harness) -> Result<()> {
    for (name, rows) in [("1e5", 100), ("1e6", 1000), ("1e7", 10_000)] {
        let (x, bias) = (normal(&[rows, 1000])?, normal(&[1000])?);
        let inputs = [x, bias];
        let mut case = |what: &str, function: fn(&[Tensor]) -> Result<Tensor>| {
            let work = Work::memory(8.0, 1000.0 * rows as f64);
            harness.case(&format!("graph.eager_{what}.{name}"), work, || function(&inputs));
            let graph = Graph::trace(function, &inputs)?;
            let mut outputs = Vec::new();
            for (kind, passes) in [("unfused", Passes::all().without(Pass::Fusion)), ("fused", Passes::all())]
            {
                let graph = graph.optimize(&passes);
                let run = || graph.run_into(&inputs, &mut outputs);
                harness.case(&format!("graph.{kind}_{what}.{name}"), work, run);
            }
            Ok::<_, opsmith::Error>(())
        };
        case("gate", gate)?;
        case("rms_norm", rms_norm)?;
        case("softmax", softmax)?;
        case("distance", distance)?;
    }
    Ok(())
}

/// A gated unit: a bias that is broadcast, two activations, and products.
fn gate(x: &[Tensor]) -> Result<Tensor> {
    let shifted = x[0].add(&x[1])?;
    let gate = shifted.mul(0.5)?.add(1.0)?.relu()?;
    shifted.mul(&gate)?.sub(&x[0])?.mul(0.25)
}

/// A normalisation by the root of the mean square, written out.
fn rms_norm(x: &[Tensor]) -> Result<Tensor> {
    let mean = x[0].mul(&x[0])?.mean_dim_with(Some(&[-1]), MeanDimOptions::new().keepdim(true))?;
    x[0].mul(&mean.add(1e-6)?.rsqrt()?)?.mul(&x[1])
}

/// A softmax of scaled numbers, written out.
fn softmax(x: &[Tensor]) -> Result<Tensor> {
    let scaled = x[0].mul(0.125)?;
    let powers = scaled.sub(&scaled.amax_with(AmaxOptions::new().dim([-1]).keepdim(true))?)?.exp()?;
    powers.div(&powers.sum_dim_with(Some(&[-1]), SumDimOptions::new().keepdim(true))?)
}

/// The distance of each row from one, whose differences are no result.
fn distance(x: &[Tensor]) -> Result<Tensor> {
    let difference = x[0].sub(&x[1])?;
    difference.mul(&difference)?.sum_dim(Some(&[-1]))?.sqrt()
}

/// The kernels of a chain alone, called as a plan calls them: over memory that alternates, with one shape known.
fn kernels(harness: &mut Harness, x: &Tensor, length: usize) -> Result<Option<f64>> {
    let (op, _) = opsmith::LIBRARY.get("add.Tensor")?;
    let kernel = op.kernels.get(Backend::Cpu, DType::F32);
    let kernel = kernel.ok_or_else(|| opsmith::Error::value("the operator has no kernel"))?;
    let places = [Tensor::of(&[0.0f32]), Tensor::of(&[0.0f32])];
    // A handle for each tensor of the chain, as in a plan.
    let tensors: Vec<Tensor> = (0..length).map(|number| places[number % 2].detach()).collect();
    let args = |number: usize| {
        let before = if number == 0 { x } else { &tensors[number - 1] };
        [Arg::Tensor(before), Arg::Tensor(x), Arg::Scalar(1.into())]
    };
    let args: Vec<[Arg<'_>; 3]> = (0..length).map(args).collect();
    let call = |(args, out): (&[Arg<'_>; 3], &Tensor)| {
        // SAFETY: the arguments and the output have the kernel's dtype and one shape, and only this thread uses them.
        unsafe { run_in_turn(kernel, &with_one_shape(KernelCall::new(op, args, std::slice::from_ref(out)))) }
    };
    let all = || until_out_of_memory(|| args.iter().zip(&tensors).try_for_each(call)).flatten();
    Ok(harness.case("graph.kernels_1000", CALL, all))
}

/// Layers with products, views and broadcasting: 10,000 nodes, with a batch of unknown size.
fn layers(harness: &mut Harness) -> Result<()> {
    let (weight, bias) = (normal(&[8, 8])?, normal(&[8])?);
    let layer = |x: Tensor| {
        let rows = x.reshape([x.size(0)? * 2, 4])?.transpose(0, 1)?.transpose(0, 1)?;
        let rows = rows.reshape([x.size(0)?, 8])?.narrow(1, 0, 8)?;
        rows.mm(&weight)?.add(&bias)?.relu()?.mul(&x)?.add(&x)
    };
    let spec = || InputSpec::new(DType::F32, ["n".into(), 8.into()]);
    let graph = Graph::trace(|x: &[Tensor]| (0..1000).try_fold(x[0].clone(), |x, _| layer(x)), [spec()])?;
    harness.case("graph.infer_layers", CALL, || graph.check_at(&[("n", 8)]));
    harness.case("graph.check_layers", CALL, || graph.check());
    Ok(())
}

/// Two branches of equal duration.
fn branches(harness: &mut Harness) -> Result<()> {
    let x = normal(&[512, 512])?;
    let function = |x: &[Tensor]| {
        let branch = |x: &Tensor| (0..4).try_fold(x.clone(), |y, _| y.mm(x)?.tanh());
        branch(&x[0])?.add(&branch(&x[0].transpose(0, 1)?)?)
    };
    let graph = Graph::trace(function, [&x])?;
    let work = Work::flops(8.0 * 2.0 * 512.0 * 512.0 * 512.0);
    let mut outputs = Vec::new();
    harness.case("graph.branches_2", work, || graph.run_into(&[&x], &mut outputs));
    let mut together = graph.clone();
    together.set_threads(2);
    harness.case("graph.branches_2_together", work, || together.run_into(&[&x], &mut outputs));

    // Kernels with scratch memory, from each thread's own cache.
    let x = normal(&[256, 1024])?;
    let function = |x: &[Tensor]| {
        let branch = |x: &Tensor| (0..4).try_fold(x.clone(), |y, _| y.softmax(0)?.cumsum(1)?.sub(x));
        opsmith::cat(&[&branch(&x[0].cos()?)?, &branch(&x[0].sin()?)?])
    };
    let graph = Graph::trace(function, [&x])?;
    harness.case("graph.branches_2_scratch", CALL, || graph.run_into(&[&x], &mut outputs));
    let mut together = graph.clone();
    together.set_threads(2);
    harness.case("graph.branches_2_scratch_together", CALL, || together.run_into(&[&x], &mut outputs));
    Ok(())
}
