//! opsmith-codegen
