//! Constraints of an attribute's value: bounds, choices, lengths, named values.
//!
//! In: a value. Out: whether it is allowed, and the constraint in words, the same in the generator's
//! documents and in the runtime's errors. Must know neither arguments nor operators.

use std::borrow::Cow;
use std::fmt;

/// A number or text that a constraint compares with.
#[derive(Clone, PartialEq, Debug)]
pub enum Literal {
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A text.
    Str(Cow<'static, str>),
}

/// One condition on an attribute. Of a list, all but the lengths hold for each item.
#[derive(Clone, PartialEq, Debug)]
pub enum Constraint {
    /// This or greater.
    Min(Literal),
    /// This or less.
    Max(Literal),
    /// Greater than this.
    Above(Literal),
    /// Less than this.
    Below(Literal),
    /// One of these.
    OneOf(Cow<'static, [Literal]>),
    /// A multiple of this positive integer.
    MultipleOf(i64),
    /// One of these integers, each with a name that stands for it.
    Named(Cow<'static, [(Cow<'static, str>, i64)]>),
    /// A list with one of these numbers of items.
    Len(Cow<'static, [u32]>),
    /// A list with at least so many items.
    MinLen(u32),
}

impl Literal {
    /// The number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Literal::Int(value) => Some(*value as f64),
            Literal::Float(value) => Some(*value),
            Literal::Str(_) => None,
        }
    }

    /// How two numbers compare; nothing compares with NaN or with text.
    fn compare(&self, other: &Literal) -> Option<std::cmp::Ordering> {
        match (self, other) {
            (Literal::Int(a), Literal::Int(b)) => Some(a.cmp(b)),
            _ => self.number()?.partial_cmp(&other.number()?),
        }
    }

    fn same(&self, other: &Literal) -> bool {
        match (self, other) {
            (Literal::Str(a), Literal::Str(b)) => a == b,
            _ => self.compare(other).is_some_and(std::cmp::Ordering::is_eq),
        }
    }
}

impl Constraint {
    /// Whether a value, or an item of a list, is allowed. Lengths allow every item.
    pub fn allows(&self, value: &Literal) -> bool {
        if let Literal::Str(text) = value {
            return self.allows_text(text);
        }
        let ordered =
            |limit: &Literal, fits: fn(std::cmp::Ordering) -> bool| value.compare(limit).is_some_and(fits);
        match self {
            Constraint::Min(limit) => ordered(limit, std::cmp::Ordering::is_ge),
            Constraint::Max(limit) => ordered(limit, std::cmp::Ordering::is_le),
            Constraint::Above(limit) => ordered(limit, std::cmp::Ordering::is_gt),
            Constraint::Below(limit) => ordered(limit, std::cmp::Ordering::is_lt),
            Constraint::OneOf(choices) => choices.iter().any(|choice| choice.same(value)),
            Constraint::MultipleOf(step) => matches!(value, Literal::Int(value) if value % step == 0),
            Constraint::Named(names) => names.iter().any(|(_, named)| Literal::Int(*named).same(value)),
            Constraint::Len(_) | Constraint::MinLen(_) => true,
        }
    }

    /// Whether a text is allowed, which has no order; without a copy, since every call checks its arguments.
    pub fn allows_text(&self, text: &str) -> bool {
        match self {
            Constraint::OneOf(choices) => {
                choices.iter().any(|choice| matches!(choice, Literal::Str(known) if known == text))
            }
            Constraint::Len(_) | Constraint::MinLen(_) => true,
            _ => false,
        }
    }

    /// Whether a list of this length is allowed.
    pub fn allows_len(&self, len: usize) -> bool {
        match self {
            Constraint::Len(lengths) => lengths.iter().any(|allowed| *allowed as usize == len),
            Constraint::MinLen(least) => len >= *least as usize,
            _ => true,
        }
    }

    /// Whether it is about a list's length rather than its items.
    pub fn is_about_length(&self) -> bool {
        matches!(self, Constraint::Len(_) | Constraint::MinLen(_))
    }

    /// The integer that a name stands for.
    pub fn named(&self, name: &str) -> Option<i64> {
        match self {
            Constraint::Named(names) => {
                names.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
            }
            _ => None,
        }
    }
}

/// All constraints of an argument in words: `at least 0 and at most 1`.
pub fn describe(constraints: &[Constraint], is_list: bool) -> String {
    let words = |constraint: &Constraint| match is_list && !constraint.is_about_length() {
        true => format!("each {constraint}"),
        false => constraint.to_string(),
    };
    constraints.iter().map(words).collect::<Vec<_>>().join(" and ")
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Literal::Int(value) => write!(f, "{value}"),
            Literal::Float(value) => write!(f, "{value}"),
            Literal::Str(text) => write!(f, "{text:?}"),
        }
    }
}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Constraint::Min(limit) => write!(f, "at least {limit}"),
            Constraint::Max(limit) => write!(f, "at most {limit}"),
            Constraint::Above(limit) => write!(f, "above {limit}"),
            Constraint::Below(limit) => write!(f, "below {limit}"),
            Constraint::OneOf(choices) => f.write_str(&alternatives(choices.iter())),
            Constraint::MultipleOf(step) => write!(f, "a multiple of {step}"),
            Constraint::Named(names) => {
                let names: Vec<String> =
                    names.iter().map(|(name, value)| format!("{value} ({name})")).collect();
                f.write_str(&alternatives(names.iter()))
            }
            Constraint::Len(lengths) => match &lengths[..] {
                [1] => f.write_str("of 1 item"),
                lengths => write!(f, "of {} items", alternatives(lengths.iter())),
            },
            Constraint::MinLen(1) => f.write_str("of at least 1 item"),
            Constraint::MinLen(least) => write!(f, "of at least {least} items"),
        }
    }
}

/// `a, b or c`
fn alternatives<T: fmt::Display>(items: impl Iterator<Item = T>) -> String {
    let items: Vec<String> = items.map(|item| item.to_string()).collect();
    match items.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_take_integers_and_floats_together() {
        let least = Constraint::Min(Literal::Int(1));
        assert!(least.allows(&Literal::Int(1)) && least.allows(&Literal::Float(1.5)));
        assert!(!least.allows(&Literal::Int(0)) && !least.allows(&Literal::Float(f64::NAN)));
        let above = Constraint::Above(Literal::Float(0.0));
        assert!(above.allows(&Literal::Float(1e-300)) && !above.allows(&Literal::Int(0)));
        // Not by way of a float, in which the two are one.
        assert!(!Constraint::Max(Literal::Int(i64::MAX - 1)).allows(&Literal::Int(i64::MAX)));
    }

    #[test]
    fn choices_and_names() {
        let choice =
            Constraint::OneOf(Cow::Owned(vec![Literal::Str("none".into()), Literal::Str("tanh".into())]));
        assert!(choice.allows(&Literal::Str("tanh".into())) && !choice.allows(&Literal::Str("tan".into())));
        assert_eq!(choice.to_string(), "\"none\" or \"tanh\"");
        let named =
            Constraint::Named(Cow::Owned(vec![("none".into(), 0), ("mean".into(), 1), ("sum".into(), 2)]));
        assert!(named.allows(&Literal::Int(2)) && !named.allows(&Literal::Int(3)));
        assert_eq!((named.named("mean"), named.named("max")), (Some(1), None));
        assert_eq!(named.to_string(), "0 (none), 1 (mean) or 2 (sum)");
    }

    #[test]
    fn lengths_are_of_the_list_and_the_rest_of_its_items() {
        let constraints = [
            Constraint::Len(Cow::Owned(vec![1, 2])),
            Constraint::Min(Literal::Int(1)),
            Constraint::MultipleOf(8),
        ];
        assert!(constraints[0].allows_len(2) && !constraints[0].allows_len(3));
        assert_eq!(
            describe(&constraints, true),
            "of 1 or 2 items and each at least 1 and each a multiple of 8"
        );
    }
}
