//! `aot`: the cost of a call of a custom kernel, with shape (4, 5), two inputs, a workspace and two attributes.

use std::time::{Duration, Instant};

use opsmith::{Arg, DType, Result};
use opsmith_aot::{AttrType, Declaration, Operator};

use super::ones;
use crate::harness::{CALL, Harness};

pub fn run(harness: &mut Harness) -> Result<()> {
    if !harness.wants("aot.") {
        return Ok(());
    }
    let x = ones(&[4, 5])?;
    for (name, kernel) in [
        // The overhead without the kernel itself.
        ("nothing", concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/nothing.cc:Nothing")),
        (
            "add_reduce",
            concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/aot/kernels/add_reduce.cc:CustomKernel"),
        ),
    ] {
        let fixed = declaration(kernel).attribute("axis", 1).attribute("keep_dim", false).declare()?;
        harness.case(&format!("aot.{name}_4x5"), CALL, || fixed.call(&[&x, &x]));
        let given = declaration(kernel)
            .attribute_at_call("axis", AttrType::Int)
            .attribute_at_call("keep_dim", AttrType::Bool)
            .declare()?;
        let args = [Arg::Tensor(&x), Arg::Tensor(&x), Arg::Int(1), Arg::Bool(false)];
        harness.case(&format!("aot.{name}_4x5_given"), CALL, || given.invoke(&args));
        [fixed, given].into_iter().for_each(Operator::unload);
    }
    from_files(harness)
}

/// From a declaration to the first result: from the cache, and from the source without the compiler's own time.
fn from_files(harness: &mut Harness) -> Result<()> {
    let x = ones(&[4, 5])?;
    let cached = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/aot/kernels/add_reduce.cc:CustomKernel");
    harness.case("aot.first_from_cache", CALL, || {
        let op = declaration(cached).attribute("axis", 1).declare()?;
        let result = op.call(&[&x, &x]);
        op.unload();
        result
    });
    let process = std::process::id();
    let mut number = 0;
    harness.timed("aot.first_from_source_beyond_compiler", CALL, |count| {
        let mut total = Duration::ZERO;
        for _ in 0..count {
            // A different flag, so that it is not in the cache.
            number += 1;
            let start = Instant::now();
            let new = declaration(cached).attribute("axis", 1).flag(format!("-DNUMBER={process}{number:04}"));
            let Ok(op) = new.declare() else { return Duration::MAX };
            let result = op.call(&[&x, &x]);
            total += start.elapsed();
            let compiling = op.compile_time().ok().flatten().filter(|_| result.is_ok());
            total -= compiling.unwrap_or_default();
            op.unload();
        }
        total
    });
    Ok(())
}

fn declaration(kernel: &str) -> Declaration {
    Declaration::new("bench", kernel).unlisted().input("x").input("y").output("sums").dtypes([DType::F32; 3])
}
