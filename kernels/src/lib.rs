//! opsmith-kernels
