//! Every check of the stock operators, on the operators of this crate.

opsmith_testing::check_operators!(
    opsmith_example_custom_op::LIBRARY,
    opsmith_example_custom_op::DOCUMENTATION
);
