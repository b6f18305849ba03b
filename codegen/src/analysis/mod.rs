//! Analysis of the checked model, shared by the checks of `lower`, the emitters and the commands.
//!
//! In: the model. Out: names of generated code, what formulas read, how gradients flow, when inference may be
//! skipped, which tables an operator has, inference rules as trees. Nothing here writes code, reports mistakes or
//! knows YAML.

pub mod gradients;
pub mod naming;
pub mod reads;
pub mod rows;
pub mod rule_trees;
pub mod uniform;
