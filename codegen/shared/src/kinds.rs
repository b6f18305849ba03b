//! Types of arguments: one table, from which the runtime's types and the first of the generator's follow.
//!
//! In: nothing. Out: [`ArgKind`] and [`ItemKind`], and the table itself for the generator, whose expressions have more
//! types. Nothing here knows values.

/// Calls a macro with the table of types of arguments, a row in braces for each.
///
/// Columns: variant, with the type of its parameter and a name for it, if it has one; spelling in expressions and
/// messages of the generator; function of `Arg` that takes such a value; noun in messages of the runtime; meaning.
#[macro_export]
macro_rules! for_each_kind {
    ($($then:tt)+) => {
        $($then)+! {
            { Tensor, "Tensor", tensor, "a tensor", "A tensor." }
            { Tensors, "Tensor[]", tensors, "a list of tensors", "A list of tensors." }
            {
                OptionalTensors, "Tensor?[]", optional_tensors, "a list of optional tensors",
                "A list of tensors of which some may be absent."
            }
            { Bool, "bool", bool, "a bool", "A truth value." }
            { Int, "int", int, "an int", "An integer." }
            { Float, "float", float, "a float", "A floating-point number." }
            { Scalar, "Scalar", scalar, "a number", "A number of any kind." }
            { Str, "str", str, "a str", "A text." }
            {
                Ints(Option<u32>: length), "int[]", ints, "a list of ints",
                "A list of integers; if a length is given, one integer stands for that many."
            }
            { Floats, "float[]", floats, "a list of floats", "A list of floating-point numbers." }
            {
                Bools(Option<u32>: length), "bool[]", bools, "a list of bools",
                "A list of truth values; if a length is given, one stands for that many."
            }
            { Scalars, "Scalar[]", scalars, "a list of numbers", "A list of numbers." }
            { Strs, "str[]", strs, "a list of strs", "A list of texts." }
            { DTypes, "dtype[]", dtypes, "a list of dtypes", "A list of element types." }
            { Lists(ItemKind: item), "[][]", lists, "a list of lists", "A list of lists of this." }
            { DType, "dtype", dtype, "a dtype", "An element type." }
            { Device, "Device", device, "a device", "A device." }
            { MemoryFormat, "MemoryFormat", memory_format, "a memory format", "A memory format." }
            { MemoryLayout, "Layout", memory_layout, "a storage layout", "A storage layout." }
            { Generator, "Generator", generator, "a generator", "A random generator." }
        }
    };
}

/// The enum of the runtime and the columns of the table as its functions.
macro_rules! kinds {
    ($({
        $variant:ident $(($parameter:ty: $name:ident))?, $spelling:literal, $access:ident, $noun:literal,
        $meaning:literal
    })*) => {
        /// Type of an argument or result.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum ArgKind {
            $(#[doc = $meaning] $variant $(($parameter))?,)*
        }

        impl ArgKind {
            /// The variant's identifier, e.g. `Ints`.
            pub const fn ident(self) -> &'static str {
                match self { $(ArgKind::$variant { .. } => stringify!($variant),)* }
            }

            /// The function that takes such a value from an argument, e.g. `ints`.
            pub const fn access(self) -> &'static str {
                match self { $(ArgKind::$variant { .. } => stringify!($access),)* }
            }

            /// The spelling in expressions, e.g. `int[]`; of a list of lists without its items.
            pub const fn spelling(self) -> &'static str {
                match self { $(ArgKind::$variant { .. } => $spelling,)* }
            }

            /// The noun in messages, e.g. `a list of ints`.
            pub const fn noun(self) -> &'static str {
                if let ArgKind::Lists(item) = self {
                    return item.lists();
                }
                match self { $(ArgKind::$variant { .. } => $noun,)* }
            }
        }
    };
}

for_each_kind!(kinds);

/// The items of lists of lists, a row each: variant, type of one, type of a list of them, noun of lists of them.
macro_rules! items {
    ($($variant:ident: $list:expr, $lists:literal;)*) => {
        /// Type of the items of a list of lists.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum ItemKind {
            $(#[doc = concat!("As [`ArgKind::", stringify!($variant), "`].")] $variant,)*
        }

        impl ItemKind {
            /// Every one.
            pub const ALL: [ItemKind; [$($lists),*].len()] = [$(ItemKind::$variant),*];

            /// The variant's identifier.
            pub const fn ident(self) -> &'static str {
                match self { $(ItemKind::$variant => stringify!($variant),)* }
            }

            /// One such value.
            pub const fn kind(self) -> ArgKind {
                match self { $(ItemKind::$variant => ArgKind::$variant,)* }
            }

            /// A list of such values.
            pub const fn list(self) -> ArgKind {
                match self { $(ItemKind::$variant => $list,)* }
            }

            /// Lists of lists of it, for messages.
            pub const fn lists(self) -> &'static str {
                match self { $(ItemKind::$variant => $lists,)* }
            }
        }
    };
}

items! {
    Bool: ArgKind::Bools(None), "a list of lists of bools";
    Int: ArgKind::Ints(None), "a list of lists of ints";
    Float: ArgKind::Floats, "a list of lists of floats";
    Scalar: ArgKind::Scalars, "a list of lists of numbers";
    Str: ArgKind::Strs, "a list of lists of strs";
    DType: ArgKind::DTypes, "a list of lists of dtypes";
}

/// The type of an argument or result, and whether it may be absent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArgType {
    /// The type.
    pub kind: ArgKind,
    /// Whether it may be absent.
    pub optional: bool,
}

impl ArgKind {
    /// The type of something that is always there.
    pub const fn required(self) -> ArgType {
        ArgType { kind: self, optional: false }
    }

    /// The type of something that may be absent.
    pub const fn optional(self) -> ArgType {
        ArgType { kind: self, optional: true }
    }

    /// Whether it is a tensor or a list of them.
    pub const fn holds_tensors(self) -> bool {
        matches!(self, ArgKind::Tensor | ArgKind::Tensors | ArgKind::OptionalTensors)
    }

    /// Whether it holds several values.
    pub const fn is_list(self) -> bool {
        matches!(
            self,
            ArgKind::Tensors
                | ArgKind::OptionalTensors
                | ArgKind::Ints(_)
                | ArgKind::Floats
                | ArgKind::Bools(_)
                | ArgKind::Scalars
                | ArgKind::Strs
                | ArgKind::DTypes
                | ArgKind::Lists(_)
        )
    }

    /// Whether generated code copies values rather than borrows them.
    pub const fn is_copied(self) -> bool {
        !matches!(self, ArgKind::Tensor | ArgKind::Str) && !self.is_list()
    }

    /// Whether values that may be absent can be compared for equality.
    pub const fn is_comparable(self) -> bool {
        let differs =
            matches!(self, ArgKind::Scalar | ArgKind::Scalars | ArgKind::Lists(_) | ArgKind::Generator);
        !differs && !self.holds_tensors()
    }

    /// Whether the interface of custom kernels has attributes of the type.
    pub const fn is_custom_attribute(self) -> bool {
        match self {
            ArgKind::Bool
            | ArgKind::Int
            | ArgKind::Float
            | ArgKind::Scalar
            | ArgKind::Str
            | ArgKind::DType => true,
            ArgKind::Lists(item) => !matches!(item, ItemKind::Str),
            kind => kind.is_list() && !kind.holds_tensors() && !matches!(kind, ArgKind::Strs),
        }
    }
}

impl ArgType {
    /// Whether it is one tensor, which may be optional.
    pub fn is_tensor(self) -> bool {
        self.kind == ArgKind::Tensor
    }

    /// Whether it is a tensor or a list of them.
    pub fn holds_tensors(self) -> bool {
        self.kind.holds_tensors()
    }
}

impl std::fmt::Display for ArgType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.kind.noun())?;
        if self.optional { f.write_str(" or none") } else { Ok(()) }
    }
}
