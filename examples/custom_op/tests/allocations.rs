//! Graphs of this crate's operators allocate no memory after the first run.

opsmith_testing::check_allocations!(opsmith_example_custom_op::LIBRARY);
