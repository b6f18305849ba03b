// @generated from spec.yaml by codegen/src/emit/words.rs.
// One operator's share: `opsmith expand NAME`.

pub static PLUS_TENSOR: Words = Words::of(
    [
        "each element: `self + (alpha * other)`",
        "\n\n",
        "shape `broadcast(self, other)` (the shapes of the operands, broadcast together); dtype `promote(self, other, alpha)` (the operands' promoted dtype)",
        "`self`: `grad`\n`other`: `grown(grad)`",
        "if `self`, `other` cannot be broadcast together\nif the dtype to compute in is outside `int64`, `bfloat16`, `float32`\nif tensors are on several devices",
    ],
    Some(ExampleCall {
        code: "let x = Tensor::from_slice(&[-0.8f32, 0.87, 0.53, 0.2, -0.13, -0.47], &[2, 3])?;\nlet other = Tensor::from_slice(&[1.0f32, 2.0, 3.0], &[3])?;\nlet result = plus_with(&x, &other, PlusOptions::new().alpha(2))?;",
        sample: 0,
        tensors: &[
            ExampleTensor {
                dtype: DType::F32,
                shape: &[2, 3],
                numbers: &[-0.8, 0.87, 0.53, 0.2, -0.13, -0.47],
            },
            ExampleTensor { dtype: DType::F32, shape: &[3], numbers: &[1.0, 2.0, 3.0] },
        ],
    }),
);

pub static PLUS_SCALAR: Words = Words::of(
    [
        "each element: `self + (alpha * other)`",
        "\n\n",
        "shape `broadcast(self)` (the shapes of the operands, broadcast together); dtype `promote(self, other, alpha)` (the operands' promoted dtype)",
        "`self`: `grad`",
        "if the dtype to compute in is outside `int64`, `bfloat16`, `float32`",
    ],
    None,
);

pub static GROWN: Words = Words::of(
    [
        "each element: `if twice { { let once = grow(self); grow(once) } } else { grow(self) }`",
        "\n",
        "shape `follow(self)` (the shape of the given input); dtype `promote_float(self)` (the operands' promoted dtype; an integer result becomes the default float)",
        "`self`: `not_implemented(\"of an example\")`",
        "if the dtype to compute in is outside `float32`",
    ],
    None,
);

pub static PRODUCT: Words = Words::of(
    [
        "",
        "\n",
        "shape `[self.size(0), mat2.size(1)]` (2 dimensions: size 0 of `self` by size 1 of `mat2`); dtype `same(self, mat2)` (the dtype all operands share; different dtypes are an error)",
        "`self`: `product(grad, flipped(mat2, 0, 1))`\n`mat2`: `flipped(self, 0, 1).product(grad)`",
        "unless `self.dim() == 2`\nunless `mat2.dim() == 2`\nunless `self.size(1) == mat2.size(-2)`\nif `self`, `mat2` have different dtypes\nif the dtype to compute in is outside `float32`, `float64`\nif tensors are on several devices",
    ],
    None,
);

pub static LARGEST: Words = Words::of(
    [
        "formula:\n  `values_j = max_i self_{j, i}, i along dim, or all dimensions without`\n  `indices_j = min(argmax_i self_{j, i})`",
        "\n",
        "`values`: shape `follow(self)` (the shape of the given input); dtype `follow(self)` (the dtype of the given input)\n`indices`: shape `follow(self)` (the shape of the given input); dtype `int64`",
        "`self`: `spread(grad, indices, self.sizes())`",
        "if the dtype to compute in is outside `float32`",
    ],
    None,
);

pub static SPREAD: Words = Words::of(
    [
        "",
        "\n\n",
        "shape `full(size)` (the given sizes); dtype `follow(self)` (the dtype of the given input)",
        "none: the result has no gradient",
        "if the dtype to compute in is outside `float32`\nif tensors are on several devices",
    ],
    None,
);

pub static FLIPPED: Words = Words::of(
    [
        "",
        "\n\n",
        "shape as the layout function `view::flipped` says; dtype that of the tensor it is a view of",
        "`self`: `flipped(grad, dim0, dim1)`",
        "unless `self.dim() >= 2`\nif shapes and attributes do not go together",
    ],
    None,
);

pub static SUM_AND_GROWTH: Words = Words::of(
    [
        "in terms of other operators: `{ let sum = plus.Tensor(self, other, 1); (sum, grown(sum, false)) }`",
        "\n",
        "shape `broadcast(self, other)` (the shapes of the operands, broadcast together); dtype `promote(self, other, 1)` (the operands' promoted dtype)\nshape `broadcast(self, other)` (the shapes of the operands, broadcast together); dtype `promote_float(plus.Tensor(self, other, 1))` (the operands' promoted dtype; an integer result becomes the default float)",
        "those of the operators that it is composed of",
        "if `self`, `other` cannot be broadcast together\nif `promote(self, other, 1)` is outside `int64`, `bfloat16`, `float32`\nif `grown` refuses the arguments of its call\nif tensors are on several devices",
    ],
    None,
);

pub static ITEM: Words = Words::of(
    ["", "", "", "none: the result has no gradient", "unless `self.numel() == 1`"],
    None,
);
