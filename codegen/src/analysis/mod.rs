//! Analysis of the checked model, shared by the checks of `lower`, the emitters and the commands.
//!
//! In: the model. Out: kinds of elements, names of generated code, values read by formulas, gradient flow, calls that skip inference,
//! tables of an operator, operations of a kernel, inference rules as trees, sources of compositions' results, a spec's fingerprint.
//! Must not write code, report mistakes or know YAML.

pub mod composed;
pub mod device_loops;
pub mod elements;
pub mod fingerprint;
pub mod flops;
pub mod gradients;
pub mod naming;
pub mod reads;
pub mod rows;
pub mod rule_trees;
pub mod uniform;
