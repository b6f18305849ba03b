//! Traits of element types that some dtypes do not have, by which kernels in Rust are bounded.
//!
//! The generator finds dtypes that an entry asks for and its kernel's bounds leave out; a test of the runtime compares
//! the table with the implementations.

use crate::{DType, DTypeSet};

/// The traits: of the runtime's module `arith`, and of the standard library's prelude.
pub const ELEMENT_TRAITS: [ElementTrait; 5] = [
    ElementTrait { module: Some("arith"), name: "Arithmetic", dtypes: but(&[DType::F16, DType::BF16]) },
    ElementTrait {
        module: Some("arith"),
        name: "Ordered",
        dtypes: but(&[DType::F16, DType::BF16, DType::C64, DType::C128]),
    },
    ElementTrait { module: None, name: "PartialOrd", dtypes: but(&[DType::C64, DType::C128]) },
    ElementTrait { module: None, name: "Ord", dtypes: INTEGRAL },
    ElementTrait { module: None, name: "Eq", dtypes: INTEGRAL },
];

const INTEGRAL: DTypeSet = but(&[DType::F16, DType::BF16, DType::F32, DType::F64, DType::C64, DType::C128]);

/// A trait, and the dtypes whose Rust type implements it.
#[derive(Clone, Copy, Debug)]
pub struct ElementTrait {
    /// The last module of its path; `None` for one of the prelude.
    pub module: Option<&'static str>,
    /// Its name.
    pub name: &'static str,
    /// The dtypes that have it.
    pub dtypes: DTypeSet,
}

/// All dtypes but some.
const fn but(excluded: &[DType]) -> DTypeSet {
    let mut set = DTypeSet::EMPTY;
    let mut index = 0;
    while index < DType::COUNT {
        set = set.union(DTypeSet::of(DType::ALL[index]));
        index += 1;
    }
    let mut index = 0;
    while index < excluded.len() {
        set = DTypeSet(set.0 & !DTypeSet::of(excluded[index]).0);
        index += 1;
    }
    set
}
