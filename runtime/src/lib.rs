//! opsmith-runtime
