//! The arithmetic of Einstein sums: equations as labels of dimensions, orders and sizes of the matrices they multiply.
//!
//! In: an equation, `ij,jk->ik`, and labels and sizes of operands. Out: the arguments of permutations, sums, reshapes and
//! batched products. A label is the number of a letter; dimensions that `...` stands for are counted from their end, -1,
//! -2, …, so that those of operands with fewer broadcast. No tensor is looked at.

use opsmith_runtime::{Dims, Error, Result};

/// The terms of an equation.
struct Equation<'a> {
    inputs: Vec<&'a str>,
    /// The term behind the arrow, if there is one.
    output: Option<&'a str>,
}

const DOTS: &str = "...";

impl<'a> Equation<'a> {
    fn parse(text: &'a str) -> Result<Equation<'a>> {
        let (inputs, output) = match text.split_once("->") {
            Some((inputs, output)) => (inputs, Some(output)),
            None => (text, None),
        };
        let equation = Equation { inputs: inputs.split(',').collect(), output };
        for term in equation.inputs.iter().chain(&equation.output) {
            check_term(term).map_err(|why| {
                Error::value(format!("the equation `{text}` {why}")).with_help(
                    "an equation has letters and at most one `...` for each operand, as `...ij,jk->...ik`",
                )
            })?;
        }
        Ok(equation)
    }

    /// The labels of the result, of an operand with the given ones.
    fn output(&self, labels: &[i64]) -> Result<Dims> {
        let mut dots: Dims = labels.iter().copied().filter(|&label| label < 0).collect();
        dots.sort_unstable();
        dots.dedup();
        let Some(output) = self.output else {
            // Letters that occur once, in order of the alphabet, capitals first.
            let mut counts = [0usize; 128];
            self.inputs.iter().flat_map(|term| letters(term)).for_each(|letter| counts[letter as usize] += 1);
            dots.extend((0..128).filter(|&letter| counts[letter as usize] == 1));
            return Ok(dots);
        };
        let (before, after) = output.split_once(DOTS).unwrap_or((output, ""));
        let dots = if output.contains(DOTS) { dots } else { Dims::new() };
        let order: Dims = letters(before).chain(dots).chain(letters(after)).collect();
        for (place, label) in order.iter().enumerate() {
            let name = name(*label);
            if order[..place].contains(label) {
                return Err(Error::value(format!("`{name}` stands twice in the result of the equation")));
            }
            if *label > 0 && !self.inputs.iter().any(|term| letters(term).any(|letter| letter == *label)) {
                return Err(Error::value(format!("`{name}` of the equation's result is in no operand")));
            }
        }
        Ok(order)
    }
}

fn check_term(term: &str) -> Result<(), String> {
    let without = term.replacen(DOTS, "", 1);
    match without.chars().find(|c| !c.is_ascii_alphabetic() && *c != ' ') {
        Some('.') => Err("has `.` outside of one `...` a term".to_owned()),
        Some(other) => Err(format!("has `{other}`")),
        None => Ok(()),
    }
}

fn letters(term: &str) -> impl Iterator<Item = i64> + '_ {
    term.bytes().filter(u8::is_ascii_alphabetic).map(i64::from)
}

fn name(label: i64) -> String {
    u8::try_from(label).map_or_else(|_| DOTS.to_owned(), |letter| char::from(letter).to_string())
}

/// The labels of an operand's dimensions.
///
/// # Errors
/// If the equation is malformed, has another number of operands, or the operand another number of dimensions.
pub fn labels(equation: &str, count: i64, at: i64, rank: i64) -> Result<Dims> {
    let terms = Equation::parse(equation)?.inputs;
    if terms.len() as i64 != count {
        let message = format!("the equation `{equation}` is of {} operands, not of {count}", terms.len());
        return Err(Error::value(message));
    }
    let term = usize::try_from(at).ok().and_then(|at| terms.get(at)).copied().unwrap_or_default();
    let named = letters(term).count() as i64;
    if named > rank || named < rank && !term.contains(DOTS) {
        let message =
            format!("operand {at} has {rank} dimensions, `{}` of the equation has {named}", term.trim());
        return Err(Error::shape(message).with_help("`...` stands for any number of dimensions"));
    }
    let (before, after) = term.split_once(DOTS).unwrap_or((term, ""));
    Ok(letters(before).chain(named - rank..0).chain(letters(after)).collect())
}

/// The places of the first two dimensions with the same label, if there are any.
///
/// # Errors
/// If their sizes differ.
pub fn repeated(labels: &[i64], sizes: &[i64]) -> Result<Dims> {
    let Some((one, other)) = first_pair(labels) else { return Ok(Dims::new()) };
    if sizes.get(one) != sizes.get(other) {
        let message = format!(
            "dimensions {one} and {other}, both `{}` of the equation, differ in size",
            name(labels[one])
        );
        return Err(Error::shape(message).with_help("a diagonal needs dimensions of one size"));
    }
    Ok(Dims::from_slice(&[one as i64, other as i64]))
}

fn first_pair(labels: &[i64]) -> Option<(usize, usize)> {
    (0..labels.len())
        .find_map(|other| Some((labels[..other].iter().position(|label| *label == labels[other])?, other)))
}

/// The labels after the diagonal of the first two dimensions with the same label: that one is last.
///
/// # Errors
/// None.
pub fn without_repeated(labels: &[i64]) -> Result<Dims> {
    let Some((one, other)) = first_pair(labels) else { return Ok(Dims::from_slice(labels)) };
    let rest = labels.iter().enumerate().filter(|(place, _)| *place != one && *place != other);
    Ok(rest.map(|(_, label)| *label).chain([labels[one]]).collect())
}

/// The labels after all diagonals.
///
/// # Errors
/// None.
pub fn distinct(labels: &[i64]) -> Result<Dims> {
    let mut labels = Dims::from_slice(labels);
    while first_pair(&labels).is_some() {
        labels = without_repeated(&labels)?;
    }
    Ok(labels)
}

/// Those of the given labels that the result or an operand from a number on has.
///
/// # Errors
/// If the equation is malformed.
pub fn needed(equation: &str, at: i64, labels: &[i64]) -> Result<Dims> {
    let equation = Equation::parse(equation)?;
    let output = equation.output(labels)?;
    let later = equation.inputs.get(usize::try_from(at).unwrap_or_default()..).unwrap_or_default();
    let is_later = |label: i64| {
        later
            .iter()
            .any(|term| if label < 0 { term.contains(DOTS) } else { letters(term).any(|one| one == label) })
    };
    let mut needed = Dims::new();
    for &label in labels {
        if !needed.contains(&label) && (output.contains(&label) || is_later(label)) {
            needed.push(label);
        }
    }
    Ok(needed)
}

/// The places of dimensions whose labels are not among the kept ones.
///
/// # Errors
/// None.
pub fn other_places(labels: &[i64], kept: &[i64]) -> Result<Dims> {
    Ok((0..labels.len()).filter(|&place| !kept.contains(&labels[place])).map(|place| place as i64).collect())
}

/// The labels among the kept ones.
///
/// # Errors
/// None.
pub fn among(labels: &[i64], kept: &[i64]) -> Result<Dims> {
    Ok(labels.iter().copied().filter(|label| kept.contains(label)).collect())
}

/// The order of dimensions with the given labels in the result.
///
/// # Errors
/// If the equation's result is malformed.
pub fn result_order(equation: &str, labels: &[i64]) -> Result<Dims> {
    places(&Equation::parse(equation)?.output(labels)?, labels)
}

fn places(wanted: &[i64], labels: &[i64]) -> Result<Dims> {
    let place = |wanted: &i64| labels.iter().position(|label| label == wanted);
    wanted
        .iter()
        .map(|label| place(label).map(|place| place as i64))
        .collect::<Option<Dims>>()
        .ok_or_else(|| Error::value("a label of the equation is in no operand"))
}

/// How the labels of two operands take part in a product of matrices.
struct Roles {
    /// In both, and in the product.
    batch: Dims,
    /// In the left alone.
    rows: Dims,
    /// In both, summed.
    summed: Dims,
    /// In the right alone.
    columns: Dims,
}

impl Roles {
    fn of(left: &[i64], right: &[i64], kept: &[i64]) -> Roles {
        let of = |from: &[i64], wanted: &dyn Fn(i64) -> bool| {
            from.iter().copied().filter(|&label| wanted(label)).collect()
        };
        Roles {
            batch: of(left, &|label| right.contains(&label) && kept.contains(&label)),
            rows: of(left, &|label| !right.contains(&label)),
            summed: of(left, &|label| right.contains(&label) && !kept.contains(&label)),
            columns: of(right, &|label| !left.contains(&label)),
        }
    }

    fn left(&self) -> Dims {
        [&self.batch[..], &self.rows, &self.summed].concat().into()
    }

    fn right(&self) -> Dims {
        [&self.batch[..], &self.summed, &self.columns].concat().into()
    }
}

/// The order of the left operand's dimensions in a product of matrices: batch, rows, sum.
///
/// # Errors
/// None.
pub fn left_order(left: &[i64], right: &[i64], kept: &[i64]) -> Result<Dims> {
    places(&Roles::of(left, right, kept).left(), left)
}

/// The order of the right operand's dimensions in a product of matrices: batch, sum, columns.
///
/// # Errors
/// None.
pub fn right_order(left: &[i64], right: &[i64], kept: &[i64]) -> Result<Dims> {
    places(&Roles::of(left, right, kept).right(), right)
}

/// The labels of a product of matrices: batch, rows, columns.
///
/// # Errors
/// None.
pub fn product_labels(left: &[i64], right: &[i64], kept: &[i64]) -> Result<Dims> {
    let roles = Roles::of(left, right, kept);
    Ok([&roles.batch[..], &roles.rows, &roles.columns].concat().into())
}

/// The numbers of labels in a product of matrices: of the batch, rows, sum, columns.
///
/// # Errors
/// None.
pub fn counts(left: &[i64], right: &[i64], kept: &[i64]) -> Result<Dims> {
    let roles = Roles::of(left, right, kept);
    let parts = [&roles.batch, &roles.rows, &roles.summed, &roles.columns];
    Ok(parts.iter().map(|part| part.len() as i64).collect())
}

/// The sizes of an operand's ordered dimensions, those that both have broadcast.
///
/// # Errors
/// If two dimensions of one label have other sizes, none of them 1.
pub fn broadcast_sizes(
    order: &[i64],
    own: &[i64],
    own_sizes: &[i64],
    other: &[i64],
    other_sizes: &[i64],
) -> Result<Dims> {
    let size = |place: &i64| {
        let (label, size) = (own[*place as usize], own_sizes[*place as usize]);
        let there = other.iter().position(|one| *one == label).map(|place| other_sizes[place]);
        match there {
            Some(there) if there != size && size == 1 => Ok(there),
            Some(there) if there != size && there != 1 => Err(Error::shape(format!(
                "dimensions `{}` of the equation have {size} and {there} elements",
                name(label)
            ))),
            _ => Ok(size),
        }
    };
    order.iter().map(size).collect()
}

/// The shape of a batch of matrices made of the sizes of [`broadcast_sizes`], of an operand whose first dimensions are the
/// given numbers of batches and of rows.
///
/// # Errors
/// If a size overflows.
pub fn matrix(sizes: &[i64], batch: i64, rows: i64) -> Result<Dims> {
    let (batch, rows) = (batch as usize, rows as usize);
    let parts = [&sizes[..batch], &sizes[batch..batch + rows], &sizes[batch + rows..]];
    let product = |part: &[i64]| part.iter().try_fold(1i64, |product, size| product.checked_mul(*size));
    let sizes = parts.iter().map(|part| product(part)).collect::<Option<Dims>>();
    sizes.ok_or_else(|| Error::shape("a product of sizes overflows"))
}

/// The sizes of a product: those of the left operand's batch and rows, and those of the right one's columns.
///
/// # Errors
/// None.
pub fn product_sizes(left: &[i64], rows: i64, right: &[i64], columns: i64) -> Result<Dims> {
    let (left, right) = (&left[..rows as usize], &right[right.len() - columns as usize..]);
    Ok([left, right].concat().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const I: i64 = b'i' as i64;
    const J: i64 = b'j' as i64;
    const K: i64 = b'k' as i64;

    #[test]
    fn terms_are_labels() {
        assert_eq!(labels("ij, j...k -> i...k", 2, 1, 4).unwrap()[..], [J, -2, -1, K]);
        assert_eq!(labels("ij,jk", 2, 0, 2).unwrap()[..], [I, J]);
        assert!(labels("ij,jk", 2, 0, 3).is_err());
        assert!(labels("ij,jk", 3, 0, 2).is_err());
        assert!(labels("i.j", 1, 0, 2).is_err());
        assert!(labels("i......", 1, 0, 2).is_err());
    }

    #[test]
    fn diagonals_leave_each_label_once() {
        assert_eq!(repeated(&[I, J, I], &[2, 3, 2]).unwrap()[..], [0, 2]);
        assert!(repeated(&[I, J, I], &[2, 3, 4]).is_err());
        assert_eq!(distinct(&[I, J, I, J]).unwrap()[..], [I, J]);
        assert_eq!(distinct(&[I, I, I]).unwrap()[..], [I]);
    }

    #[test]
    fn results_without_an_arrow_are_in_order_of_the_alphabet() {
        assert_eq!(result_order("...ki,kj", &[J, -1, I]).unwrap()[..], [1, 2, 0]);
        assert!(result_order("ij->ii", &[I, J]).is_err());
        assert!(result_order("ij->k", &[I, J]).is_err());
    }

    #[test]
    fn operands_are_matrices_of_batch_rows_and_sum() {
        let (left, right, kept) = ([I, K, J], [J, K], [I, K]);
        assert_eq!(left_order(&left, &right, &kept).unwrap()[..], [1, 0, 2]);
        assert_eq!(right_order(&left, &right, &kept).unwrap()[..], [1, 0]);
        assert_eq!(product_labels(&left, &right, &kept).unwrap()[..], [K, I]);
        assert_eq!(broadcast_sizes(&[1, 0, 2], &left, &[2, 3, 1], &right, &[5, 3]).unwrap()[..], [3, 2, 5]);
        assert!(broadcast_sizes(&[1, 0, 2], &left, &[2, 3, 4], &right, &[5, 3]).is_err());
    }
}
