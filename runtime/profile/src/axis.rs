//! Logarithmic axes of pictures, and the grid of two of them.

use std::fmt::Write as _;

/// A logarithmic axis, from one power of ten to another.
pub(crate) struct Axis {
    low: f64,
    high: f64,
    /// The places of the ends in the picture.
    from: f64,
    to: f64,
}

impl Axis {
    /// The shortest axis for these values; those that have no logarithm are at its beginning.
    pub fn of(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Axis {
        let logs = values.filter(|value| value.is_finite() && *value > 0.0).map(f64::log10);
        let (low, high) =
            logs.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), log| (low.min(log), high.max(log)));
        if low > high {
            return Axis { low: -1.0, high: 1.0, from, to };
        }
        Axis { low: (low - 0.1).floor(), high: (high + 0.1).ceil(), from, to }
    }

    /// Its least value.
    pub fn least(&self) -> f64 {
        10f64.powf(self.low)
    }

    /// Where a value is in the picture.
    pub fn place(&self, value: f64) -> f64 {
        let share = (value.log10() - self.low) / (self.high - self.low);
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// The powers of ten on it.
    pub fn powers(&self) -> impl Iterator<Item = f64> {
        (self.low as i32..=self.high as i32).map(|power| 10f64.powi(power))
    }
}

/// Lines at the powers of ten of a horizontal and a vertical axis, with their texts; `line` has the attributes of the lines.
pub(crate) fn grid(
    x: &Axis,
    y: &Axis,
    line: &str,
    x_text: impl Fn(f64) -> String,
    y_text: impl Fn(f64) -> String,
) -> String {
    let mut text = String::new();
    let (left, right, bottom, top) = (x.from, x.to, y.from, y.to);
    for power in x.powers() {
        let (at, below, label) = (x.place(power), bottom + 16.0, x_text(power));
        let _ = writeln!(
            text,
            "<path {line} d=\"M{at:.1} {top:.1}V{bottom:.1}\"/><text x=\"{at:.1}\" y=\"{below:.1}\" text-anchor=\"middle\">{label}</text>"
        );
    }
    for power in y.powers() {
        let (at, beside, label) = (y.place(power), left - 6.0, y_text(power));
        let _ = writeln!(
            text,
            "<path {line} d=\"M{left:.1} {at:.1}H{right:.1}\"/><text x=\"{beside:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
            at + 4.0
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_has_whole_powers_at_its_ends() {
        let axis = Axis::of([0.2, 30.0].into_iter(), 0.0, 300.0);
        assert_eq!((axis.low, axis.high, axis.least()), (-1.0, 2.0, 0.1));
        assert_eq!([axis.place(0.1), axis.place(1.0), axis.place(100.0)], [0.0, 100.0, 300.0]);
        assert_eq!(axis.powers().collect::<Vec<_>>(), [0.1, 1.0, 10.0, 100.0]);
        assert_eq!(Axis::of(std::iter::empty(), 0.0, 1.0).powers().count(), 3);
    }
}
