//! opsmith-examples
