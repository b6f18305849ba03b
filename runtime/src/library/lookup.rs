//! Operators by name.
//!
//! In: a name as users write it: in full, without overload, or from another library. Out: the matching operators and
//! forms, or an error with similar names.

use opsmith_core::spelling::{self, ForeignNames, Meaning};
use smallvec::SmallVec;

use super::{Form, Library, declared};
use crate::error::{Error, Result};
use crate::op::OpDef;

/// An operator and a form, the meaning of a name.
pub type Named = (&'static OpDef, Form);

/// The overloads that match a name.
pub type Candidates = SmallVec<[Named; 2]>;

impl Library {
    /// Finds an operator of this library or its parents by name: the full name of the operator or of a form,
    /// the name without overload where there is one overload, or a name in another library, which means the operator
    /// without overload where there are several.
    /// Operators declared while the program runs are found in every library.
    pub fn find(&self, name: &str) -> Option<Named> {
        self.find_exactly(name).or_else(|| chosen(&self.candidates(name).ok()?))
    }

    /// The operator or form of exactly this name.
    fn find_exactly(&self, name: &str) -> Option<Named> {
        self.find_generated(name).or_else(|| Some((declared::find(name)?, Form::Functional)))
    }

    /// As [`Library::find_exactly`], among generated operators only.
    pub(crate) fn find_generated(&self, name: &str) -> Option<(&'static OpDef, Form)> {
        if let Ok(index) = self.names.binary_search_by(|(known, _, _)| (*known).cmp(name)) {
            let (_, op, form) = self.names[index];
            return Some((op, form));
        }
        self.parents.iter().find_map(|parent| parent.find_generated(name))
    }

    /// Finds an operator; the error lists similar names.
    ///
    /// # Errors
    /// If no operator has that name, or if it is the name of several overloads.
    pub fn get(&self, name: &str) -> Result<Named> {
        if let Some(found) = self.find_exactly(name) {
            return Ok(found);
        }
        let candidates = self.candidates(name)?;
        chosen(&candidates).ok_or_else(|| {
            let names: Vec<String> = candidates.iter().map(|(op, _)| format!("`{}`", op.name)).collect();
            Error::not_found(format!("`{name}` has {} overloads", names.len()))
                .with_help(format!("name one of them: {}", names.join(", ")))
        })
    }

    /// Every overload that matches a name, at least one: that of the full name first, others in the order of names.
    ///
    /// # Errors
    /// If no operator has that name; the error lists similar names. If another library uses the name for a different
    /// operation, the error has advice.
    pub fn candidates(&self, name: &str) -> Result<Candidates> {
        let found = self.named(name);
        if !found.is_empty() {
            return Ok(found);
        }
        let spellings = match spelling::meaning(self, name) {
            Meaning::Spellings(spellings) => spellings,
            Meaning::Unlike { name, advice } => {
                return Err(Error::not_found(format!("`{name}` means something else here")).with_help(advice));
            }
        };
        for spelling in &spellings {
            let mut found = self.named(&spelling.name);
            if spelling.out {
                found.retain(|(op, form)| *form == Form::Functional && op.forms.out.is_some());
                found.iter_mut().for_each(|(_, form)| *form = Form::Out);
            }
            if !found.is_empty() {
                return Ok(found);
            }
        }
        let error = Error::not_found(format!("there is no operator `{name}`"));
        let near = self.near(spelling::without_namespace(&spellings).unwrap_or(name));
        Err(if near.is_empty() {
            error.with_help("the operators are listed in the API documentation")
        } else {
            error.with_help(format!("did you mean {}?", near.join(", ")))
        })
    }

    /// The operator or form of this full name, and the overloads of this name.
    fn named(&self, name: &str) -> Candidates {
        let mut found: Candidates = self.find_exactly(name).into_iter().collect();
        if !name.contains('.') {
            self.overloads(name, &mut found);
        }
        found
    }

    /// The functional and in-place forms with the given base name and any overload.
    fn overloads(&self, base: &str, found: &mut Candidates) {
        // `.` sorts before any other character of a name.
        let start = self.names.partition_point(|(known, ..)| *known <= base);
        let rows = self.names[start..].iter();
        let of_base = |known: &str| known.strip_prefix(base).is_some_and(|rest| rest.starts_with('.'));
        for (_, op, form) in rows.take_while(|(known, ..)| of_base(known)) {
            let known = found.iter().any(|(other, _)| std::ptr::eq(*other, *op));
            if *form != Form::Out && !known {
                found.push((op, *form));
            }
        }
        self.parents.iter().for_each(|parent| parent.overloads(base, found));
    }

    fn near(&self, name: &str) -> Vec<String> {
        let base = name.split('.').next().unwrap_or(name);
        // By the base name first, then by the overload too.
        let mut ranked: Vec<((usize, usize), &str)> = self
            .all_ops()
            .iter()
            .chain(&declared::all())
            .flat_map(|op| std::iter::once(op.name).chain(op.forms.inplace).chain(op.forms.out))
            .chain(self.known_names())
            .filter_map(|known| {
                let known_base = known.split('.').next().unwrap_or(known);
                let distance = strsim::levenshtein(base, known_base);
                let near = distance <= base.len().max(3) / 3;
                near.then(|| ((distance, strsim::levenshtein(name, known)), known))
            })
            .collect();
        ranked.sort_unstable();
        ranked.truncate(5);
        ranked.into_iter().map(|(_, known)| format!("`{known}`")).collect()
    }

    /// The names of operators in other libraries.
    fn known_names(&self) -> Vec<&'static str> {
        let own = self.known_as.iter().map(|(name, _)| *name);
        own.chain(self.parents.iter().flat_map(|parent| parent.known_names())).collect()
    }
}

impl ForeignNames for Library {
    fn namespaces(&self) -> Vec<(&str, &str)> {
        let parents = self.parents.iter().flat_map(|parent| parent.namespaces());
        self.namespaces.iter().copied().chain(parents).collect()
    }

    fn known_as(&self, name: &str) -> Option<&str> {
        row(self.known_as, name).or_else(|| self.parents.iter().find_map(|parent| parent.known_as(name)))
    }

    fn unlike(&self, name: &str) -> Option<&str> {
        row(self.unlike, name).or_else(|| self.parents.iter().find_map(|parent| parent.unlike(name)))
    }
}

/// The only candidate, or the one of the full name: as among an operator's own overloads, so by a name in another library.
fn chosen(candidates: &[Named]) -> Option<Named> {
    match candidates {
        [only] => Some(*only),
        [(op, form), ..] if !op.form_name(*form).contains('.') => Some((op, *form)),
        _ => None,
    }
}

/// The second column of a sorted table.
fn row(table: &[(&'static str, &'static str)], name: &str) -> Option<&'static str> {
    let index = table.binary_search_by(|(known, _)| (*known).cmp(name)).ok()?;
    Some(table[index].1)
}
