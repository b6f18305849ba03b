//! Polynomials through sample points.
//!
//! In: values of symbols, and a number for each point. Out: the formula that gives exactly these numbers, if there is
//! one. Candidates are sums of products of powers with unknown coefficients, found by elimination in integers, so
//! rounding has no influence.

use crate::infer::symbolic::formula::{Powers, Term};
use crate::infer::symbolic::size::Size;
use crate::infer::symbolic::symbols::Symbol;

/// Maximal degree of products.
const MAX_DEGREE: u32 = 4;
/// Maximal number of symbols for sums with products of two.
const MAX_SQUARES: usize = 6;

pub(in crate::infer::symbolic) fn fit(points: &[(&[i64], i64)]) -> Option<Size> {
    let (first, _) = points.first()?;
    let count = first.len();
    if points.iter().any(|(values, _)| values.len() != count) {
        return None;
    }
    let powers = |degree| products(count, degree);
    let constant = || solve(points, &[Powers::new()]);
    let linear = || solve(points, &powers(1));
    let one_product = || {
        let more = (2..=MAX_DEGREE).flat_map(powers).filter(|powers| degree(powers) > 1);
        more.into_iter().find_map(|powers| multiple(points, &powers))
    };
    let quadratic = || (count <= MAX_SQUARES).then(|| solve(points, &powers(2))).flatten();
    // Few points determine a sum of several terms by chance, where one product fits them all.
    let short = |size: &Size| size.symbols().len() < 2;
    match constant().or_else(linear) {
        Some(sum) if short(&sum) => Some(sum),
        sum => one_product().or(sum).or_else(quadratic),
    }
}

/// The integer coefficient of one product, if the points determine it and at least one confirms it. There are many
/// products to try, and the first few points refute nearly all.
fn multiple(points: &[(&[i64], i64)], product: &Powers) -> Option<Size> {
    if points.len() < 2 {
        return None;
    }
    let mut coefficient = None;
    for (values, result) in points {
        let (value, result) = (value(product, values)?, i128::from(*result));
        let known = match coefficient {
            Some(known) => known,
            None if value == 0 => 0,
            None if result % value == 0 => *coefficient.insert(result / value),
            None => return None,
        };
        if value.checked_mul(known)? != result {
            return None;
        }
    }
    let term = Term { coefficient: i64::try_from(coefficient?).ok()?, powers: product.clone() };
    Some(Size::from_terms(Some([term].into_iter().collect()))).filter(|size| !size.is_unknown())
}

/// Integer coefficients of the products, if the points determine them and at least one confirms them.
fn solve(points: &[(&[i64], i64)], products: &[Powers]) -> Option<Size> {
    let without_symbols = points[0].0.is_empty();
    if points.len() < products.len() + usize::from(!without_symbols) {
        return None;
    }
    let mut rows: Vec<Vec<i128>> = Vec::with_capacity(points.len());
    for (values, result) in points {
        let mut row: Vec<i128> =
            products.iter().map(|powers| value(powers, values)).collect::<Option<_>>()?;
        row.push(i128::from(*result));
        rows.push(row);
    }
    let coefficients = eliminate(rows, products.len())?;
    let terms = products.iter().zip(coefficients).map(|(powers, coefficient)| {
        Some(Term { coefficient: i64::try_from(coefficient).ok()?, powers: powers.clone() })
    });
    Some(Size::from_terms(Some(terms.collect::<Option<_>>()?))).filter(|size| !size.is_unknown())
}

/// Solves rows of `unknowns` coefficients and a result each, in integers (Bareiss' elimination, which divides without
/// remainder). `None` without exactly one integer solution, or on overflow.
fn eliminate(mut rows: Vec<Vec<i128>>, unknowns: usize) -> Option<Vec<i128>> {
    let mut previous = 1i128;
    for column in 0..unknowns {
        let pivot = (column..rows.len()).find(|&row| rows[row][column] != 0)?;
        rows.swap(column, pivot);
        let (above, below) = rows.split_at_mut(column + 1);
        let lead = &above[column];
        for row in below {
            let factor = row[column];
            for (value, over) in row.iter_mut().zip(lead) {
                let scaled = value.checked_mul(lead[column])?.checked_sub(over.checked_mul(factor)?)?;
                *value = scaled / previous;
            }
        }
        previous = rows[column][column];
    }
    // The remaining equations must be 0 = 0: those of the confirming points.
    if rows[unknowns..].iter().any(|row| row[unknowns] != 0) {
        return None;
    }
    let mut solution = vec![0i128; unknowns];
    for row in (0..unknowns).rev() {
        let mut rest = rows[row][unknowns];
        for known in row + 1..unknowns {
            rest = rest.checked_sub(rows[row][known].checked_mul(solution[known])?)?;
        }
        if rest % rows[row][row] != 0 {
            return None;
        }
        solution[row] = rest / rows[row][row];
    }
    Some(solution)
}

/// All products of powers of `count` symbols up to a degree, 1 among them.
fn products(count: usize, degree: u32) -> Vec<Powers> {
    let mut all = vec![Powers::new()];
    let mut newest = all.clone();
    for _ in 0..degree {
        let mut next = Vec::new();
        for powers in &newest {
            // Symbols are in ascending order, so that each product is produced once.
            let from = powers.last().map_or(0, |last| last.0.0);
            for symbol in from..count as u32 {
                let mut powers = powers.clone();
                match powers.last_mut() {
                    Some(last) if last.0.0 == symbol => last.1 += 1,
                    _ => powers.push((Symbol(symbol), 1)),
                }
                next.push(powers);
            }
        }
        all.extend(next.iter().cloned());
        newest = next;
    }
    all
}

fn degree(powers: &Powers) -> u32 {
    powers.iter().map(|power| power.1).sum()
}

fn value(powers: &Powers, values: &[i64]) -> Option<i128> {
    powers.iter().try_fold(1i128, |product, &(symbol, power)| {
        product.checked_mul(i128::from(values[symbol.0 as usize]).checked_pow(power)?)
    })
}
