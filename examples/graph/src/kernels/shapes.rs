//! Inference that no rule expresses. The functions run on numbers in eager mode, and on formulas in graphs.

use opsmith::Result;
use opsmith::runtime::Error;
use opsmith::runtime::infer::InferContext;
use opsmith::runtime::infer::symbolic::Size;

/// The position of `project` in the signature, independent of absent inputs before it.
const PROJECT: usize = 10;

/// `output` has the shape of `cell`; `state` has as many columns as `project`, if that is present.
pub fn gated_cell(context: &mut InferContext<'_>) -> Result<()> {
    let (rows, width) = (context.size("x", 0)?, context.size("weight", 1)?);
    for (name, dim, wanted) in
        [("weight", 0, context.size("x", 1)?), ("hidden", 0, rows.clone()), ("cell", 1, width.clone())]
    {
        let fits = context.equal(&context.size(name, dim)?, &wanted);
        context.require(fits, &format!("size {dim} of `{name}` must fit the other inputs"))?;
    }
    let columns = match context.optional_input(PROJECT)? {
        Some(_) => context.size(PROJECT, 1)?,
        None => width.clone(),
    };
    let dtype = context.dtype("x")?;
    context.set_shape("output", [rows.clone(), width])?;
    context.set_dtype("output", dtype)?;
    context.set_shape("state", [rows, columns])?;
    context.set_dtype("state", dtype)
}

/// The rows of all parts together.
pub fn join_rows(context: &mut InferContext<'_>) -> Result<()> {
    let mut rows = Size::Const(0);
    let mut columns = None;
    let mut dtype = None;
    for position in 0..context.instances("parts")? {
        // By declared position and index, since each input may be a list.
        let part = context.variadic_input(0, position)?.ok_or_else(|| Error::argument("a part is absent"))?;
        let sizes = part.shape.sizes().unwrap_or_default();
        let [height, width] = sizes else {
            return Err(Error::shape(format!("part {position} is no matrix")));
        };
        rows = rows + height.clone();
        columns.get_or_insert_with(|| width.clone());
        dtype.get_or_insert(part.dtype);
    }
    let (Some(columns), Some(dtype)) = (columns, dtype) else {
        return Err(Error::value("there are no parts to join"));
    };
    context.set_shape(0, [rows, columns])?;
    context.set_dtype(0, dtype)
}
