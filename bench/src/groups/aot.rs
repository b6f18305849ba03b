//! `aot`: what a call of a custom kernel costs, with shape (4, 5), two inputs, a workspace and two attributes.

use opsmith::runtime::aot::{AttrType, Declaration, Operator};
use opsmith::{Arg, DType, Result};

use super::ones;
use crate::harness::{CALL, Harness};

pub fn run(harness: &mut Harness) -> Result<()> {
    if !harness.wants("aot.") {
        return Ok(());
    }
    let x = ones(&[4, 5])?;
    for (name, kernel) in [
        // All but the kernel itself.
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
    Ok(())
}

fn declaration(kernel: &str) -> Declaration {
    Declaration::new("bench", kernel).unlisted().input("x").input("y").output("sums").dtypes([DType::F32; 3])
}
