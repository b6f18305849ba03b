//! Sizes that inference found as formulas: texts of symbols, numbers and their arithmetic.
//!
//! In: texts as the runtime's symbolic sizes print them, `4*s0+1`, `floor(s1/2)`, `s0 == s2`; they may be damaged. Out: MathML.

use opsmith_codegen::model::{Model, Op};

use super::expression::Writer;
use super::mathml::{
    Level, Math, between, call, commas, difference_of, display, infix, negate, not, number, operator_sign,
    power, product_of, quotient, sum_of, words,
};
use super::names::{name, upright};

/// An argument of a sample.
pub enum SizesOfArgument<'a> {
    /// The sizes of a tensor, as formulas.
    Sizes(&'a [String]),
    /// The sizes of the tensors of a list; `None` for an absent one.
    List(Vec<Option<Vec<String>>>),
    /// Another value, as text.
    Value(&'a str),
}

/// The sizes of results; `None` for a size without formula, or for all if the number of dimensions is open.
pub type ResultSizes = Option<Vec<Option<String>>>;

/// The sizes of the results of a sample as formulas of the sizes of its arguments: `self [s0, s1], dim = 1 → [s0]`, with the
/// conditions on sizes.
pub fn sample(
    model: &Model,
    op: &Op,
    arguments: &[(&str, SizesOfArgument<'_>)],
    results: &[ResultSizes],
    conditions: &[String],
) -> String {
    let given = commas(arguments.iter().map(|(label, argument)| of_argument(label, argument)).collect());
    let writer = Writer::new(model, op);
    let is_named = op.visible().len() > 1 && results.len() <= op.visible().len();
    let result = |(index, sizes): (usize, &ResultSizes)| {
        let shape = match sizes {
            Some(sizes) => {
                list(sizes.iter().map(|size| size.as_deref().map_or_else(open, formula)).collect())
            }
            None => open(),
        };
        if is_named { beside(writer.result(index), shape) } else { shape }
    };
    let results = commas(results.iter().enumerate().map(result).collect());
    let mut xml = format!("{}{}{}", given.xml, operator_sign("→"), results.xml);
    if !conditions.is_empty() {
        let conditions = commas(conditions.iter().map(|text| formula(text)).collect());
        xml.push_str(&format!("<mspace width=\"1em\"/>{}{}", words("if "), conditions.xml));
    }
    display(Math::new(xml, Level::Rows))
}

fn of_argument(label: &str, argument: &SizesOfArgument<'_>) -> Math {
    let sizes = |sizes: &[String]| list(sizes.iter().map(|size| formula(size)).collect());
    match argument {
        SizesOfArgument::Sizes(of) => beside(name(label), sizes(of)),
        SizesOfArgument::List(tensors) => {
            let each = tensors.iter().map(|tensor| tensor.as_deref().map_or_else(|| upright("none"), sizes));
            beside(name(label), between("(", commas(each.collect()), ")"))
        }
        SizesOfArgument::Value(text) => infix(name(label), "=", Math::atom(words(text)), Level::Compare),
    }
}

/// A tensor's name before its sizes.
fn beside(name: Math, sizes: Math) -> Math {
    Math::atom(format!("<mrow>{}<mspace width=\"0.25em\"/>{}</mrow>", name.xml, sizes.xml))
}

fn list(sizes: Vec<Math>) -> Math {
    between("[", commas(sizes), "]")
}

/// A size that no formula gives.
fn open() -> Math {
    Math::atom(operator_sign("?"))
}

/// A formula or condition; a text that is none stays text.
pub fn formula_of_size(text: &str) -> String {
    format!("<math><mrow>{}</mrow></math>", formula(text).xml)
}

fn formula(text: &str) -> Math {
    let mut reader = Reader { rest: text.trim(), depth: 0 };
    match reader.any_of() {
        Some(math) if reader.rest.is_empty() => math,
        _ => Math::atom(words(text)),
    }
}

/// The most parentheses inside each other.
const DEEPEST: usize = 32;

/// The rest of a text that is being read.
struct Reader<'a> {
    rest: &'a str,
    depth: usize,
}

impl Reader<'_> {
    fn take(&mut self, sign: &str) -> bool {
        let rest = self.rest.strip_prefix(sign);
        self.rest = rest.map_or(self.rest, str::trim_start);
        rest.is_some()
    }

    /// `a || b`
    fn any_of(&mut self) -> Option<Math> {
        let mut math = self.all_of()?;
        while self.take("||") {
            math = infix(math, "∨", self.all_of()?, Level::Or);
        }
        Some(math)
    }

    /// `a && b`
    fn all_of(&mut self) -> Option<Math> {
        let mut math = self.comparison()?;
        while self.take("&&") {
            math = infix(math, "∧", self.comparison()?, Level::And);
        }
        Some(math)
    }

    fn comparison(&mut self) -> Option<Math> {
        let left = self.sum()?;
        let signs = [("==", "="), ("!=", "≠"), (">=", "≥"), ("<=", "≤"), ("<", "<"), (">", ">")];
        match signs.into_iter().find(|(text, _)| self.take(text)) {
            Some((_, sign)) => Some(infix(left, sign, self.sum()?, Level::Compare)),
            None => Some(left),
        }
    }

    fn sum(&mut self) -> Option<Math> {
        let mut math = if self.take("-") { negate(self.product()?) } else { self.product()? };
        loop {
            if self.take("+") {
                math = sum_of(math, self.product()?);
            } else if self.take("-") {
                math = difference_of(math, self.product()?);
            } else {
                return Some(math);
            }
        }
    }

    fn product(&mut self) -> Option<Math> {
        let mut math = self.power()?;
        loop {
            if self.take("*") {
                math = product_of(math, self.power()?, "⋅");
            } else if self.take("/") {
                math = quotient(math, self.power()?);
            } else if self.take("%") {
                math = infix(math, "mod", self.power()?, Level::Infix);
            } else {
                return Some(math);
            }
        }
    }

    fn power(&mut self) -> Option<Math> {
        let base = self.atom()?;
        if self.take("^") { Some(power(base, self.atom()?)) } else { Some(base) }
    }

    fn atom(&mut self) -> Option<Math> {
        if self.take("!") {
            return Some(not(self.inside()?));
        }
        if self.rest.starts_with('(') {
            return self.inside();
        }
        if self.rest.starts_with("floor(") {
            self.rest = self.rest.trim_start_matches(|letter: char| letter != '(');
            return Some(between("⌊", self.inside()?, "⌋"));
        }
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let end = self.rest.find(|letter| !is_part(letter)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        if word.starts_with(|letter: char| letter.is_ascii_digit()) {
            return word.parse::<u32>().ok().map(|value| number(f64::from(value)));
        }
        match (word, self.rest.starts_with('(')) {
            ("", _) => None,
            (_, false) => Some(name(word).compact()),
            (_, true) => Some(call(upright(word), self.list_inside()?)),
        }
    }

    fn inside(&mut self) -> Option<Math> {
        let mut parts = self.list_inside()?;
        let only = parts.pop()?;
        parts.is_empty().then_some(only)
    }

    /// Formulas between parentheses and commas.
    fn list_inside(&mut self) -> Option<Vec<Math>> {
        self.depth += 1;
        if self.depth > DEEPEST || !self.take("(") {
            return None;
        }
        let mut parts = vec![self.any_of()?];
        while self.take(",") {
            parts.push(self.any_of()?);
        }
        self.depth -= 1;
        self.take(")").then_some(parts)
    }
}
