//! opsmith-tests
