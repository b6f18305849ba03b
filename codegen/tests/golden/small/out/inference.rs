// @generated from spec.yaml by codegen/src/emit/infer.rs.
// One operator's share: `opsmith expand NAME`.

/// `plus.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`, declared at spec.yaml:8.
pub fn plus_tensor_infer(args: &[Arg<'_>]) -> Result<Inferred> {
    let (self_, other, alpha) = (args[0].tensor(), args[1].tensor(), args[2].scalar());
    let compute = dtype::promote(&[self_.into(), other.into(), alpha.into()])?;
    Inferred::of(args, compute, || Ok([(shape::broadcast(&[self_.into(), other.into()])?, compute)]))
}

/// `plus.Scalar(Tensor self, Scalar other, *, Scalar alpha=1) -> Tensor`, declared at spec.yaml:24.
pub fn plus_scalar_infer(args: &[Arg<'_>]) -> Result<Inferred> {
    let (self_, other, alpha) = (args[0].tensor(), args[1].scalar(), args[2].scalar());
    let compute = dtype::promote(&[self_.into(), other.into(), alpha.into()])?;
    Inferred::of(args, compute, || Ok([(shape::broadcast(&[self_.into()])?, compute)]))
}

/// `grown(Tensor self, bool twice=False) -> Tensor`, declared at spec.yaml:31.
pub fn grown_infer(args: &[Arg<'_>]) -> Result<Inferred> {
    let self_ = args[0].tensor();
    let compute = dtype::promote_float(&[self_.into()])?;
    Inferred::of(args, compute, || Ok([(shape::follow(self_)?, compute)]))
}

/// `product(Tensor self, Tensor mat2) -> Tensor`, declared at spec.yaml:39.
pub fn product_infer(args: &[Arg<'_>]) -> Result<Inferred> {
    let (self_, mat2) = (args[0].tensor(), args[1].tensor());
    if !((self_.shape().len() as i64) == 2i64) {
        return Err(rt::infer::check_failed("self.dim() == 2", &[self_.shape().len() as i64, 2i64]));
    }
    if !((mat2.shape().len() as i64) == 2i64) {
        return Err(rt::infer::check_failed("mat2.dim() == 2", &[mat2.shape().len() as i64, 2i64]));
    }
    if !(checked::size(self_.shape(), 1i64)? == checked::size(mat2.shape(), -2i64)?) {
        return Err(rt::infer::check_failed(
            "self.size(1) == mat2.size(-2)",
            &[checked::size(self_.shape(), 1i64)?, checked::size(mat2.shape(), -2i64)?],
        ));
    }
    let compute = dtype::same(&[self_.into(), mat2.into()])?;
    Inferred::of(
        args,
        compute,
        || Ok([
            (
                Dims::from_slice(&[checked::size(self_.shape(), 0i64)?, checked::size(mat2.shape(), 1i64)?]),
                compute,
            ),
        ]),
    )
}

/// `largest(Tensor self, int? dim=None) -> (Tensor values, Tensor indices)`, declared at spec.yaml:52.
pub fn largest_infer(args: &[Arg<'_>]) -> Result<Inferred> {
    let self_ = args[0].tensor();
    let compute = dtype::follow(self_)?;
    Inferred::of(
        args,
        compute,
        || Ok([(shape::follow(self_)?, compute), (shape::follow(self_)?, DType::I64)]),
    )
}

/// `spread(Tensor self, Tensor index, int[] size) -> Tensor`, declared at spec.yaml:65.
pub fn spread_infer(args: &[Arg<'_>]) -> Result<Inferred> {
    let (self_, size) = (args[0].tensor(), args[2].ints());
    let compute = dtype::follow(self_)?;
    Inferred::of(args, compute, || Ok([(shape::full(size)?, compute)]))
}

/// `flipped(Tensor(a) self, int dim0, int dim1) -> Tensor(a)`, declared at spec.yaml:74.
pub fn flipped_view(args: &[Arg<'_>]) -> Result<Layout> {
    let (self_, dim0, dim1) = (args[0].tensor(), args[1].int(), args[2].int());
    if !((self_.shape().len() as i64) >= 2i64) {
        return Err(rt::infer::check_failed("self.dim() >= 2", &[self_.shape().len() as i64, 2i64]));
    }
    kernels::view::flipped(self_.layout(), dim0, dim1)
}

/// `sum_and_growth(Tensor self, Tensor other) -> (Tensor, Tensor)`, declared at spec.yaml:81.
pub fn sum_and_growth_composite(args: &[Arg<'_>]) -> Result<rt::op::Outputs> {
    let (self_, other) = (args[0].tensor(), args[1].tensor());
    let (out0, out1) = {
        let sum = raw::plus_tensor(self_, other, Scalar::Int(1))?;
        let sum = &sum;
        (sum.clone(), raw::grown(sum, false)?)
    };
    Ok([out0, out1].into_iter().collect())
}

/// `item(Tensor self) -> Scalar`, declared at spec.yaml:85.
pub fn item_host(args: &[Arg<'_>]) -> Result<Vec<Value>> {
    let self_ = args[0].tensor();
    if !(self_.shape().iter().product::<i64>() == 1i64) {
        return Err(
            rt::infer::check_failed("self.numel() == 1", &[self_.shape().iter().product::<i64>(), 1i64]),
        );
    }
    Ok(vec![kernels::host::item(self_) ? .into()])
}
