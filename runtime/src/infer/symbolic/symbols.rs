//! The symbol table: names, bounds and origins.
//!
//! In: new symbols with bounds. Out: their names, bounds and values. A symbol derived from others (quotient, maximum)
//! is in the table once, for any number of uses.

use std::collections::HashMap;
use std::fmt;

use smallvec::SmallVec;

use super::range::Range;
use super::size::Size;
use crate::error::{Error, Result};

/// A size with a name and without a value yet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Symbol(pub u32);

/// The default name of a symbol: `s0`.
impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s{}", self.0)
    }
}

/// The time at which the value of a symbol becomes known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Origin {
    /// With the inputs.
    Input,
    /// After the operator that computes it has run.
    Run,
    /// With the other symbols that it is computed from.
    Derived(Derivation),
}

/// The computation of a symbol from sizes, where no polynomial expresses it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs, reason = "each variant is what it says of its two sizes")]
pub enum Derivation {
    /// Rounded toward zero.
    Quotient(Size, Size),
    /// With the sign of the dividend.
    Remainder(Size, Size),
    Greater(Size, Size),
    Smaller(Size, Size),
}

/// An entry of the table: the properties of a symbol.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SymbolInfo {
    /// Its name, e.g. `batch`. A derived symbol is written as its computation, e.g. `floor(batch/2)` ([`Size::named`]).
    pub name: String,
    /// The smallest value it may have.
    pub least: i64,
    /// The largest value it may have, a number or a formula of other symbols; unknown if there is no bound.
    pub most: Size,
    /// A divisor of all its values.
    pub multiple_of: i64,
    /// An example value: the size in the call that was traced.
    pub example: Option<i64>,
    /// The time at which its value becomes known.
    pub origin: Origin,
}

impl SymbolInfo {
    /// A size of 0 or more, with a name and an origin only.
    pub fn new(name: impl Into<String>, origin: Origin) -> SymbolInfo {
        SymbolInfo { name: name.into(), least: 0, most: Size::Unknown, multiple_of: 1, example: None, origin }
    }

    /// The symbols that a derived one is computed from, each once.
    pub fn made_of(&self) -> Vec<Symbol> {
        let Origin::Derived(derivation) = &self.origin else { return Vec::new() };
        let mut found: Vec<Symbol> = derivation.sizes().into_iter().flat_map(Size::symbols).collect();
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// All symbols of a graph. A [`Symbol`] is an index into the table that made it.
#[derive(Clone, Default, Debug)]
pub struct Symbols {
    entries: Vec<SymbolInfo>,
    derived: HashMap<Derivation, Symbol>,
}

/// Values of symbols, by position in their table. A few are stored inline.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
pub struct Bindings {
    values: SmallVec<[Option<i64>; 8]>,
}

impl Bindings {
    /// A symbol's value.
    #[inline]
    pub fn get(&self, symbol: Symbol) -> Option<i64> {
        self.values.get(symbol.0 as usize).copied().flatten()
    }
}

impl Symbols {
    /// A table without symbols.
    pub fn new() -> Symbols {
        Symbols::default()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All symbols in order.
    pub fn all(&self) -> impl Iterator<Item = Symbol> + use<> {
        (0..self.entries.len() as u32).map(Symbol)
    }

    /// The entries in order.
    pub fn infos(&self) -> &[SymbolInfo] {
        &self.entries
    }

    /// The entry of a symbol; `None` if the symbol belongs to another table.
    pub fn info(&self, symbol: Symbol) -> Option<&SymbolInfo> {
        self.entries.get(symbol.0 as usize)
    }

    /// A new symbol that is not derived. If its name is taken, it gets its number as name.
    pub fn add(&mut self, mut info: SymbolInfo) -> Symbol {
        let number = self.entries.len();
        while self.entries.iter().any(|known| known.name == info.name) {
            info.name = format!("{}'{number}", info.name);
        }
        self.push(info)
    }

    /// Raises the smallest value that a symbol may have.
    pub fn raise_least(&mut self, symbol: Symbol, least: i64) {
        if let Some(entry) = self.entries.get_mut(symbol.0 as usize) {
            entry.least = entry.least.max(least);
        }
    }

    /// A new size of an input, at least 0.
    pub fn fresh(&mut self) -> Symbol {
        self.push(SymbolInfo::new(format!("s{}", self.entries.len()), Origin::Input))
    }

    /// A new size of an input with an example value.
    pub fn fresh_like(&mut self, example: i64) -> Symbol {
        let info = SymbolInfo::new(format!("s{}", self.entries.len()), Origin::Input);
        self.push(SymbolInfo { example: Some(example), ..info })
    }

    /// The example value of a symbol, which decides choices that the symbol leaves open.
    pub fn example(&self, symbol: Symbol) -> Option<i64> {
        self.info(symbol)?.example
    }

    /// A symbol's value from those of the symbols that it is derived from.
    pub fn value(&self, symbol: Symbol, given: &dyn Fn(Symbol) -> Option<i64>) -> Option<i64> {
        match self.entries.get(symbol.0 as usize).map(|entry| &entry.origin) {
            Some(Origin::Derived(derivation)) => {
                derivation.value(&|size| size.evaluate(|symbol| self.value(symbol, given)))
            }
            _ => given(symbol),
        }
    }

    /// As [`Symbols::value`]; values of derived symbols may be given as well.
    pub(super) fn derived_from(&self, symbol: Symbol, given: &dyn Fn(Symbol) -> Option<i64>) -> Option<i64> {
        given(symbol).or_else(|| match self.entries.get(symbol.0 as usize).map(|entry| &entry.origin) {
            Some(Origin::Derived(derivation)) => {
                derivation.value(&|size| size.evaluate(|symbol| self.derived_from(symbol, given)))
            }
            _ => None,
        })
    }

    /// The symbols that a size is ultimately computed from, each once: none is derived.
    pub(super) fn leaves(&self, size: &Size, found: &mut Vec<Symbol>) {
        for symbol in size.symbols() {
            match self.entries.get(symbol.0 as usize).map(|entry| &entry.origin) {
                Some(Origin::Derived(derivation)) => {
                    derivation.sizes().into_iter().for_each(|size| self.leaves(size, found));
                }
                _ if found.contains(&symbol) => {}
                _ => found.push(symbol),
            }
        }
    }

    /// A new size of an input with a name of its own, from `low` to `high`.
    ///
    /// # Errors
    /// If the name is taken, or no value is within the bounds.
    pub fn named(&mut self, name: &str, low: i64, high: Option<i64>) -> Result<Symbol> {
        if self.entries.iter().any(|entry| entry.name == name) {
            return Err(Error::value(format!("there is a symbol `{name}` already"))
                .with_help("use that symbol, or give this one another name"));
        }
        if low < 0 || high.is_some_and(|high| high < low) {
            let high = high.map_or("any".to_owned(), |high| high.to_string());
            return Err(Error::value(format!("`{name}` would be a size from {low} to {high}"))
                .with_help("sizes are 0 or more, and the upper bound is not below the lower one"));
        }
        let most = high.map_or(Size::Unknown, Size::Const);
        Ok(self.push(SymbolInfo { least: low, most, ..SymbolInfo::new(name, Origin::Input) }))
    }

    /// A new data-dependent size, known after its operator has run: at least 0, at most `high`, which may be unknown.
    pub fn of_run(&mut self, high: Size) -> Symbol {
        let info = SymbolInfo::new(format!("u{}", self.entries.len()), Origin::Run);
        self.push(SymbolInfo { most: high, ..info })
    }

    /// The quotient of two sizes, rounded toward zero: a formula if there is one, else a derived symbol.
    pub fn quotient(&mut self, dividend: &Size, divisor: &Size) -> Size {
        match (dividend, divisor) {
            (_, Size::Const(0)) | (Size::Unknown, _) | (_, Size::Unknown) => Size::Unknown,
            (Size::Const(a), Size::Const(b)) => a.checked_div(*b).map_or(Size::Unknown, Size::Const),
            (a, b) => match a.div_exact(b) {
                Some(exact) => exact,
                None => self.derive(Derivation::Quotient(a.clone(), b.clone())),
            },
        }
    }

    /// The remainder of a division rounded toward zero.
    pub fn remainder(&mut self, dividend: &Size, divisor: &Size) -> Size {
        match (dividend, divisor) {
            (_, Size::Const(0)) | (Size::Unknown, _) | (_, Size::Unknown) => Size::Unknown,
            (Size::Const(a), Size::Const(b)) => a.checked_rem(*b).map_or(Size::Unknown, Size::Const),
            (a, b) if a.div_exact(b).is_some() => Size::Const(0),
            (a, b) => self.derive(Derivation::Remainder(a.clone(), b.clone())),
        }
    }

    /// The maximum of two sizes.
    pub fn greater(&mut self, a: &Size, b: &Size) -> Size {
        match a.is_less(b, self) {
            Some(true) => b.clone(),
            Some(false) => a.clone(),
            None if a.is_unknown() || b.is_unknown() => Size::Unknown,
            None => self.derive(Derivation::Greater(a.clone(), b.clone())),
        }
    }

    /// The minimum of two sizes.
    pub fn smaller(&mut self, a: &Size, b: &Size) -> Size {
        match a.is_less(b, self) {
            Some(true) => a.clone(),
            Some(false) => b.clone(),
            None if a.is_unknown() || b.is_unknown() => Size::Unknown,
            None => self.derive(Derivation::Smaller(a.clone(), b.clone())),
        }
    }

    /// The origin of a symbol.
    ///
    /// # Panics
    /// If the symbol belongs to another table.
    pub fn origin(&self, symbol: Symbol) -> &Origin {
        &self.entries[symbol.0 as usize].origin
    }

    /// Bindings of the given symbols and of those derived from them.
    ///
    /// # Errors
    /// If a value is outside the symbol's bounds, or a symbol belongs to another table.
    pub fn bind(&self, values: &[(Symbol, i64)]) -> Result<Bindings> {
        let mut bindings = Bindings::default();
        for &(symbol, value) in values {
            self.set(&mut bindings, symbol, value)?;
        }
        self.complete(&mut bindings);
        Ok(bindings)
    }

    /// The values of all symbols, from those of symbols that are not derived. Bounds are not checked.
    pub fn values(&self, given: impl Fn(Symbol) -> Option<i64>) -> Bindings {
        let mut bindings = Bindings::default();
        for (symbol, entry) in self.all().zip(&self.entries) {
            // A derivation refers to older symbols only.
            let value = match &entry.origin {
                Origin::Derived(derivation) => derivation.value(&|size| size.bind(&bindings)),
                _ => given(symbol),
            };
            bindings.values.push(value);
        }
        bindings
    }

    /// Gives a symbol a value.
    ///
    /// # Errors
    /// If it is outside the symbol's known bounds, or the symbol belongs to another table.
    pub fn set(&self, bindings: &mut Bindings, symbol: Symbol, value: i64) -> Result<()> {
        let Some(entry) = self.entries.get(symbol.0 as usize) else {
            return Err(Error::value(format!("{symbol} is not in this table of {} symbols", self.len())));
        };
        let high = entry.most.bind(bindings);
        if value < entry.least || high.is_some_and(|high| value > high) {
            let high = high.map_or(String::new(), |high| format!(" and at most {high}"));
            return Err(Error::shape(format!("the size `{}` is {value}", entry.name))
                .with_help(format!("it is declared to be at least {}{high}", entry.least)));
        }
        if value % entry.multiple_of != 0 {
            return Err(Error::shape(format!("the size `{}` is {value}", entry.name))
                .with_help(format!("it is declared to be a multiple of {}", entry.multiple_of)));
        }
        bindings.values.resize(self.len().max(bindings.values.len()), None);
        bindings.values[symbol.0 as usize] = Some(value);
        Ok(())
    }

    /// Computes the derived symbols whose operands are all known.
    pub fn complete(&self, bindings: &mut Bindings) {
        bindings.values.resize(self.len().max(bindings.values.len()), None);
        // A derivation refers to older symbols only.
        for (index, entry) in self.entries.iter().enumerate() {
            if let Origin::Derived(derivation) = &entry.origin {
                bindings.values[index] = derivation.value(&|size| size.bind(bindings));
            }
        }
    }

    /// A symbol's name; for one of another table, its default name.
    pub(super) fn write_name(&self, f: &mut fmt::Formatter<'_>, symbol: Symbol) -> fmt::Result {
        match self.info(symbol) {
            None => write!(f, "{symbol}"),
            Some(SymbolInfo { origin: Origin::Derived(derivation), .. }) => derivation.write(f, self),
            Some(info) => f.write_str(&info.name),
        }
    }

    pub(super) fn range(&self, symbol: Symbol) -> Range {
        let Some(entry) = self.entries.get(symbol.0 as usize) else { return Range { low: 0, ..Range::ALL } };
        let (low, high) = (entry.least, entry.most.known().unwrap_or(i64::MAX));
        // Contradictory bounds belong to no size; treat it as unknown.
        if low > high { Range { low: 0, ..Range::ALL } } else { Range { low, high } }
    }

    /// The upper bound of a symbol; unknown if it has none.
    pub fn high(&self, symbol: Symbol) -> &Size {
        self.entries.get(symbol.0 as usize).map_or(&Size::Unknown, |entry| &entry.most)
    }

    fn derive(&mut self, derivation: Derivation) -> Size {
        if let Some(known) = self.derived.get(&derivation) {
            return Size::from(*known);
        }
        let range = derivation.range(self);
        let symbol = self.push(SymbolInfo {
            name: format!("s{}", self.entries.len()),
            least: range.low,
            most: if range.high == i64::MAX { Size::Unknown } else { Size::Const(range.high) },
            multiple_of: 1,
            example: derivation.value(&|size| size.evaluate(|symbol| self.example(symbol))),
            origin: Origin::Derived(derivation.clone()),
        });
        self.derived.insert(derivation, symbol);
        Size::from(symbol)
    }

    fn push(&mut self, info: SymbolInfo) -> Symbol {
        let symbol = Symbol(self.entries.len() as u32);
        self.entries.push(info);
        symbol
    }
}

impl Derivation {
    /// The operands of the derivation.
    pub fn sizes(&self) -> [&Size; 2] {
        match self {
            Derivation::Quotient(a, b)
            | Derivation::Remainder(a, b)
            | Derivation::Greater(a, b)
            | Derivation::Smaller(a, b) => [a, b],
        }
    }

    fn value(&self, value_of: &dyn Fn(&Size) -> Option<i64>) -> Option<i64> {
        let [a, b] = self.sizes().map(value_of);
        let (a, b) = (a?, b?);
        match self {
            Derivation::Quotient(..) => a.checked_div(b),
            Derivation::Remainder(..) => a.checked_rem(b),
            Derivation::Greater(..) => Some(a.max(b)),
            Derivation::Smaller(..) => Some(a.min(b)),
        }
    }

    fn range(&self, symbols: &Symbols) -> Range {
        let [a, b] = self.sizes().map(|size| size.range(symbols));
        match self {
            Derivation::Quotient(_, Size::Const(divisor)) if *divisor > 0 => a.divide(*divisor),
            Derivation::Quotient(..) if a.low >= 0 && b.low >= 0 => Range { low: 0, high: a.high },
            Derivation::Remainder(_, Size::Const(divisor)) if *divisor > 0 && a.low >= 0 => {
                Range { low: 0, high: divisor - 1 }
            }
            Derivation::Remainder(..) if a.low >= 0 => Range { low: 0, high: a.high },
            Derivation::Quotient(..) | Derivation::Remainder(..) => Range::ALL,
            Derivation::Greater(..) => Range { low: a.low.max(b.low), high: a.high.max(b.high) },
            Derivation::Smaller(..) => Range { low: a.low.min(b.low), high: a.high.min(b.high) },
        }
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, symbols: &Symbols) -> fmt::Result {
        let [a, b] = self.sizes().map(|size| size.named(symbols));
        match self {
            Derivation::Quotient(dividend, divisor) => {
                let not_negative = |size: &Size| size.range(symbols).low >= 0;
                let a = if dividend.is_sum() { format!("({a})") } else { a.to_string() };
                let is_one = divisor.known().is_some() || divisor.as_symbol().is_some();
                let b = if is_one { b.to_string() } else { format!("({b})") };
                match not_negative(dividend) && not_negative(divisor) {
                    true => write!(f, "floor({a}/{b})"),
                    false => write!(f, "trunc({a}/{b})"),
                }
            }
            Derivation::Remainder(..) => write!(f, "(({a})%({b}))"),
            Derivation::Greater(..) => write!(f, "max({a}, {b})"),
            Derivation::Smaller(..) => write!(f, "min({a}, {b})"),
        }
    }
}
