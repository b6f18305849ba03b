//! Functions of exported programs that are no operators on elements: sizes of tensors, checks, control flow.
//!
//! In: the full name of a function. Out: the reader's action for it. This table is the only place where the crate names
//! functions of PyTorch besides Python's of numbers (`numbers`); whatever a library of operators can declare is found by
//! its name (`operators`).

/// The reader's action for a function.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Structural {
    /// A number that a tensor's layout has.
    Layout(LayoutNumber),
    /// A check of dtype and sizes.
    AssertMetadata,
    /// A check of a truth value about sizes.
    AssertTruth,
    /// A check of the only element of a tensor.
    AssertElement,
    /// A check of the bounds of a size.
    AssertRange,
    /// A check that all elements of a tensor are 0, as those that count failures.
    AssertZeros,
    /// One of two blocks.
    Branch,
    /// A block, repeated while another one is true.
    Loop,
    /// A block for each position of tensors.
    Map,
    /// A block for each position of tensors, with a state.
    Scan,
    /// A block in place, after this many arguments about the state of PyTorch, which changes no result, and before so many
    /// others.
    Inline { before: usize, after: usize },
    /// A block under automatic casts, or without them.
    Autocast,
    /// A block that combines two elements, for each position of tensors with all before it.
    Accumulate,
    /// A call of an in-place form on copies.
    OnCopies,
    /// The start of a function that is mapped over a dimension of its tensors.
    MapStart,
    /// A tensor without a dimension that a function is mapped over.
    MapIn,
    /// The results of a mapped function as a tensor with one dimension more.
    MapOut,
    /// A call that changes the state of PyTorch, and no result.
    Nothing,
    /// The places of elements that are not zero, a list with a tensor for each dimension.
    PlacesByDimension,
    /// A number that says how PyTorch was built.
    Number(i64),
    /// An operator under another name.
    Operator(&'static str),
    /// An operator that updates statistics among its arguments, if it is given them and a truth value is true.
    Statistics(Statistics),
}

/// Statistics that an operator updates.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Statistics {
    /// The operator that returns new ones, of the first arguments.
    pub functional: &'static str,
    /// The number of these arguments.
    pub takes: usize,
    /// The arguments that are the statistics, and the results that are the new ones.
    pub arguments: [usize; 2],
    pub results: [usize; 2],
    /// The argument that says whether to update.
    pub updates: usize,
}

/// A number of a tensor's layout.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum LayoutNumber {
    Size,
    Stride,
    Offset,
    Count,
}

const TABLE: [(&str, Structural); 44] = [
    // Integers computed from shapes become formulas of the graph, so that they are no calls.
    ("torch.ops.aten.sym_size.int", Structural::Layout(LayoutNumber::Size)),
    ("torch.ops.aten.sym_stride.int", Structural::Layout(LayoutNumber::Stride)),
    ("torch.ops.aten.sym_storage_offset.default", Structural::Layout(LayoutNumber::Offset)),
    ("torch.ops.aten.sym_numel.default", Structural::Layout(LayoutNumber::Count)),
    // Checks are made when shapes and dtypes are inferred; they compute nothing.
    ("torch.ops.aten._assert_tensor_metadata.default", Structural::AssertMetadata),
    ("torch.ops.aten._assert_scalar.default", Structural::AssertTruth),
    ("torch.ops.aten.sym_constrain_range.default", Structural::AssertRange),
    ("torch.ops.aten.sym_constrain_range_for_size.default", Structural::AssertRange),
    ("torch.ops.aten._linalg_check_errors.default", Structural::AssertZeros),
    ("torch.ops.aten._assert_async.default", Structural::AssertElement),
    ("torch.ops.aten._assert_async.msg", Structural::AssertElement),
    // Blocks are arguments that no operator has.
    ("torch.ops.higher_order.cond", Structural::Branch),
    ("torch.ops.higher_order.while_loop", Structural::Loop),
    ("torch.ops.higher_order.map_impl", Structural::Map),
    ("torch.ops.higher_order.scan", Structural::Scan),
    ("torch.ops.higher_order.associative_scan", Structural::Accumulate),
    ("torch.ops.higher_order.wrap_with_set_grad_enabled", Structural::Inline { before: 1, after: 0 }),
    ("torch.ops.higher_order.wrap_with_autocast", Structural::Autocast),
    // A block, and its name among those that are called several times.
    ("torch.ops.higher_order.invoke_subgraph", Structural::Inline { before: 0, after: 1 }),
    // A decomposition writes no arguments.
    ("torch.ops.higher_order.auto_functionalized_v2", Structural::OnCopies),
    // `torch.vmap`, in programs that are not decomposed.
    ("torch._functorch.predispatch.lazy_load_decompositions", Structural::Nothing),
    ("torch._functorch.predispatch._vmap_increment_nesting", Structural::MapStart),
    ("torch._functorch.predispatch._vmap_decrement_nesting", Structural::Nothing),
    ("torch._functorch.predispatch._add_batch_dim", Structural::MapIn),
    ("torch._functorch.predispatch._remove_batch_dim", Structural::MapOut),
    // Without CUDA.
    ("torch.ops.torchvision._cuda_version.default", Structural::Number(-1)),
    // A function of Hugging Face's models, of the same arguments.
    (
        "torch.ops.transformers.grouped_mm_fallback.default",
        Structural::Operator("torch.ops.aten._grouped_mm.default"),
    ),
    // Values have no gradients of PyTorch's to be cut off from.
    ("torch.ops.aten.detach_.default", Structural::Operator("torch.ops.aten.detach.default")),
    // Exporters read the result of the call, and not the tensor that it changes.
    ("torch.ops.aten.resize_.default", Structural::Operator("torch.ops.aten.resize.default")),
    ("torch.ops.aten.t_.default", Structural::Operator("torch.ops.aten.t.default")),
    ("torch.ops.aten.transpose_.default", Structural::Operator("torch.ops.aten.transpose.int")),
    ("torch.ops.aten.swapaxes_.default", Structural::Operator("torch.ops.aten.transpose.int")),
    ("torch.ops.aten.swapdims_.default", Structural::Operator("torch.ops.aten.transpose.int")),
    ("torch.ops.aten.squeeze_.default", Structural::Operator("torch.ops.aten.squeeze.default")),
    ("torch.ops.aten.squeeze_.dim", Structural::Operator("torch.ops.aten.squeeze.dim")),
    ("torch.ops.aten.squeeze_.dims", Structural::Operator("torch.ops.aten.squeeze.dims")),
    ("torch.ops.aten.unsqueeze_.default", Structural::Operator("torch.ops.aten.unsqueeze.default")),
    // No tensor is conjugated or negated only when it is read.
    ("torch.ops.aten._conj.default", Structural::Operator("torch.ops.aten.conj.default")),
    ("torch.ops.aten._neg_view.default", Structural::Operator("torch.ops.aten.neg.default")),
    ("torch.ops.aten.where.default", Structural::PlacesByDimension),
    ("torch.ops.aten.nonzero_numpy.default", Structural::PlacesByDimension),
    (
        "torch.ops.aten.batch_norm.default",
        Structural::Statistics(Statistics {
            functional: "torch.ops.aten._native_batch_norm_legit_functional.default",
            takes: 8,
            arguments: [3, 4],
            results: [3, 4],
            updates: 5,
        }),
    ),
    // A kernel may return other strides than PyTorch's, for which no view exists: then elements are copied.
    ("torch.ops.aten.view.default", Structural::Operator("torch.ops.aten.reshape.default")),
    ("torch.ops.aten._unsafe_view.default", Structural::Operator("torch.ops.aten.reshape.default")),
];

/// A call whose order among others is kept: takes a token, the name of an operator and its arguments; returns a token, too.
/// Nodes are called in their order here, so that tokens are nothing.
pub(crate) const WITH_TOKEN: &str = "torch.ops.higher_order.with_effects";

/// Operators that the reader calls itself: the elements at a position of a dimension, tensors stacked along a new one or
/// joined along one, a number as a tensor, a tensor in another dtype, a copy, views, and places of
/// elements that are not zero, a row each.
pub(crate) const AT_POSITION: &str = "torch.ops.aten.select.int";
pub(crate) const STACK: &str = "torch.ops.aten.stack.default";
pub(crate) const JOIN: &str = "torch.ops.aten.cat.default";
pub(crate) const OF_NUMBER: &str = "torch.ops.aten.scalar_tensor.default";
pub(crate) const CAST: &str = "torch.ops.aten.to.dtype";
pub(crate) const CLONE: &str = "torch.ops.aten.clone.default";
pub(crate) const SLICE: &str = "torch.ops.aten.slice.Tensor";
pub(crate) const STRIDED: &str = "torch.ops.aten.as_strided.default";
pub(crate) const NEW_DIM: &str = "torch.ops.aten.unsqueeze.default";
pub(crate) const MOVED_DIM: &str = "torch.ops.aten.movedim.int";
pub(crate) const PLACES: &str = "torch.ops.aten.nonzero.default";
pub(crate) const EXPAND: &str = "torch.ops.aten.expand.default";

/// The operator that picks elements by tensors of positions, which broadcast with each other.
pub(crate) const PICK: &str = "torch.ops.aten.index.Tensor";

/// The reader's action for the function of a name; `None` if it is an operator.
pub(crate) fn find(target: &str) -> Option<Structural> {
    TABLE.iter().find(|(name, _)| *name == target).map(|(_, structural)| *structural)
}
