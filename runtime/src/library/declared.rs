//! Operators declared at run time, by name.
//!
//! In: definitions and their names. Out: the definitions, until they are withdrawn. Must not know how an operator is
//! declared.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use super::{Library, linked};
use crate::op::OpDef;

static NAMED: RwLock<BTreeMap<&'static str, &'static OpDef>> = RwLock::new(BTreeMap::new());

/// The owner of a name that is taken.
pub enum Taken {
    /// Another operator declared at run time.
    Declared,
    /// An operator of a linked library.
    Generated(&'static Library),
}

/// The operator of that name, if one is declared at run time.
pub(crate) fn find(name: &str) -> Option<&'static OpDef> {
    NAMED.read().unwrap_or_else(PoisonError::into_inner).get(name).copied()
}

/// Every operator that is declared at run time and has a name.
pub(super) fn all() -> Vec<&'static OpDef> {
    NAMED.read().unwrap_or_else(PoisonError::into_inner).values().copied().collect()
}

/// Registers the operator that a function defines under a name. The function runs if the name is free; the name stays
/// reserved while it runs.
///
/// # Errors
/// If the name is taken.
pub(crate) fn register(name: &str, define: impl FnOnce() -> &'static OpDef) -> Result<&'static OpDef, Taken> {
    let mut named = NAMED.write().unwrap_or_else(PoisonError::into_inner);
    if named.contains_key(name) {
        return Err(Taken::Declared);
    }
    if let Some(library) = linked().find(|library| library.find_generated(name).is_some()) {
        return Err(Taken::Generated(library));
    }
    let op = define();
    named.insert(op.name, op);
    Ok(op)
}

/// Removes an operator's name, if it has one.
pub(crate) fn withdraw(op: &'static OpDef) {
    let mut named = NAMED.write().unwrap_or_else(PoisonError::into_inner);
    if named.get(op.name).is_some_and(|known| std::ptr::eq(*known, op)) {
        named.remove(op.name);
    }
}
