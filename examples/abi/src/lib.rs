//! The operators of the example crate, and the stock ones below them, for programs in C: a library with the function `opsmith_abi`.

opsmith_abi::export!(opsmith_example_custom_op::LIBRARY);
