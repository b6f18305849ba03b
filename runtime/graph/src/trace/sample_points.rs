//! Sample points: the sizes at which a function is traced.
//!
//! In: the symbols of inputs with their bounds, and unified data-dependent sizes. Out: values for them, and names for
//! unnamed dimensions.

use opsmith_runtime::error::{Error, Result};

use super::{Dim, InputSpec, Run, input_name};
use crate::ir::Graph;

/// A value for each symbol.
pub(crate) type Point = Vec<i64>;

/// Sizes with possible special treatment. A graph accepts them if the function makes the same calls there.
pub(crate) const SMALL: [i64; 2] = [1, 0];

/// Sizes of many kinds, since functions may treat even, odd, small and large sizes and powers of two differently; such
/// differences show between the points.
const SIZES: [i64; 24] =
    [6, 11, 1024, 9, 14, 35, 64, 25, 130, 7, 48, 2049, 27, 16, 77, 10, 512, 33, 8, 121, 20, 4096, 15, 49];

/// A symbol of the inputs.
pub(crate) struct InputSymbol {
    pub name: String,
    pub multiple_of: i64,
    /// The least and the greatest value; `i64::MAX` if there is no upper bound.
    pub least: i64,
    pub most: i64,
    /// The first input and dimension with it.
    pub input: usize,
    pub dim: usize,
}

impl InputSymbol {
    /// Whether a size is within the bounds.
    pub fn admits(&self, size: i64) -> bool {
        self.least <= size && size <= self.most
    }

    /// The size at a place of the sequence of sizes: a multiple within the bounds, if they allow it at least 2 multiples,
    /// and less than the upper bound: often that is the size of a table, of which a part that is all of it is no part.
    fn size(&self, place: usize) -> i64 {
        /// With fewer sizes below the upper bound, formulas would not be determined.
        const ENOUGH: i64 = 4;
        let factor = SIZES[place % SIZES.len()];
        let first = (self.least.max(0) as u64).div_ceil(self.multiple_of as u64) as i64;
        let last = self.most / self.multiple_of;
        let last = if last - first.max(2) >= ENOUGH && self.most < i64::MAX { last - 1 } else { last };
        let first = first.max(2).min(last);
        let factor = match self.most {
            _ if (first..=last).contains(&factor) => factor,
            i64::MAX => first.saturating_add(factor),
            _ => first + factor % (last - first).saturating_add(1),
        };
        factor.saturating_mul(self.multiple_of)
    }
}

/// Gives each unknown size a symbol of its own.
pub(crate) fn name_unknown_dims(mut specs: Vec<InputSpec>) -> Vec<InputSpec> {
    let mut free = 0;
    for input in 0..specs.len() {
        for dim in 0..specs[input].dims.len() {
            if specs[input].dims[dim] != Dim::Unknown {
                continue;
            }
            let is_taken = |name: &str| names(&specs).contains(&name);
            while is_taken(&format!("s{free}")) {
                free += 1;
            }
            specs[input].dims[dim] = Dim::from(format!("s{free}").as_str());
        }
    }
    specs
}

/// Rejects inputs of any rank unless `any_rank`, and wrong uses of [`Dim::AnyRank`].
pub(crate) fn check_ranks(specs: &[InputSpec], any_rank: bool) -> Result<()> {
    let refused = |(_, spec): &(usize, &InputSpec)| {
        spec.dims.contains(&Dim::AnyRank) && !(any_rank && spec.is_of_any_rank())
    };
    let Some((number, spec)) = specs.iter().enumerate().find(refused) else { return Ok(()) };
    let name = input_name(specs, number);
    if !spec.is_of_any_rank() {
        return Err(Error::graph(format!("input `{name}` has -2 among several sizes"))
            .with_help("-2 stands alone, for any number of dimensions; a size that is not known is -1"));
    }
    Err(Error::graph(format!("the rank of input `{name}` is unknown")).with_help(
        "trace the function once for each rank, or build the graph of calls by name: `GraphBuilder::open`",
    ))
}

/// The symbols of the inputs, in order of appearance.
pub(crate) fn symbols(specs: &[InputSpec]) -> Result<Vec<InputSymbol>> {
    let mut found: Vec<InputSymbol> = Vec::new();
    for (input, spec) in specs.iter().enumerate() {
        for (dim, size) in spec.dims.iter().enumerate() {
            let Dim::Symbol { name, multiple_of, least, most } = size else { continue };
            let (least, most) = (*least, most.unwrap_or(i64::MAX));
            match found.iter_mut().find(|known| known.name == *name) {
                Some(known) => {
                    known.multiple_of = least_common_multiple(known.multiple_of, *multiple_of)?;
                    (known.least, known.most) = (known.least.max(least), known.most.min(most));
                }
                None => {
                    let (name, multiple_of) = (name.clone(), *multiple_of);
                    found.push(InputSymbol { name, multiple_of, least, most, input, dim });
                }
            }
        }
    }
    for (input, spec) in specs.iter().enumerate() {
        check_sums(&spec.dims, &found)
            .map_err(|error| error.with_note(format!("for input `{}`", input_name(specs, input))))?;
    }
    // The traced sizes are multiples, too.
    const LARGEST: i64 = opsmith_runtime::layout::MAX_NUMEL >> 16;
    if let Some(symbol) = found.iter().find(|symbol| symbol.multiple_of > LARGEST) {
        let InputSymbol { name, multiple_of, .. } = symbol;
        return Err(Error::graph(format!(
            "no tensor has a size `{name}` that is a multiple of {multiple_of}"
        )));
    }
    let empty = |symbol: &&InputSymbol| {
        let InputSymbol { multiple_of, least, most, .. } = **symbol;
        most < least || most / multiple_of * multiple_of < least
    };
    if let Some(InputSymbol { name, multiple_of, least, most, .. }) = found.iter().find(empty) {
        let multiple =
            if *multiple_of > 1 { format!(", a multiple of {multiple_of}") } else { String::new() };
        return Err(Error::graph(format!("`{name}` would be a size from {least} to {most}{multiple}"))
            .with_help("the upper bound is not below the lower one"));
    }
    const MOST: usize = 8;
    if found.len() > MOST {
        let text = format!("the inputs have {} different symbols, and a graph can have {MOST}", found.len());
        return Err(Error::graph(text).with_help("give the same name to sizes that are equal"));
    }
    Ok(found)
}

/// Rejects sums of sizes that no dimension has.
fn check_sums(dims: &[Dim], symbols: &[InputSymbol]) -> Result<()> {
    for dim in dims {
        let Dim::Sum { terms, .. } = dim else { continue };
        let unknown = terms.iter().find(|(_, name)| !symbols.iter().any(|symbol| symbol.name == *name));
        if let Some((_, name)) = unknown {
            return Err(Error::graph(format!(
                "a size is a sum with `{name}`, which no dimension of an input is"
            ))
            .with_help("name a dimension so, or give the sum a name of its own"));
        }
    }
    Ok(())
}

fn least_common_multiple(a: i64, b: i64) -> Result<i64> {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    (a / x).checked_mul(b).ok_or_else(|| Error::graph(format!("no size is a multiple of {a} and {b}")))
}

/// The names of the symbols, in order.
pub(crate) fn names(specs: &[InputSpec]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for dim in specs.iter().flat_map(|spec| &spec.dims) {
        if let Dim::Symbol { name, .. } = dim
            && !names.contains(&name.as_str())
        {
            names.push(name);
        }
    }
    names
}

/// A size of an input at a point.
pub(crate) fn size_at(dim: &Dim, names: &[&str], point: &Point) -> i64 {
    let value = |name: &String| {
        point[names.iter().position(|known| known == name).expect("collected from these inputs")]
    };
    match dim {
        Dim::Fixed(size) => *size,
        Dim::Unknown | Dim::AnyRank => {
            unreachable!("unknown sizes were given symbols, unknown ranks refused")
        }
        Dim::Symbol { name, .. } => value(name),
        Dim::Sum { terms, plus } => terms
            .iter()
            .fold(*plus, |sum, (factor, name)| sum.saturating_add(factor.saturating_mul(value(name)))),
    }
}

/// Number of points that distinguish quotients.
pub(crate) const MANY: usize = 16;

/// The placeholder of the first data-dependent size in the first run.
pub(crate) const FIRST_EXAMPLE: i64 = SIZES[0];

/// The points to trace at: enough to fit polynomials of second degree, and one to confirm them. The last coordinates
/// are data-dependent sizes, each equal to its representative in `unified`. There are at least `least`; a larger number
/// only adds points.
pub(crate) fn points(symbols: &[InputSymbol], unified: &[usize], least: usize) -> Vec<Point> {
    let count = symbols.len() + unified.len();
    let needed = match count {
        0 => 1,
        1..=3 => (count + 1) * (count + 2) / 2 + 1,
        // With more symbols, only linear formulas and products.
        _ => count + 3,
    };
    (0..needed.max(least))
        .map(|number| {
            // A different stride for each symbol, so that the points lie in no plane.
            let size = |position: usize| {
                let tie = position.checked_sub(symbols.len()).and_then(|unknown| unified.get(unknown));
                let position = tie.map_or(position, |tie| symbols.len() + tie);
                let place = number * (position + 1) + 3 * position;
                symbols.get(position).map_or(SIZES[place % SIZES.len()], |symbol| symbol.size(place))
            };
            (0..count).map(size).collect()
        })
        .collect()
}

/// Moves data-dependent sizes, which follow the `inputs` symbols in a point, into their bounds, unless those leave at
/// most one element; sizes that are not unified stay distinct if possible. Returns whether any changed.
pub(crate) fn keep_bounds(point: &mut Point, inputs: usize, unified: &[usize], bounds: &[i64]) -> bool {
    let before = point.clone();
    for size in 0..unified.len() {
        let tied = |other: &usize| unified[*other] == unified[size];
        let most = (0..unified.len()).filter(tied).filter_map(|other| bounds.get(other)).min().copied();
        let Some(most) = most.filter(|most| point[inputs + size] > *most && *most > 1) else { continue };
        let others: Vec<i64> =
            (0..size).filter(|other| !tied(other)).map(|other| point[inputs + other]).collect();
        let free = (2..=most).rev().take(unified.len()).find(|value| !others.contains(value));
        point[inputs + size] = free.unwrap_or(most);
    }
    for size in 0..unified.len() {
        point[inputs + size] = point[inputs + unified[size]];
    }
    *point != before
}

/// Help for a function that fails unless a size is a multiple of a number: the size and the number.
pub(crate) fn fitting_multiple(
    run: &dyn Fn(&Point) -> Result<Run>,
    point: &Point,
    symbols: &[InputSymbol],
) -> Option<String> {
    /// With more symbols or divisors the search would take too long for an error.
    const SYMBOLS: usize = 3;
    const MULTIPLES: [i64; 11] = [2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16];
    let fits = |symbol: usize, multiple: i64| {
        // Two sizes, since one may fit by coincidence.
        [6, 35].into_iter().all(|size: i64| {
            let mut point = point.clone();
            point[symbol] = symbols[symbol].multiple_of.saturating_mul(multiple).saturating_mul(size);
            symbols[symbol].admits(point[symbol]) && run(&point).is_ok()
        })
    };
    let numbers =
        (0..symbols.len().min(SYMBOLS)).flat_map(|symbol| MULTIPLES.map(|multiple| (symbol, multiple)));
    let (symbol, multiple) = numbers.into_iter().find(|(symbol, multiple)| fits(*symbol, *multiple))?;
    let InputSymbol { name, multiple_of, .. } = &symbols[symbol];
    let of = multiple_of.checked_mul(multiple)?;
    Some(format!(
        "it works where `{name}` is a multiple of {of}: declare that with `Dim::multiple(\"{name}\", {of})`, or make \
         the size a number"
    ))
}

/// Adds the sizes at which a function failed, and advice if it succeeded at others.
pub(crate) fn note(
    error: Error,
    point: &Point,
    symbols: &[InputSymbol],
    is_first: bool,
    run: &dyn Fn(&Point) -> Result<Run>,
) -> Error {
    if point.is_empty() {
        return error;
    }
    let size = |(number, size): (usize, &i64)| match symbols.get(number) {
        Some(symbol) => format!("{} = {size}", symbol.name),
        None => format!("u{} = {size}, which elements decide", number - symbols.len()),
    };
    let sizes: Vec<String> = point.iter().enumerate().map(size).collect();
    let error = error.with_note(format!("while the function was traced with {}", sizes.join(", ")));
    if let Some(help) = fitting_multiple(run, point, symbols) {
        return error.with_help(help);
    }
    match (is_first, point.len()) {
        (false, _) => {
            error.with_help("make the size a number, or say what it is always a multiple of: `Dim::multiple`")
        }
        // A single size cannot be confused with another.
        (true, 1) => error,
        (true, _) => {
            error.with_help("sizes of different names differ: give the same name to those that are equal")
        }
    }
}

/// Whether a run at other sizes matches the graph.
pub(crate) fn agrees(graph: &Graph, point: &Point, run: &Run) -> bool {
    let values = graph.symbols.values(|symbol| point.get(symbol.0 as usize).copied());
    let shapes_agree = graph.outputs.iter().zip(&run.shapes).all(|(output, shape)| {
        let sizes = &graph.tensor(*output).layout.sizes;
        sizes.len() == shape.len()
            && sizes.iter().zip(shape).all(|(size, real)| size.bind(&values).is_none_or(|size| size == *real))
    });
    // Copies depend on contiguity at particular sizes; operators do not.
    let of_graph = graph.nodes.iter().filter_map(|node| node.kind.op()).map(|op| op.name);
    let of_run = run.raw.nodes.iter().filter_map(|node| node.kind.op()).map(|op| op.name);
    shapes_agree && graph.outputs.len() == run.shapes.len() && of_graph.eq(of_run)
}
