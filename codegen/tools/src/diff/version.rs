//! The version after a change.

use std::fmt;

use super::Class;

/// A version of three numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Version {
    /// The first number.
    pub major: u64,
    /// The second.
    pub minor: u64,
    /// The third.
    pub patch: u64,
}

impl Version {
    /// Parses `1.2.3`; a suffix after `-` or `+` is ignored.
    pub fn parse(text: &str) -> Option<Version> {
        let numbers = text.trim().split(['-', '+']).next()?;
        let mut numbers = numbers.split('.').map(str::parse);
        let version = Version {
            major: numbers.next()?.ok()?,
            minor: numbers.next()?.ok()?,
            patch: numbers.next()?.ok()?,
        };
        numbers.next().is_none().then_some(version)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// The version after a change, by cargo's rules of semantic versions: before 1.0 a change of the second number is
/// breaking.
///
/// After 0.3.1 comes 0.4.0 with a breaking change and 0.3.2 with any other; after 1.3.1 come 2.0.0,
/// 1.4.0 and 1.3.2.
pub fn next(version: Version, worst: Option<Class>) -> Version {
    let Version { major, minor, patch } = version;
    match (worst, major, minor) {
        (None, ..) => version,
        (Some(Class::Breaking), 1.., _) => Version { major: major + 1, minor: 0, patch: 0 },
        (Some(Class::Breaking), 0, 1..) => Version { major, minor: minor + 1, patch: 0 },
        (Some(Class::Additive), 1.., _) => Version { major, minor: minor + 1, patch: 0 },
        // Before 0.1 every version may be breaking.
        _ => Version { major, minor, patch: patch + 1 },
    }
}
