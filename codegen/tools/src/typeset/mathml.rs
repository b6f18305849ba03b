//! Presentation MathML with precedence: formulas that know where they need parentheses.
//!
//! In: parts of a formula. Out: [`Math`], whose text is well-formed XML. Must not know models.

/// The weakest sign of a formula, from the weakest: a formula stands without parentheses where a weaker one could.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Level {
    /// Rows: cases, or lines of bindings.
    Rows,
    /// `a ∨ b`
    Or,
    /// `a ∧ b`
    And,
    /// `¬a`
    Not,
    /// `a ≤ b`
    Compare,
    /// `a mod b`, and other signs without a place among the arithmetic ones.
    Infix,
    /// `a + b`
    Sum,
    /// `-a`
    Negative,
    /// `a ⋅ b`
    Product,
    /// `Σ a`
    Prefix,
    /// A fraction, which its bar holds together.
    Fraction,
    /// `aⁿ`
    Power,
    /// A name, a number, anything between two signs.
    Atom,
}

/// A formula.
#[derive(Clone, Debug)]
pub(super) struct Math {
    /// Its elements.
    pub xml: String,
    /// Its weakest sign.
    pub level: Level,
    /// Whether it begins with a minus sign.
    pub is_negative: bool,
    /// Whether a number may stand before it as a factor, without a sign.
    pub follows_number: bool,
    /// Its value, if it is a number; of a truth value, 1 or 0.
    pub number: Option<f64>,
    /// The last factor of a product.
    pub last: Option<Last>,
}

/// The last factor of a product, so that another like it becomes an exponent.
#[derive(Clone, Debug)]
pub(super) struct Last {
    /// The factors before it.
    before: Option<Box<Math>>,
    /// The factor.
    factor: Box<Math>,
    /// The number of times that it occurs.
    count: u32,
}

impl Math {
    pub fn new(xml: String, level: Level) -> Math {
        Math { xml, level, is_negative: false, follows_number: false, number: None, last: None }
    }

    pub fn atom(xml: String) -> Math {
        Math::new(xml, Level::Atom)
    }

    /// The same formula, before which a number needs no sign.
    pub fn compact(self) -> Math {
        Math { follows_number: true, ..self }
    }

    /// The formula, in parentheses unless its weakest sign is at least as strong as `least`.
    pub fn at_least(self, least: Level) -> Math {
        if self.level >= least { self } else { between("(", self, ")") }
    }

    /// The formula as an operand that no minus sign may begin.
    pub fn unsigned(self, least: Level) -> Math {
        if self.is_negative { between("(", self, ")") } else { self.at_least(least) }
    }
}

/// Text as XML has it. Characters that no XML may have are replaced.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' => out.push(' '),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// A sign.
pub(super) fn operator_sign(text: &str) -> String {
    format!("<mo>{}</mo>", escape(text))
}

/// A sign that is a parenthesis, and grows with its content if that is higher than a line.
fn fence(text: &str, form: &str, content: &str) -> String {
    let is_high = ["<mfrac", "<mtable", "<msqrt", "<msup", "<msubsup", "<munder", "<mover"]
        .iter()
        .any(|element| content.contains(element));
    format!("<mo fence=\"true\" form=\"{form}\" stretchy=\"{is_high}\">{}</mo>", escape(text))
}

/// A formula between two signs.
pub(super) fn between(open: &str, inner: Math, close: &str) -> Math {
    let (open, close) = (fence(open, "prefix", &inner.xml), fence(close, "postfix", &inner.xml));
    Math::atom(format!("<mrow>{open}{}{close}</mrow>", inner.xml))
}

/// Words.
pub(super) fn words(text: &str) -> String {
    format!("<mtext>{}</mtext>", escape(text).replace(' ', "\u{a0}"))
}

/// A thin space.
pub(super) const THIN: &str = "<mspace width=\"0.17em\"/>";

/// A number.
pub(super) fn number(value: f64) -> Math {
    let whole = |text: String, negative: bool| {
        let sign = if negative { operator_sign("−") } else { String::new() };
        let xml = format!("{sign}<mn>{text}</mn>");
        let level = if negative { Level::Negative } else { Level::Atom };
        Math { is_negative: negative, number: Some(value), ..Math::new(xml, level) }
    };
    let (size, negative) = (value.abs(), value.is_sign_negative() && !value.is_nan());
    if value.is_nan() {
        return Math::atom("<mi>NaN</mi>".to_owned());
    }
    if value.is_infinite() {
        return whole("∞".to_owned(), negative);
    }
    let text = format!("{size:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if size == 0.0 || (-5..15).contains(&exponent) {
        return whole(format!("{size}"), negative);
    }
    let power = format!("<msup><mn>10</mn><mrow>{}</mrow></msup>", number(f64::from(exponent)).xml);
    let factor =
        if digits == "1" { String::new() } else { format!("<mn>{digits}</mn>{}", operator_sign("×")) };
    let level = match (negative, factor.is_empty()) {
        (true, _) => Level::Negative,
        (false, true) => Level::Power,
        (false, false) => Level::Product,
    };
    let minus = if negative { operator_sign("−") } else { String::new() };
    Math { is_negative: negative, number: Some(value), ..Math::new(format!("{minus}{factor}{power}"), level) }
}

/// `a + b`, `a − b` where `b` begins with a minus sign.
pub(super) fn sum_of(left: Math, right: Math) -> Math {
    let is_negative = left.is_negative;
    let left = left.at_least(Level::Sum);
    let right = right.unsigned(Level::Sum);
    Math { is_negative, ..Math::new(format!("{}{}{}", left.xml, operator_sign("+"), right.xml), Level::Sum) }
}

pub(super) fn difference_of(left: Math, right: Math) -> Math {
    let is_negative = left.is_negative;
    let left = left.at_least(Level::Sum);
    let right = right.unsigned(Level::Product);
    Math {
        is_negative, ..Math::new(format!("{}{}{}", left.xml, operator_sign("−"), right.xml), Level::Sum)
    }
}

/// A product, with a sign unless a number stands before something that needs none.
pub(super) fn product_of(left: Math, right: Math, symbol: &str) -> Math {
    if let Some(product) = squared(&left, &right, symbol) {
        return product;
    }
    let silent = left.number.is_some() && left.level == Level::Atom && right.follows_number;
    let symbol = if silent { "\u{2062}" } else { symbol };
    let last = (right.level >= Level::Fraction).then(|| Last {
        before: Some(Box::new(left.clone())),
        factor: Box::new(right.clone()),
        count: 1,
    });
    Math { last, ..factors(left, right, Some(symbol)) }
}

/// A product as it is written: with a sign, or else a thin space where two letters would be read as a word.
pub(super) fn factors(left: Math, right: Math, symbol: Option<&str>) -> Math {
    let stands_alone = left.number.is_some() && left.level == Level::Atom && right.follows_number;
    let left = match left.level {
        Level::Prefix => between("(", left, ")"),
        _ => left.unsigned(Level::Product),
    };
    let right = right.unsigned(Level::Product);
    let gap = if symbol.is_some() || stands_alone { "" } else { THIN };
    let sign = operator_sign(symbol.unwrap_or("\u{2062}"));
    Math::new(format!("{}{sign}{gap}{}", left.xml, right.xml), Level::Product)
}

/// A product whose last factor occurs again, as a power of it.
fn squared(left: &Math, right: &Math, symbol: &str) -> Option<Math> {
    let alone = || Last { before: None, factor: Box::new(left.clone()), count: 1 };
    let Last { before, factor, count } = left.last.clone().unwrap_or_else(alone);
    let is_equal = factor.xml == right.xml && factor.number.is_none() && factor.level >= Level::Fraction;
    is_equal.then(|| {
        let count = count + 1;
        let raised = power((*factor).clone(), number(f64::from(count)));
        let product = match &before {
            Some(before) => product_of((**before).clone(), raised, symbol),
            None => raised,
        };
        Math { last: Some(Last { before, factor, count }), ..product }
    })
}

pub(super) fn negate(operand: Math) -> Math {
    let operand = operand.unsigned(Level::Product);
    let xml = format!("{}{}", operator_sign("−"), operand.xml);
    Math { is_negative: true, ..Math::new(xml, Level::Negative) }
}

pub(super) fn quotient(numerator: Math, denominator: Math) -> Math {
    let xml = format!("<mfrac><mrow>{}</mrow><mrow>{}</mrow></mfrac>", numerator.xml, denominator.xml);
    Math::new(xml, Level::Fraction).compact()
}

pub(super) fn power(base: Math, exponent: Math) -> Math {
    let follows_number = base.follows_number && base.level == Level::Atom;
    let base = if base.is_negative { base.unsigned(Level::Atom) } else { base.at_least(Level::Atom) };
    let xml = format!("<msup><mrow>{}</mrow><mrow>{}</mrow></msup>", base.xml, exponent.xml);
    Math { follows_number, ..Math::new(xml, Level::Power) }
}

pub(super) fn subscript(base: Math, index: Math) -> Math {
    let base = base.at_least(Level::Atom);
    Math::atom(format!("<msub><mrow>{}</mrow><mrow>{}</mrow></msub>", base.xml, index.xml))
}

/// A subscript and an exponent above each other.
pub(super) fn scripts(base: Math, below: Math, above: Math) -> Math {
    let base = if base.is_negative { base.unsigned(Level::Atom) } else { base.at_least(Level::Atom) };
    let [base, below, above] = [base, below, above].map(|part| format!("<mrow>{}</mrow>", part.xml));
    Math::new(format!("<msubsup>{base}{below}{above}</msubsup>"), Level::Power)
}

/// A sign with limits.
pub(super) fn over(sign: String, below: Option<Math>, above: Option<Math>) -> String {
    let row = |math: Math| format!("<mrow>{}</mrow>", math.xml);
    match (below.map(row), above.map(row)) {
        (Some(below), Some(above)) => format!("<munderover>{sign}{below}{above}</munderover>"),
        (Some(below), None) => format!("<munder>{sign}{below}</munder>"),
        (None, Some(above)) => format!("<mover>{sign}{above}</mover>"),
        (None, None) => sign,
    }
}

pub(super) fn root(inner: Math) -> Math {
    Math::atom(format!("<msqrt><mrow>{}</mrow></msqrt>", inner.xml)).compact()
}

/// The complex conjugate: a star, which unlike a line above needs no font that stretches it.
pub(super) fn conjugate(inner: Math) -> Math {
    power(inner, Math::atom(operator_sign("∗")))
}

/// A formula below a sign, such as a dot.
pub(super) fn below(inner: Math, accent: &str) -> Math {
    Math::atom(format!("<mover><mrow>{}</mrow>{}</mover>", inner.xml, operator_sign(accent)))
}

/// Two formulas with a sign between them, the sign at its level.
pub(super) fn infix(left: Math, symbol: &str, right: Math, level: Level) -> Math {
    // Operands of comparisons and of the other signs are stronger than the sign: their order is not agreed on.
    let least = match level {
        Level::Or | Level::And => level,
        Level::Compare => Level::Infix,
        _ => Level::Negative,
    };
    let (left, right) = (left.at_least(least), right.at_least(least));
    let space = if symbol.chars().all(char::is_alphabetic) { "<mspace width=\"0.3em\"/>" } else { "" };
    Math::new(format!("{}{space}{}{space}{}", left.xml, operator_sign(symbol), right.xml), level)
}

pub(super) fn not(operand: Math) -> Math {
    let operand = operand.at_least(Level::Fraction);
    Math::new(format!("{}{}", operator_sign("¬"), operand.xml), Level::Not)
}

/// Formulas between commas.
pub(super) fn commas(items: Vec<Math>) -> Math {
    separated(items, "")
}

/// Formulas between commas with a gap behind each.
pub(super) fn separated(items: Vec<Math>, gap: &str) -> Math {
    let items: Vec<String> = items.into_iter().map(|item| item.xml).collect();
    Math::new(items.join(&format!("{}{gap}", operator_sign(","))), Level::Rows)
}

/// Formulas in a row.
pub(super) fn beside(items: Vec<Math>) -> Math {
    Math::new(items.into_iter().map(|item| item.xml).collect(), Level::Rows)
}

/// Operands with comparisons between them.
pub(super) fn chain(first: Math, rest: Vec<(&str, Math)>) -> Math {
    if rest.is_empty() {
        return first;
    }
    let rest = rest
        .into_iter()
        .map(|(sign, operand)| format!("{}<mrow>{}</mrow>", operator_sign(sign), operand.xml));
    Math::new(format!("<mrow>{}</mrow>{}", first.xml, rest.collect::<String>()), Level::Compare)
}

/// A function of arguments, by its name as a formula. An exponent behind it could be that of the argument.
pub(super) fn call(name: Math, arguments: Vec<Math>) -> Math {
    let arguments = between("(", commas(arguments), ")");
    Math::new(format!("<mrow>{}<mo>\u{2061}</mo>{}</mrow>", name.xml, arguments.xml), Level::Power)
}

/// A cell of a table. Browsers know no alignment of MathML but that of style sheets; Chromium moves the row in a cell to the
/// right by its own word alone.
fn cell(side: &str, content: &str) -> String {
    let own = if side == "right" { ";text-align:-webkit-right" } else { "" };
    format!("<mtd style=\"text-align:{side}{own}\"><mrow>{content}</mrow></mtd>")
}

/// Values with their conditions behind a brace; the last one, without a condition, holds otherwise.
pub(super) fn cases(rows: Vec<(Math, Option<Math>)>) -> Math {
    let row = |(value, condition): (Math, Option<Math>)| {
        let condition = match condition {
            Some(condition) => format!("{}{}", words("if "), condition.xml),
            None => words("otherwise"),
        };
        let (value, condition) = (cell("left", &value.xml), cell("left", &condition));
        format!("<mtr>{value}{condition}</mtr>")
    };
    let rows: String = rows.into_iter().map(row).collect();
    let table = format!("<mtable displaystyle=\"true\">{rows}</mtable>");
    Math::new(format!("<mrow>{}{table}</mrow>", fence("{", "prefix", &table)), Level::Rows)
}

/// Equations, a line each.
pub(super) fn lines(rows: Vec<(Math, Math)>) -> Math {
    equation_lines(rows.into_iter().map(|(left, right)| (left, "=", right)).collect())
}

/// Relations, a line each, aligned at their signs.
pub(super) fn equation_lines(rows: Vec<(Math, &str, Math)>) -> Math {
    let row = |(left, sign, right): (Math, &str, Math)| {
        let cells =
            [cell("right", &left.xml), cell("center", &operator_sign(sign)), cell("left", &right.xml)];
        format!("<mtr>{}</mtr>", cells.concat())
    };
    let rows: String = rows.into_iter().map(row).collect();
    let table = format!("<mtable displaystyle=\"true\">{rows}</mtable>");
    Math::new(table, Level::Rows)
}

/// An equation.
pub(super) fn equation(left: Math, right: Math) -> Math {
    Math::new(
        format!("<mrow>{}</mrow>{}<mrow>{}</mrow>", left.xml, operator_sign("="), right.xml),
        Level::Compare,
    )
}

/// The whole formula.
pub(super) fn display(math: Math) -> String {
    format!("<math display=\"block\"><mrow>{}</mrow></math>", math.xml)
}
