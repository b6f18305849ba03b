//! Names that other libraries have for operators.

use opsmith_core::spelling;

/// The tables `namespaces`, `known_as` and `unlike` of a spec and its parents. The last of each row says
/// whether it stands in a parent's spec.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct ForeignNames {
    /// A prefix elsewhere, and the prefix here.
    pub namespaces: Vec<(String, String, bool)>,
    /// A name elsewhere, and the name here without overload.
    pub known_as: Vec<(String, String, bool)>,
    /// A name elsewhere, and advice.
    pub unlike: Vec<(String, String, bool)>,
}

impl spelling::ForeignNames for ForeignNames {
    fn namespaces(&self) -> Vec<(&str, &str)> {
        self.namespaces.iter().map(|(prefix, begins, _)| (prefix.as_str(), begins.as_str())).collect()
    }

    fn known_as(&self, name: &str) -> Option<&str> {
        find(&self.known_as, name)
    }

    fn unlike(&self, name: &str) -> Option<&str> {
        find(&self.unlike, name)
    }
}

fn find<'a>(rows: &'a [(String, String, bool)], name: &str) -> Option<&'a str> {
    // Parents stand first, and the library's own names win.
    rows.iter().rfind(|(known, ..)| known == name).map(|(_, meant, _)| meant.as_str())
}
