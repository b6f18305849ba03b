//! The formula of an operator as its entry writes it (`formula:`), parsed, and the signs and words of its notation.
//!
//! In: a formula that `lower` has checked. Out: typed data for documents. Nothing computes with it.

/// A formula: one statement a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Formula {
    /// The lines, in order; at least one.
    pub lines: Vec<FormulaLine>,
}

/// A line of a formula.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FormulaLine {
    /// Its text, in which the names of the signature have no braces and words no quotes.
    pub text: String,
    /// Its statement.
    pub node: FormulaNode,
}

/// A part of a formula. Parentheses that only group are left out: documents write those that they need.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FormulaNode {
    /// An argument, by position.
    Argument(usize),
    /// A result, by position.
    Result(usize),
    /// An index, a quantity that a line defines, or a function.
    Name(String),
    /// A number as it is written.
    Number(String),
    /// Words in quotes.
    Words(String),
    /// Every index along a dimension: `:`.
    All,
    /// Dimensions or items between: `…`.
    Ellipsis,
    /// Marks at the right of a part.
    Script(Box<FormulaNode>, FormulaScripts),
    /// A function of arguments.
    Call(Box<FormulaNode>, Vec<FormulaNode>),
    /// Items between two signs, which grow with them.
    Fence(char, Vec<FormulaNode>, char),
    /// A square root.
    Root(Box<FormulaNode>),
    /// Values with their conditions; one without a condition holds otherwise.
    Cases(Vec<(FormulaNode, Option<FormulaNode>)>),
    /// An operation over a range, such as a sum: its range below, its end above, its body.
    Over(&'static RangeOperator, FormulaScripts, Box<FormulaNode>),
    /// `−a`
    Negative(Box<FormulaNode>),
    /// `¬a`
    Not(Box<FormulaNode>),
    /// Two operands of a sign.
    Infix(Box<FormulaNode>, &'static Sign, Box<FormulaNode>),
    /// Factors without a sign.
    Product(Box<FormulaNode>, Box<FormulaNode>),
    /// A comparison of two or more: `0 ≤ i < n`.
    Relation(Box<FormulaNode>, Vec<(&'static Sign, FormulaNode)>),
    /// Parts and words in a row.
    Row(Vec<FormulaNode>),
    /// Items between commas.
    List(Vec<FormulaNode>),
}

/// The marks at the right of a part: an index below, an exponent or a mark above.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct FormulaScripts {
    /// Below.
    pub below: Option<Box<FormulaNode>>,
    /// Above.
    pub above: Option<Box<FormulaNode>>,
}

/// The strength of a sign, from the weakest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Strength {
    /// `∨`
    Or,
    /// `∧`
    And,
    /// `=`
    Relation,
    /// `mod`
    Remainder,
    /// `+`
    Sum,
    /// `⋅`
    Product,
}

/// A sign between two operands.
#[derive(PartialEq, Eq, Debug)]
pub struct Sign {
    /// Its spelling.
    pub text: &'static str,
    /// Its strength.
    pub strength: Strength,
}

const fn sign(text: &'static str, strength: Strength) -> Sign {
    Sign { text, strength }
}

/// The signs between two operands.
pub static SIGNS: &[Sign] = &[
    sign("∨", Strength::Or),
    sign("∧", Strength::And),
    sign("=", Strength::Relation),
    sign("≠", Strength::Relation),
    sign("<", Strength::Relation),
    sign("≤", Strength::Relation),
    sign(">", Strength::Relation),
    sign("≥", Strength::Relation),
    sign("∈", Strength::Relation),
    sign("∉", Strength::Relation),
    sign("≈", Strength::Relation),
    sign("≡", Strength::Relation),
    sign("~", Strength::Relation),
    sign("←", Strength::Relation),
    sign("mod", Strength::Remainder),
    sign("+", Strength::Sum),
    sign("−", Strength::Sum),
    sign("/", Strength::Product),
    sign("⋅", Strength::Product),
    sign("×", Strength::Product),
    sign("⊙", Strength::Product),
    sign("⊗", Strength::Product),
];

/// An operation over a range.
#[derive(PartialEq, Eq, Debug)]
pub struct RangeOperator {
    /// Its spelling in a spec.
    pub text: &'static str,
    /// Its sign in documents.
    pub shown: &'static str,
    /// Whether it is a word, and a function where it stands before parentheses.
    pub is_word: bool,
}

const fn over(text: &'static str, shown: &'static str) -> RangeOperator {
    RangeOperator { text, shown, is_word: false }
}

const fn word(text: &'static str) -> RangeOperator {
    RangeOperator { text, shown: text, is_word: true }
}

/// The operations over a range.
pub static RANGE_OPERATORS: &[RangeOperator] = &[
    over("Σ", "∑"),
    over("∏", "∏"),
    over("⋁", "⋁"),
    over("⋀", "⋀"),
    word("max"),
    word("min"),
    word("argmax"),
    word("argmin"),
    word("sup"),
    word("inf"),
];

/// Functions and values that formulas need not define, between spaces: they are mathematics, whatever operators are called.
const WORDS: &str = "exp ln log sin cos tan sinh cosh tanh arcsin arccos arctan erf sgn round gcd det tr rank diag arg Re Im \
                     shape size dtype true false none NaN";

/// Functions and values that formulas need not define.
pub fn formula_words() -> impl Iterator<Item = &'static str> {
    WORDS.split_whitespace()
}

/// Words of the grammar of formulas, which name nothing.
pub const GRAMMAR_WORDS: [&str; 3] = ["cases", "if", "otherwise"];

/// Signs that open and close a part of a formula.
pub const FENCES: [(char, char); 7] =
    [('(', ')'), ('[', ']'), ('⌊', '⌋'), ('⌈', '⌉'), ('‖', '‖'), ('|', '|'), ('⟨', '⟩')];
