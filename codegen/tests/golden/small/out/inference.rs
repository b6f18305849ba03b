// @generated from spec.yaml by codegen/src/emit/infer.rs.
// One operator's share: `opsmith expand NAME`.

/// `plus.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`, declared at spec.yaml:8.
pub fn plus_tensor_infer(args: &[rt::Arg<'_>]) -> rt::Result<rt::op::Inferred> {
    let self_ = args[0].tensor();
    let other = args[1].tensor();
    let alpha = args[2].scalar();
    let compute = rt::infer::dtype::promote(&[self_.into(), other.into(), alpha.into()])?;
    let device = rt::infer::device_of(args)?;
    Ok(rt::op::Inferred::new(
        [(rt::infer::shape::broadcast(&[self_.into(), other.into()])?, compute)],
        compute,
        device,
    ))
}

/// `plus.Scalar(Tensor self, Scalar other, *, Scalar alpha=1) -> Tensor`, declared at spec.yaml:22.
pub fn plus_scalar_infer(args: &[rt::Arg<'_>]) -> rt::Result<rt::op::Inferred> {
    let self_ = args[0].tensor();
    let other = args[1].scalar();
    let alpha = args[2].scalar();
    let compute = rt::infer::dtype::promote(&[self_.into(), other.into(), alpha.into()])?;
    let device = rt::infer::device_of(args)?;
    Ok(rt::op::Inferred::new([(rt::infer::shape::broadcast(&[self_.into()])?, compute)], compute, device))
}

/// `grown(Tensor self, bool twice=False) -> Tensor`, declared at spec.yaml:29.
pub fn grown_infer(args: &[rt::Arg<'_>]) -> rt::Result<rt::op::Inferred> {
    let self_ = args[0].tensor();
    let compute = rt::infer::dtype::promote_float(&[self_.into()])?;
    let device = rt::infer::device_of(args)?;
    Ok(rt::op::Inferred::new([(rt::infer::shape::follow(self_)?, compute)], compute, device))
}

/// `product(Tensor self, Tensor mat2) -> Tensor`, declared at spec.yaml:37.
pub fn product_infer(args: &[rt::Arg<'_>]) -> rt::Result<rt::op::Inferred> {
    let self_ = args[0].tensor();
    let mat2 = args[1].tensor();
    if !((self_.shape().len() as i64) == 2i64) {
        return Err(rt::infer::check_failed("self.dim() == 2", &[self_.shape().len() as i64, 2i64]));
    }
    if !((mat2.shape().len() as i64) == 2i64) {
        return Err(rt::infer::check_failed("mat2.dim() == 2", &[mat2.shape().len() as i64, 2i64]));
    }
    if !(rt::checked::size(self_.shape(), 1i64)?
        == rt::checked::size(mat2.shape(), -2i64)?)
    {
        return Err(rt::infer::check_failed(
            "self.size(1) == mat2.size(-2)",
            &[rt::checked::size(self_.shape(), 1i64)?, rt::checked::size(mat2.shape(), -2i64)?],
        ));
    }
    let compute = rt::infer::dtype::same(&[self_.into(), mat2.into()])?;
    let device = rt::infer::device_of(args)?;
    Ok(rt::op::Inferred::new(
        [
            (
                rt::Dims::from_slice(
                    &[rt::checked::size(self_.shape(), 0i64)?, rt::checked::size(mat2.shape(), 1i64)?],
                ),
                compute,
            ),
        ],
        compute,
        device,
    ))
}

/// `largest(Tensor self, int? dim=None) -> (Tensor values, Tensor indices)`, declared at spec.yaml:50.
pub fn largest_infer(args: &[rt::Arg<'_>]) -> rt::Result<rt::op::Inferred> {
    let self_ = args[0].tensor();
    let compute = rt::infer::dtype::follow(self_)?;
    let device = rt::infer::device_of(args)?;
    Ok(rt::op::Inferred::new(
        [(rt::infer::shape::follow(self_)?, compute), (rt::infer::shape::follow(self_)?, rt::DType::I64)],
        compute,
        device,
    ))
}

/// `spread(Tensor self, Tensor index, int[] size) -> Tensor`, declared at spec.yaml:60.
pub fn spread_infer(args: &[rt::Arg<'_>]) -> rt::Result<rt::op::Inferred> {
    let self_ = args[0].tensor();
    let size = args[2].ints();
    let compute = rt::infer::dtype::follow(self_)?;
    let device = rt::infer::device_of(args)?;
    Ok(rt::op::Inferred::new([(rt::infer::shape::full(size)?, compute)], compute, device))
}

/// `flipped(Tensor(a) self, int dim0, int dim1) -> Tensor(a)`, declared at spec.yaml:69.
pub fn flipped_view(args: &[rt::Arg<'_>]) -> rt::Result<rt::smallvec::SmallVec<[rt::Layout; 1]>> {
    let self_ = args[0].tensor();
    let dim0 = args[1].int();
    let dim1 = args[2].int();
    if !((self_.shape().len() as i64) >= 2i64) {
        return Err(rt::infer::check_failed("self.dim() >= 2", &[self_.shape().len() as i64, 2i64]));
    }
    Ok(std::iter::once(kernels::view::flipped(self_.layout(), dim0, dim1)?).collect())
}

/// `sum_and_growth(Tensor self, Tensor other) -> (Tensor, Tensor)`, declared at spec.yaml:76.
pub fn sum_and_growth_composite(args: &[rt::Arg<'_>]) -> rt::Result<rt::op::Outputs> {
    let self_ = args[0].tensor();
    let other = args[1].tensor();
    let (out0, out1) = {
        let sum = super::raw::plus_tensor(self_, other, rt::Scalar::Int(1i64))?;
        let sum = &sum;
        (sum.clone(), super::raw::grown(sum, false)?)
    };
    Ok([out0, out1].into_iter().collect())
}

/// `item(Tensor self) -> Scalar`, declared at spec.yaml:80.
pub fn item_host(args: &[rt::Arg<'_>]) -> rt::Result<Vec<rt::Value>> {
    let self_ = args[0].tensor();
    if !(self_.shape().iter().product::<i64>() == 1i64) {
        return Err(
            rt::infer::check_failed("self.numel() == 1", &[self_.shape().iter().product::<i64>(), 1i64]),
        );
    }
    Ok(vec![kernels::host::item(self_) ? .into()])
}
