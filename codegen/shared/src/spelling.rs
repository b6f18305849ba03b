//! Names of operators as people write them: with another library's namespace, under another library's
//! name, or with the suffix of a form.
//!
//! In: a name, and the tables that a spec gives (`namespaces`, `known_as`, `unlike`). Out: the spellings that
//! an operator may have here. Which of them exist is the caller's to look up.

/// The tables of a spec, or of a library and its parents.
pub trait ForeignNames {
    /// Prefixes of names elsewhere, each with the prefix that such names have here.
    fn namespaces(&self) -> Vec<(&str, &str)>;
    /// The operator that is known by a name elsewhere, without an overload.
    fn known_as(&self, name: &str) -> Option<&str>;
    /// Advice for a name whose meaning elsewhere differs from its meaning here.
    fn unlike(&self, name: &str) -> Option<&str>;
}

/// A name to look up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spelling {
    /// Full name of a form, or a name without overload.
    pub name: String,
    /// Whether the out form is meant, as in `abs_out`.
    pub out: bool,
}

/// The meaning of a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Meaning {
    /// The spellings to try, the most literal first.
    Spellings(Vec<Spelling>),
    /// An operator elsewhere that computes something else than the one of this name here.
    Unlike {
        /// The name, with its namespace in full.
        name: String,
        /// How to compute it here.
        advice: String,
    },
}

/// A chain of namespaces, each leading to the next, is at most this long.
const MOST_REWRITES: usize = 32;

/// The spellings that a name may have here.
///
/// With the namespaces `aten::` and `torch.special.` (here `special_`): `aten::abs` gives `abs`,
/// `torch.special.expit` gives `special_expit`, `abs_out` gives `abs` in its out form, `add.default` gives `add`.
pub fn meaning(names: &impl ForeignNames, written: &str) -> Meaning {
    let mut namespaces = names.namespaces();
    // The longest prefix says most.
    namespaces.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
    let mut rewritten = vec![written.trim().to_owned()];
    let mut spellings = Vec::new();
    let mut next = 0;
    while let Some(name) = rewritten.get(next).cloned() {
        next += 1;
        if let Some(advice) = names.unlike(&name) {
            return Meaning::Unlike { name, advice: advice.to_owned() };
        }
        push(names, &mut spellings, &name);
        for (prefix, begins) in &namespaces {
            let Some(rest) = name.strip_prefix(prefix) else { continue };
            let name = format!("{begins}{rest}");
            if !rest.is_empty() && !rewritten.contains(&name) && rewritten.len() < MOST_REWRITES {
                rewritten.push(name);
            }
        }
    }
    Meaning::Spellings(spellings)
}

/// The spelling without any namespace, which near names are looked for with.
pub fn without_namespace(spellings: &[Spelling]) -> Option<&str> {
    spellings.iter().rfind(|spelling| !spelling.out).map(|spelling| spelling.name.as_str())
}

/// A name without namespace in every spelling.
fn push(names: &impl ForeignNames, spellings: &mut Vec<Spelling>, name: &str) {
    let plain = name.strip_suffix(".default").unwrap_or(name);
    let without_form = plain.strip_suffix("_out").filter(|base| !base.is_empty());
    for (name, out) in [(Some(plain), false), (without_form, true)] {
        let Some(name) = name else { continue };
        for name in [Some(name), names.known_as(name)].into_iter().flatten() {
            let spelling = Spelling { name: name.to_owned(), out };
            if !spellings.contains(&spelling) {
                spellings.push(spelling);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Tables;

    impl ForeignNames for Tables {
        fn namespaces(&self) -> Vec<(&str, &str)> {
            vec![
                ("elsewhere.", ""),
                ("elsewhere.special.", "special_"),
                ("e.", "elsewhere."),
                ("loop.", "loop."),
            ]
        }

        fn known_as(&self, name: &str) -> Option<&str> {
            (name == "power").then_some("raise")
        }

        fn unlike(&self, name: &str) -> Option<&str> {
            (name == "elsewhere.spread").then_some("divide by n")
        }
    }

    fn spellings(name: &str) -> Vec<(String, bool)> {
        match meaning(&Tables, name) {
            Meaning::Spellings(all) => {
                all.into_iter().map(|spelling| (spelling.name, spelling.out)).collect()
            }
            Meaning::Unlike { name, advice } => panic!("{name}: {advice}"),
        }
    }

    #[test]
    fn names_from_elsewhere_are_found_literally_first() {
        let has = |name: &str, wanted: &str, out: bool| {
            assert!(spellings(name).contains(&(wanted.to_owned(), out)), "{name}: {:?}", spellings(name));
        };
        assert_eq!(spellings("shift")[0], ("shift".to_owned(), false));
        has("e.shift", "shift", false);
        has("e.special.turn", "special_turn", false);
        has("shift_out", "shift", true);
        has("shift.default", "shift", false);
        has("e.power", "raise", false);
        has("power_out", "raise", true);
        has("e.shift.Tensor", "shift.Tensor", false);
        assert_eq!(spellings("loop.x").len(), 1, "a namespace that leads to itself ends");
        assert_eq!(spellings("_out"), [("_out".to_owned(), false)]);
    }

    #[test]
    fn a_name_with_another_meaning_comes_with_advice() {
        let Meaning::Unlike { name, advice } = meaning(&Tables, "e.spread") else { panic!("a spelling") };
        assert_eq!((name.as_str(), advice.as_str()), ("elsewhere.spread", "divide by n"));
        assert_eq!(spellings("spread")[0].0, "spread", "the name of this library is its own");
    }
}
