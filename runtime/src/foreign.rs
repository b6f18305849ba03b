//! The C interface between the dispatcher and kernels written in C or C++.
