//! The picture: axes with ticks, curves, a legend.
//!
//! In: curves in coordinates of the function. Out: an element `<svg>`. Colours are custom properties of CSS with
//! fallbacks that are legible on light and dark grounds; texts have the colour of the page's text.

use std::fmt::Write;

use super::curves::Range;

/// The place of the coordinates in the picture, and its size.
const LEFT: f64 = 46.0;
const TOP: f64 = 12.0;
const WIDTH: f64 = 340.0;
const HEIGHT: f64 = 210.0;
const TOTAL_WIDTH: f64 = 400.0;
/// The height of a row of the legend.
const ROW: f64 = 17.0;
/// The distance in the picture that a line may leave out.
const TOLERANCE: f64 = 0.12;

/// Colours of curves: the name of the property and its fallback.
const COLOURS: [(&str, &str); 3] =
    [("--plot-1", "#3b82f6"), ("--plot-2", "#e0701a"), ("--plot-3", "#0f9d78")];

/// A curve.
pub(super) struct Curve {
    /// Its points, in pieces that are not joined.
    pub pieces: Vec<Vec<(f64, f64)>>,
    /// Its text in the legend.
    pub label: String,
    /// The number of its colour.
    pub colour: usize,
    /// Whether it is dashed.
    pub is_slope: bool,
}

/// The picture of some curves; `sentence` is read aloud in place of it.
pub(super) fn picture(curves: &[Curve], axis: (&str, Range), y: Range, sentence: &str) -> String {
    let (name, x) = axis;
    let rows = curves.len().div_ceil(2);
    let height = TOP + HEIGHT + 30.0 + ROW * rows as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" role=\"img\" aria-label=\"{}\" \
         viewBox=\"0 0 {TOTAL_WIDTH} {height}\" width=\"{TOTAL_WIDTH}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"11\" fill=\"none\">",
        escape(sentence)
    );
    axes(&mut svg, x, y);
    let (right, bottom) = (LEFT + WIDTH, TOP + HEIGHT + 28.0);
    let _ = write!(
        svg,
        "<text x=\"{right}\" y=\"{bottom}\" text-anchor=\"end\" style=\"fill:var(--plot-text,currentColor)\">{}</text>",
        escape(name)
    );
    // An inner picture shows nothing outside of itself.
    let _ = write!(svg, "<svg x=\"{LEFT}\" y=\"{TOP}\" width=\"{WIDTH}\" height=\"{HEIGHT}\">");
    for curve in curves {
        let path = path(curve, x, y);
        if !path.is_empty() {
            let _ = write!(svg, "<path d=\"{path}\" {}/>", stroke(curve));
        }
    }
    svg.push_str("</svg>");
    legend(&mut svg, curves);
    svg.push_str("</svg>");
    svg
}

fn stroke(curve: &Curve) -> String {
    let (property, fallback) = COLOURS[curve.colour % COLOURS.len()];
    let dash =
        if curve.is_slope { " stroke-dasharray=\"5 4\" stroke-width=\"1.5\"" } else { " stroke-width=\"2\"" };
    format!("style=\"stroke:var({property},{fallback})\" stroke-linejoin=\"round\"{dash}")
}

/// The commands of a curve.
fn path(curve: &Curve, x: Range, y: Range) -> String {
    let mut path = String::new();
    for piece in &curve.pieces {
        // Far outside, coordinates would only be long.
        let place = |(px, py): (f64, f64)| {
            let down = (HEIGHT * (1.0 - (py - y.low) / y.length())).clamp(-9.0 * HEIGHT, 10.0 * HEIGHT);
            (WIDTH * (px - x.low) / x.length(), down)
        };
        let points: Vec<(f64, f64)> = piece.iter().map(|point| place(*point)).collect();
        let is_seen = |index: usize| {
            let near = points[index.saturating_sub(1)..(index + 2).min(points.len())].iter();
            near.clone().any(|(_, down)| (0.0..=HEIGHT).contains(down))
                || near.clone().any(|(_, down)| *down < 0.0) && near.clone().any(|(_, down)| *down > HEIGHT)
        };
        let seen: Vec<usize> = (0..points.len()).filter(|index| is_seen(*index)).collect();
        for run in seen.chunk_by(|a, b| a + 1 == *b) {
            let run: Vec<(f64, f64)> = run.iter().map(|index| points[*index]).collect();
            for (index, (across, down)) in simplified(&run).into_iter().enumerate() {
                let command = if index == 0 { 'M' } else { 'L' };
                let _ = write!(path, "{command}{} {}", short(across), short(down));
            }
        }
    }
    path
}

/// The points that a line needs to stay within the tolerance (Ramer, Douglas and Peucker).
fn simplified(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut keep = vec![false; points.len()];
    let mut open = vec![(0, points.len().saturating_sub(1))];
    while let Some((from, to)) = open.pop() {
        keep[from] = true;
        keep[to] = true;
        let (a, b) = (points[from], points[to]);
        let length = (b.0 - a.0).hypot(b.1 - a.1).max(1e-9);
        let distance = |p: (f64, f64)| ((b.0 - a.0) * (a.1 - p.1) - (a.0 - p.0) * (b.1 - a.1)).abs() / length;
        let farthest = (from + 1..to).max_by(|i, j| distance(points[*i]).total_cmp(&distance(points[*j])));
        if let Some(index) = farthest.filter(|index| distance(points[*index]) > TOLERANCE) {
            open.extend([(from, index), (index, to)]);
        }
    }
    points.iter().zip(keep).filter(|(_, keep)| *keep).map(|(point, _)| *point).collect()
}

fn axes(svg: &mut String, x: Range, y: Range) {
    let across = |value: f64| short(LEFT + WIDTH * (value - x.low) / x.length());
    let down = |value: f64| short(TOP + HEIGHT * (1.0 - (value - y.low) / y.length()));
    let (right, bottom) = (LEFT + WIDTH, TOP + HEIGHT);
    let mut grid = String::new();
    let mut texts = String::new();
    for value in ticks(x, 7.0) {
        let _ = write!(grid, "M{0} {TOP}V{bottom}", across(value));
        let _ = write!(
            texts,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            across(value),
            bottom + 14.0,
            tick(value)
        );
    }
    for value in ticks(y, 5.0) {
        let _ = write!(grid, "M{LEFT} {0}H{right}", down(value));
        let _ = write!(
            texts,
            "<text x=\"{}\" y=\"{}\" dy=\"4\" text-anchor=\"end\">{}</text>",
            LEFT - 6.0,
            down(value),
            tick(value)
        );
    }
    let _ = write!(
        svg,
        "<path d=\"{grid}\" style=\"stroke:var(--plot-grid,#8888)\" stroke-width=\"0.5\" stroke-opacity=\"0.45\"/>"
    );
    let mut zero = String::new();
    if x.contains(0.0) {
        let _ = write!(zero, "M{} {TOP}V{bottom}", across(0.0));
    }
    if y.contains(0.0) {
        let _ = write!(zero, "M{LEFT} {}H{right}", down(0.0));
    }
    if !zero.is_empty() {
        let _ =
            write!(svg, "<path d=\"{zero}\" style=\"stroke:var(--plot-axis,#888)\" stroke-width=\"1.2\"/>");
    }
    let _ = write!(svg, "<g style=\"fill:var(--plot-text,currentColor)\">{texts}</g>");
}

fn legend(svg: &mut String, curves: &[Curve]) {
    let columns = if curves.len() > 1 { 2 } else { 1 };
    for (index, curve) in curves.iter().enumerate() {
        let left = LEFT + (index % columns) as f64 * WIDTH / 2.0;
        let middle = TOP + HEIGHT + 34.0 + (index / columns) as f64 * ROW;
        let _ = write!(
            svg,
            "<path d=\"M{left} {middle}h26\" {}/><text x=\"{}\" y=\"{middle}\" dy=\"4\" \
             style=\"fill:var(--plot-text,currentColor)\">{}</text>",
            stroke(curve),
            left + 32.0,
            escape(&curve.label.replace('-', "−"))
        );
    }
}

/// Round numbers in an interval, at most so many.
fn ticks(range: Range, most: f64) -> Vec<f64> {
    let rough = range.length() / most;
    let decade = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|part| part * decade).find(|step| *step >= rough);
    let step = step.unwrap_or(10.0 * decade);
    let (first, last) = ((range.low / step).ceil(), (range.high / step).floor());
    let count = if (last - first).is_finite() { (last - first).clamp(0.0, 20.0) as usize } else { 0 };
    (0..=count).map(|index| (first + index as f64) * step).filter(|value| range.contains(*value)).collect()
}

fn tick(value: f64) -> String {
    match value.abs() {
        size if size < 1e-12 => "0".to_owned(),
        size if !(1e-3..1e5).contains(&size) => format!("{value:e}").replace('-', "−"),
        _ => format!("{}", (value * 1e6).round() / 1e6).replace('-', "−"),
    }
}

fn short(value: f64) -> String {
    let rounded = (value * 10.0).round() / 10.0;
    format!("{}", if rounded == 0.0 { 0.0 } else { rounded })
}

fn escape(text: &str) -> String {
    let plain = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    plain.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
