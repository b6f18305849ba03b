//! Graphs of the operators of this crate ask for no memory once they have run.

opsmith_testing::check_allocations!(opsmith_example_custom_op::LIBRARY);
