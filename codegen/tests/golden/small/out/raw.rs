// @generated from spec.yaml by codegen/src/emit/api.rs.
// One operator's share: `opsmith expand NAME`.

rt::raw! {
    /// `plus.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`, declared at spec.yaml:8.
    fn plus_tensor(self_: &Tensor, other: &Tensor, alpha: Scalar) -> Tensor =
        invoke_single(&defs::PLUS_TENSOR);
    /// `plus.Scalar(Tensor self, Scalar other, *, Scalar alpha=1) -> Tensor`, declared at spec.yaml:24.
    fn plus_scalar(self_: &Tensor, other: Scalar, alpha: Scalar) -> Tensor =
        invoke_single(&defs::PLUS_SCALAR);
    /// `grown(Tensor self, bool twice=False) -> Tensor`, declared at spec.yaml:31.
    fn grown(self_: &Tensor, twice: bool) -> Tensor = invoke_single(&defs::GROWN);
    /// `product(Tensor self, Tensor mat2) -> Tensor`, declared at spec.yaml:39.
    fn product(self_: &Tensor, mat2: &Tensor) -> Tensor = invoke_single(&defs::PRODUCT);
    /// `largest(Tensor self, int? dim=None) -> (Tensor values, Tensor indices)`, declared at spec.yaml:52.
    fn largest(self_: &Tensor, dim: Option<i64>) -> (Tensor, Tensor) = invoke_several(&defs::LARGEST);
    /// `spread(Tensor self, Tensor index, int[] size) -> Tensor`, declared at spec.yaml:65.
    fn spread(self_: &Tensor, index: &Tensor, size: &[i64]) -> Tensor = invoke_single(&defs::SPREAD);
    /// `flipped(Tensor(a) self, int dim0, int dim1) -> Tensor(a)`, declared at spec.yaml:74.
    fn flipped(self_: &Tensor, dim0: i64, dim1: i64) -> Tensor = invoke_single(&defs::FLIPPED);
    /// `sum_and_growth(Tensor self, Tensor other) -> (Tensor, Tensor)`, declared at spec.yaml:81.
    fn sum_and_growth(self_: &Tensor, other: &Tensor) -> (Tensor, Tensor) =
        invoke_several(&defs::SUM_AND_GROWTH);
    /// `item(Tensor self) -> Scalar`, declared at spec.yaml:85.
    fn item(self_: &Tensor) -> Scalar = invoke_value(&defs::ITEM);
}
