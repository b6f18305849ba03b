//! Traits of element types that some dtypes do not have, by which kernels in Rust are bounded.
//!
//! The generator finds dtypes that an entry asks for and its kernel's bounds leave out; a test of the runtime compares
//! the table with the implementations.

use crate::{DType, DTypeCategory, DTypeSet};

/// The traits: of the runtime's module `arith`, and of the standard library's prelude.
pub const ELEMENT_TRAITS: [ElementTrait; 5] = [
    ElementTrait { module: Some("arith"), name: "Arithmetic", dtypes: integral_and(false, true, true) },
    ElementTrait { module: Some("arith"), name: "Ordered", dtypes: integral_and(false, true, false) },
    ElementTrait { module: None, name: "PartialOrd", dtypes: integral_and(true, true, false) },
    ElementTrait { module: None, name: "Ord", dtypes: integral_and(false, false, false) },
    ElementTrait { module: None, name: "Eq", dtypes: integral_and(false, false, false) },
];

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

/// Integers and bool, with floats that compute in a wider type, other floats and complex dtypes as the flags say.
const fn integral_and(narrow: bool, floats: bool, complex: bool) -> DTypeSet {
    let mut set = DTypeSet::EMPTY;
    let mut index = 0;
    while index < DType::COUNT {
        let dtype = DType::ALL[index];
        let has = match dtype.category() {
            _ if dtype.is_stored() => false,
            DTypeCategory::Bool | DTypeCategory::Int => true,
            DTypeCategory::Float if dtype.to_compute() as u8 != dtype as u8 => narrow,
            DTypeCategory::Float => floats,
            DTypeCategory::Complex => complex,
        };
        if has {
            set = set.union(DTypeSet::of(dtype));
        }
        index += 1;
    }
    set
}
