//! Points of a function: the interval worth showing, the interval of its values, and lines that do not join poles.
//!
//! In: a function of one number. Out: intervals, and polylines in its coordinates.

/// The number of points of a curve.
const POINTS: usize = 240;

/// An interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Range {
    pub low: f64,
    pub high: f64,
}

impl Range {
    pub fn length(self) -> f64 {
        self.high - self.low
    }

    pub fn at(self, part: f64) -> f64 {
        self.low + self.length() * part
    }

    pub fn contains(self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    fn widened(self, part: f64) -> Range {
        let more = self.length() * part;
        Range { low: self.low - more, high: self.high + more }
    }
}

/// The arguments of a curve.
pub(super) fn grid(range: Range) -> impl Iterator<Item = f64> {
    (0..=POINTS).map(move |index| range.at(index as f64 / POINTS as f64))
}

/// The interval of arguments: around zero, as far as values stay comparable, and where there are values. `None` if there
/// are none anywhere near.
pub(super) fn domain(f: &mut dyn FnMut(f64) -> f64) -> Option<Range> {
    let around = |size: f64| Range { low: -size, high: size };
    let mut chosen = None;
    for size in [5.0, 3.0, 1.0, 100.0, 1e4] {
        if size > 5.0 && chosen.is_some() {
            break;
        }
        let range = around(size);
        let values: Vec<(f64, f64)> = grid(range).map(|x| (x, f(x))).filter(|(_, y)| y.is_finite()).collect();
        if values.len() < POINTS / 20 {
            continue;
        }
        let range = Range { low: values.first()?.0, high: values.last()?.0 };
        let mut sizes: Vec<f64> = values.iter().map(|(_, y)| y.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        let large = sizes[sizes.len() * 9 / 10];
        chosen.get_or_insert(range);
        if large <= 40.0 {
            chosen = Some(range);
            break;
        }
    }
    let range = chosen?;
    let step = range.length().max(1e-3) / POINTS as f64;
    let edge = |x: f64, towards: f64, f: &mut dyn FnMut(f64) -> f64| {
        // The last argument with a value, between two points of the grid.
        let (mut inside, mut outside) = (x, x + towards);
        if f(outside).is_finite() {
            return x;
        }
        for _ in 0..40 {
            let middle = (inside + outside) / 2.0;
            if f(middle).is_finite() { inside = middle } else { outside = middle }
        }
        inside
    };
    let exact = Range { low: edge(range.low, -4.0 * step, f), high: edge(range.high, 4.0 * step, f) };
    let margin = if exact == range { 0.0 } else { 0.04 };
    Some(exact.widened(margin)).filter(|range| range.length() > 0.0 && range.length().is_finite())
}

/// The interval of values: all of them, unless a few are far away from the others.
fn window(values: &[f64]) -> Range {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let (Some(&least), Some(&most)) = (sorted.first(), sorted.last()) else {
        return Range { low: -1.0, high: 1.0 };
    };
    let at = |part: f64| sorted[((sorted.len() - 1) as f64 * part) as usize];
    let (most_of_them, all) = (Range { low: at(0.06), high: at(0.94) }, Range { low: least, high: most });
    let range = match all.length() > 3.0 * most_of_them.length() && most_of_them.length() > 0.0 {
        true => most_of_them.widened(0.4),
        false => all,
    };
    match range.length() < 1e-9 * (1.0 + range.low.abs()) {
        true => Range { low: range.low - 1.0, high: range.high + 1.0 },
        false => range.widened(0.06),
    }
}

/// The interval of values, with as much of that of the slopes as leaves the values legible.
pub(super) fn window_with_slopes(values: &[f64], slopes: &[f64]) -> Range {
    let own = window(values);
    if slopes.iter().all(|slope| !slope.is_finite()) {
        return own;
    }
    let (theirs, more) = (window(slopes), 0.6 * own.length());
    Range {
        low: own.low.min(theirs.low.max(own.low - more)),
        high: own.high.max(theirs.high.min(own.high + more)),
    }
}

/// Values on a grid, for [`window_with_slopes`].
pub(super) fn values(f: &mut dyn FnMut(f64) -> f64, range: Range) -> Vec<f64> {
    grid(range).map(f).collect()
}

/// The curve in pieces, each without jumps, with few points where it is straight.
pub(super) fn pieces(f: &mut dyn FnMut(f64) -> f64, range: Range, window: Range) -> Vec<Vec<(f64, f64)>> {
    let mut pieces: Vec<Vec<(f64, f64)>> = Vec::new();
    let mut current: Vec<(f64, f64)> = Vec::new();
    for x in grid(range) {
        let y = f(x);
        let previous = current.last().copied();
        if let Some((from, to)) =
            previous.filter(|_| y.is_finite()).and_then(|last| jump(f, last, (x, y), window))
        {
            current.push(from);
            pieces.push(std::mem::replace(&mut current, vec![to]));
        }
        match y.is_finite() {
            true => current.push((x, y)),
            false => pieces.push(std::mem::take(&mut current)),
        }
    }
    pieces.push(current);
    pieces.retain(|piece| piece.len() > 1);
    pieces
}

/// The points on both sides of a jump between two points, if there is one.
#[allow(clippy::type_complexity, reason = "a pair of points")]
fn jump(
    f: &mut dyn FnMut(f64) -> f64,
    mut from: (f64, f64),
    mut to: (f64, f64),
    window: Range,
) -> Option<((f64, f64), (f64, f64))> {
    let first = (to.1 - from.1).abs();
    if first < 0.02 * window.length() {
        return None;
    }
    for _ in 0..36 {
        let x = (from.0 + to.0) / 2.0;
        let y = f(x);
        if !y.is_finite() {
            return Some((from, to));
        }
        if (y - from.1).abs() > (to.1 - y).abs() { to = (x, y) } else { from = (x, y) }
    }
    ((to.1 - from.1).abs() > 0.5 * first).then_some((from, to))
}
