//! opsmith
