//! The types of arguments and returned values.

use std::fmt;

/// A type without its alias annotation.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Type {
    /// `Tensor`, `int`, …
    Base(BaseType),
    /// `T?`: may be `None`.
    Optional(Box<Type>),
    /// `T[]`, or `T[n]`: a list; with a length, a caller may also give one `T`.
    List(Box<Type>, Option<u32>),
    /// `__torch__.torch.classes.a.B`: an object of a class registered elsewhere.
    Class(String),
}

macro_rules! base_types {
    ($($variant:ident $name:literal $doc:literal,)*) => {
        /// An atomic type.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum BaseType {
            $(#[doc = $doc] $variant,)*
        }

        impl BaseType {
            /// Every base type.
            pub const ALL: &[BaseType] = &[$(BaseType::$variant,)*];

            /// Their names, in the same order.
            pub const NAMES: &[&str] = &[$($name,)*];

            /// The name in a signature.
            pub const fn name(self) -> &'static str {
                match self { $(BaseType::$variant => $name,)* }
            }

            /// Its meaning, in a few words.
            pub const fn doc(self) -> &'static str {
                match self { $(BaseType::$variant => $doc,)* }
            }
        }
    };
}

base_types! {
    Tensor "Tensor" "a tensor",
    Scalar "Scalar" "a number: bool, int or float",
    Int "int" "a 64-bit integer",
    Float "float" "a 64-bit float",
    Bool "bool" "a truth value",
    Str "str" "a string",
    ScalarType "ScalarType" "a dtype",
    SymInt "SymInt" "an integer that may be symbolic, such as a size",
    SymBool "SymBool" "a truth value that may be symbolic",
    Device "Device" "a device with its index",
    DeviceIndex "DeviceIndex" "the index of a device",
    Layout "Layout" "how a tensor is stored: strided or sparse",
    MemoryFormat "MemoryFormat" "the order of dimensions in memory",
    Generator "Generator" "a random number generator",
    QScheme "QScheme" "a quantization scheme",
    Storage "Storage" "the memory behind a tensor",
    Stream "Stream" "a queue of a device",
    DimVector "DimVector" "a short list of sizes",
    GraphModule "GraphModule" "a captured graph",
}

impl BaseType {
    /// The type of that name.
    pub fn from_name(name: &str) -> Option<BaseType> {
        BaseType::ALL.iter().copied().find(|ty| ty.name() == name)
    }
}

impl Type {
    /// Whether it is `T?`.
    pub fn is_optional(&self) -> bool {
        matches!(self, Type::Optional(_))
    }

    /// The type inside `?`, or the type itself.
    pub fn without_optional(&self) -> &Type {
        match self {
            Type::Optional(inner) => inner,
            other => other,
        }
    }

    /// The innermost type: `int` for `int[2]?`; `None` for a class.
    pub fn base(&self) -> Option<BaseType> {
        match self {
            Type::Base(base) => Some(*base),
            Type::Optional(inner) | Type::List(inner, _) => inner.base(),
            Type::Class(_) => None,
        }
    }

    /// Whether the innermost type is `Tensor`.
    pub fn is_tensor_like(&self) -> bool {
        self.base() == Some(BaseType::Tensor)
    }

    /// Whether some level of it is a list.
    pub fn is_list_like(&self) -> bool {
        match self {
            Type::List(..) => true,
            Type::Optional(inner) => inner.is_list_like(),
            Type::Base(_) | Type::Class(_) => false,
        }
    }

    /// Writes the type with an annotation after its innermost name: `Tensor(a!)[]`.
    pub(super) fn write(&self, f: &mut fmt::Formatter<'_>, alias: Option<&Alias>) -> fmt::Result {
        match self {
            Type::Base(base) => {
                f.write_str(base.name())?;
                match alias {
                    Some(alias) => write!(f, "({alias})"),
                    None => Ok(()),
                }
            }
            Type::Class(path) => f.write_str(path),
            Type::Optional(inner) => {
                inner.write(f, alias)?;
                f.write_str("?")
            }
            Type::List(inner, length) => {
                inner.write(f, alias)?;
                match length {
                    Some(length) => write!(f, "[{length}]"),
                    None => f.write_str("[]"),
                }
            }
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, None)
    }
}

/// The annotation of a tensor that shares memory: `a`, `a!`, `a|b`, `a -> *`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Alias {
    /// The sets the tensor belongs to, as letters.
    pub sets: Vec<char>,
    /// Whether the operator writes the tensor.
    pub mutable: bool,
    /// The sets afterwards, if they change.
    pub after: Option<AliasAfter>,
}

/// The possible aliases of an argument after the call.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum AliasAfter {
    /// Anything.
    Wildcard,
    /// The sets of these letters.
    Sets(Vec<char>),
}

impl fmt::Display for Alias {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let join = |sets: &[char]| sets.iter().map(char::to_string).collect::<Vec<_>>().join("|");
        f.write_str(&join(&self.sets))?;
        if self.mutable {
            f.write_str("!")?;
        }
        match &self.after {
            None => Ok(()),
            Some(AliasAfter::Wildcard) => f.write_str(" -> *"),
            Some(AliasAfter::Sets(sets)) => write!(f, " -> {}", join(sets)),
        }
    }
}
