//! Symbolic inference against calls, for every operator and sample: with sizes as numbers, and with a symbol for every
//! size that is then bound to several numbers.

use std::collections::BTreeMap;

use opsmith::LIBRARY;
use opsmith_testing::{Report, checks, of_each, report};

#[test]
fn numbers_give_what_calls_give() {
    let report = report(&LIBRARY, checks::inference);
    report.assert_right();
    assert!(report.compared > 1500, "only {} samples were checked", report.compared);
}

/// Compositions that are accepted at some sizes only.
const NARROWED: [&str; 16] = [
    "_projected_steps",
    "_recurrent_layers",
    "_recurrent_sequence",
    "conv1d",
    "conv1d.padding",
    "conv2d",
    "conv2d.padding",
    "conv3d",
    "conv3d.padding",
    "gru.input",
    "istft",
    "lstm.input",
    "repeat_interleave.self_Tensor",
    "split.Tensor",
    "unbind.int",
    "unsafe_split.Tensor",
];

#[test]
fn symbols_give_what_calls_give_when_they_are_bound() {
    let found = of_each(LIBRARY.ops, |op| checks::symbolic_inference(op));
    let (mut all, mut ops) = (Report::default(), BTreeMap::new());
    let (mut unknown, mut narrow) = (BTreeMap::new(), BTreeMap::new());
    for (op, found) in LIBRARY.ops.iter().zip(found) {
        ops.extend(found.accepted.map(|accepted| (op.name, accepted)));
        unknown.extend(found.unknown.map(|shape| (op.name, shape)));
        narrow.extend(found.narrow.map(|why| (op.name, why)));
        all.add(found.report);
    }
    all.assert_right();
    // Three bindings and the sample's own, unless attributes determine the sizes.
    let few: Vec<&str> = ops.iter().filter(|(_, most)| **most < 4).map(|(name, _)| *name).collect();
    assert_eq!(few, ["native_group_norm_backward"], "of {} operators", ops.len());
    assert!(ops.len() > 250 && all.compared > 5000, "{} operators, {} bindings", ops.len(), all.compared);
    // A product of two quotients is no formula that is sought; nor is a size that three operands broadcast to, or one
    // of two sizes that are equal in the example only, in a composition.
    // Nor is a quotient of several sizes, such as the places of a convolution with strides, the size of a piece, or a size times
    // 1.4, rounded down.
    let open = [
        "_foreach_addcdiv.Scalar",
        "_foreach_addcmul.Scalar",
        "_foreach_lerp.List",
        "_grid_between",
        "_grid_elements",
        "_prelu_kernel_backward",
        "_scaled_dot_product_flash_attention_for_cpu",
        "_singular_bounds",
        "_weight_norm",
        "_weight_norm_interface",
        "broadcast_tensors",
        "chunk",
        "clamp.Tensor",
        "conv1d",
        "conv1d.padding",
        "conv2d",
        "conv2d.padding",
        "conv3d",
        "conv3d.padding",
        "cosine_similarity",
        "grid_sampler_2d_along",
        "im2col",
        "interpolate",
        "linalg_diagonal",
        "linalg_lstsq",
        "logcumsumexp_backward",
        "scaled_dot_product_attention",
        "slice.Tensor",
        "soft_margin_loss_backward",
        "split.Tensor",
        "unsafe_split.Tensor",
    ];
    assert_eq!(unknown.keys().copied().collect::<Vec<_>>(), open, "{unknown:#?}");
    // How many results there are depends on the first size; and a composition that two sizes have to be multiples for
    // is accepted at the example's alone. The first size of a recurrent state is a number of layers, an attribute; with a
    // number for the repetitions, slices are as many.
    assert_eq!(narrow.keys().copied().collect::<Vec<_>>(), NARROWED, "{narrow:#?}");
}
