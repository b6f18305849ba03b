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
    /// One of two blocks.
    Branch,
    /// A block, repeated while another one is true.
    Loop,
    /// A block in place, after this many arguments about the state of PyTorch, which changes no result.
    Inline { skipped: usize },
    /// An operator under another name.
    Operator(&'static str),
}

/// A number of a tensor's layout.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum LayoutNumber {
    Size,
    Stride,
    Offset,
    Count,
}

const TABLE: [(&str, Structural); 12] = [
    // Integers computed from shapes become formulas of the graph, so that they are no calls.
    ("torch.ops.aten.sym_size.int", Structural::Layout(LayoutNumber::Size)),
    ("torch.ops.aten.sym_stride.int", Structural::Layout(LayoutNumber::Stride)),
    ("torch.ops.aten.sym_storage_offset.default", Structural::Layout(LayoutNumber::Offset)),
    ("torch.ops.aten.sym_numel.default", Structural::Layout(LayoutNumber::Count)),
    // Checks are made when shapes and dtypes are inferred; they compute nothing.
    ("torch.ops.aten._assert_tensor_metadata.default", Structural::AssertMetadata),
    ("torch.ops.aten._assert_scalar.default", Structural::AssertTruth),
    // Blocks are arguments that no operator has.
    ("torch.ops.higher_order.cond", Structural::Branch),
    ("torch.ops.higher_order.while_loop", Structural::Loop),
    ("torch.ops.higher_order.wrap_with_set_grad_enabled", Structural::Inline { skipped: 1 }),
    // Values have no gradients of PyTorch's to be cut off from.
    ("torch.ops.aten.detach_.default", Structural::Operator("torch.ops.aten.detach.default")),
    // A kernel may return other strides than PyTorch's, for which no view exists: then elements are copied.
    ("torch.ops.aten.view.default", Structural::Operator("torch.ops.aten.reshape.default")),
    ("torch.ops.aten._unsafe_view.default", Structural::Operator("torch.ops.aten.reshape.default")),
];

/// The reader's action for the function of a name; `None` if it is an operator.
pub(crate) fn find(target: &str) -> Option<Structural> {
    TABLE.iter().find(|(name, _)| *name == target).map(|(_, structural)| *structural)
}
