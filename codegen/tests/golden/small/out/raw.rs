// @generated from spec.yaml by codegen/src/emit/api.rs.
// One operator's share: `opsmith expand NAME`.

/// `plus.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`, declared at spec.yaml:8.
pub fn plus_tensor(self_: &rt::Tensor, other: &rt::Tensor, alpha: rt::Scalar) -> rt::Result<rt::Tensor> {
    rt::call::invoke_single(&super::defs::PLUS_TENSOR, &[self_.into(), other.into(), alpha.into()])
}

/// `plus.Scalar(Tensor self, Scalar other, *, Scalar alpha=1) -> Tensor`, declared at spec.yaml:22.
pub fn plus_scalar(self_: &rt::Tensor, other: rt::Scalar, alpha: rt::Scalar) -> rt::Result<rt::Tensor> {
    rt::call::invoke_single(&super::defs::PLUS_SCALAR, &[self_.into(), other.into(), alpha.into()])
}

/// `grown(Tensor self, bool twice=False) -> Tensor`, declared at spec.yaml:29.
pub fn grown(self_: &rt::Tensor, twice: bool) -> rt::Result<rt::Tensor> {
    rt::call::invoke_single(&super::defs::GROWN, &[self_.into(), twice.into()])
}

/// `product(Tensor self, Tensor mat2) -> Tensor`, declared at spec.yaml:37.
pub fn product(self_: &rt::Tensor, mat2: &rt::Tensor) -> rt::Result<rt::Tensor> {
    rt::call::invoke_single(&super::defs::PRODUCT, &[self_.into(), mat2.into()])
}

/// `largest(Tensor self, int? dim=None) -> (Tensor values, Tensor indices)`, declared at spec.yaml:50.
pub fn largest(self_: &rt::Tensor, dim: Option<i64>) -> rt::Result<(rt::Tensor, rt::Tensor)> {
    let [out0, out1] = rt::call::several(
        rt::call::invoke(&super::defs::LARGEST, &[self_.into(), dim.into()])?,
    );
    Ok((out0, out1))
}

/// `spread(Tensor self, Tensor index, int[] size) -> Tensor`, declared at spec.yaml:60.
pub fn spread(self_: &rt::Tensor, index: &rt::Tensor, size: &[i64]) -> rt::Result<rt::Tensor> {
    rt::call::invoke_single(&super::defs::SPREAD, &[self_.into(), index.into(), size.into()])
}

/// `flipped(Tensor(a) self, int dim0, int dim1) -> Tensor(a)`, declared at spec.yaml:69.
pub fn flipped(self_: &rt::Tensor, dim0: i64, dim1: i64) -> rt::Result<rt::Tensor> {
    rt::call::invoke_single(&super::defs::FLIPPED, &[self_.into(), dim0.into(), dim1.into()])
}

/// `sum_and_growth(Tensor self, Tensor other) -> (Tensor, Tensor)`, declared at spec.yaml:76.
pub fn sum_and_growth(self_: &rt::Tensor, other: &rt::Tensor) -> rt::Result<(rt::Tensor, rt::Tensor)> {
    let [out0, out1] = rt::call::several(
        rt::call::invoke(&super::defs::SUM_AND_GROWTH, &[self_.into(), other.into()])?,
    );
    Ok((out0, out1))
}

/// `item(Tensor self) -> Scalar`, declared at spec.yaml:80.
pub fn item(self_: &rt::Tensor) -> rt::Result<rt::Scalar> {
    rt::call::host_result(rt::call::invoke_host(&super::defs::ITEM, &[self_.into()])?)
}
