//! One operator over several sizes: the program that times it, and the curves of its times in several builds or on several
//! devices.
//!
//! In: an operator, sizes, attributes; then the lines that the program printed. Out: a Rust program; a table and a picture.

use std::fmt::Write as _;

use serde::Deserialize;

use crate::axis::{Axis, grid};
use crate::error::ProfileError;
use crate::export::escaped;
use crate::table::{Table, time};

/// The calls to compare.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The operator's full name.
    pub operator: String,
    /// The crate whose operator it is, as Rust names it.
    pub library: String,
    /// For each call the sizes of its tensors, in the order of the signature.
    pub shapes: Vec<Vec<Vec<i64>>>,
    /// The tensors' dtype, by its Rust name: `F32`.
    pub dtype: String,
    /// Other arguments by name, each as an expression of the type `Value`.
    pub attributes: Vec<(String, String)>,
    /// Devices, each as an expression: `Device::CPU`.
    pub devices: Vec<String>,
}

/// The times of one call.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Timing {
    /// Position of the call among those compared.
    pub call: usize,
    /// The device.
    pub device: String,
    /// Number of elements of all its tensors.
    pub elements: u64,
    /// Median time in nanoseconds.
    pub median_ns: u64,
    /// Number of calls.
    pub calls: u64,
}

/// The times of one build on one device.
#[derive(Clone, Debug)]
pub struct Curve {
    /// Name of the build, the device, or both.
    pub name: String,
    /// Times of the calls that ran.
    pub timings: Vec<Timing>,
}

impl Comparison {
    /// A Rust program that prints a line of JSON for each call and device: an example of a crate that depends on the library.
    pub fn program(&self) -> String {
        let list = |items: Vec<String>| format!("[{}]", items.join(", "));
        let shape = |sizes: &Vec<i64>| format!("&{sizes:?}");
        let call = |shapes: &Vec<Vec<i64>>| format!("&{}", list(shapes.iter().map(shape).collect()));
        let calls = (0..self.shapes.len()).map(|number| {
            format!("        // {}\n        {},\n", self.call_text(number), call(&self.shapes[number]))
        });
        let attribute = |(name, value): &(String, String)| format!("({name:?}, {value})");
        let mut text = String::from(
            "//! Times one operator over several sizes; `opsmith profile compare` wrote it and removes it.\n\n",
        );
        text += HEAD;
        if self.library != "opsmith" {
            let _ = writeln!(text, "use {} as _;", self.library);
        }
        let _ = write!(
            text,
            "\npub fn main() -> Result<()> {{\n    let calls: &[&[&[i64]]] = &[\n{}    ];\n    let named: &[(&str, Value)] = &{};\n    \
             for device in {} {{\n        for (number, shapes) in calls.iter().enumerate() {{\n            \
             let operands = shapes\n                .iter()\n                .map(|sizes| operand(sizes, DType::{}, device))\n                \
             .collect::<Result<Vec<Value>>>()?;\n            \
             time(number, device, shapes, || {}::call({:?}, &operands, named))?;\n        }}\n    }}\n    Ok(())\n}}\n{TAIL}",
            calls.collect::<String>(),
            list(self.attributes.iter().map(attribute).collect()),
            list(self.devices.clone()),
            self.dtype,
            self.library,
            self.operator,
        );
        text
    }

    /// The sizes of a call as text: `64x64,64x64`.
    pub fn call_text(&self, call: usize) -> String {
        let sizes = |sizes: &Vec<i64>| sizes.iter().map(i64::to_string).collect::<Vec<_>>().join("x");
        self.shapes
            .get(call)
            .map(|shapes| shapes.iter().map(sizes).collect::<Vec<_>>().join(","))
            .unwrap_or_default()
    }

    /// A row for each call: the median time of each curve, and its ratio to the first.
    pub fn table(&self, curves: &[Curve]) -> String {
        let mut head = vec!["Shapes".to_owned()];
        for (number, curve) in curves.iter().enumerate() {
            head.push(curve.name.clone());
            if number > 0 {
                head.push("ratio".to_owned());
            }
        }
        let mut table = Table::new(head, 1);
        for call in 0..self.shapes.len() {
            let of =
                |curve: &Curve| curve.timings.iter().find(|timing| timing.call == call).map(|t| t.median_ns);
            let first = curves.first().and_then(of);
            let mut cells = vec![self.call_text(call)];
            for (number, curve) in curves.iter().enumerate() {
                let own = of(curve);
                cells.push(own.map(time).unwrap_or_default());
                if number > 0 {
                    let ratio = own.zip(first).map(|(own, first)| own as f64 / first.max(1) as f64);
                    cells.push(ratio.map(|ratio| format!("{ratio:.2}")).unwrap_or_default());
                }
            }
            table.row(cells);
        }
        table.text()
    }

    /// The curves as a picture (SVG): time over elements, both logarithmic.
    pub fn picture(&self, curves: &[Curve]) -> String {
        const COLOURS: [&str; 6] = ["#4c78d0", "#d0713c", "#3c9a5f", "#a355b5", "#b59a2c", "#5f6b7a"];
        let all = || curves.iter().flat_map(|curve| &curve.timings);
        let x = Axis::of(all().map(|timing| timing.elements as f64), 70.0, 780.0);
        let y = Axis::of(all().map(|timing| timing.median_ns as f64), 400.0, 40.0);
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 800 450\" font-family=\"system-ui, sans-serif\" font-size=\"12\">\n\
             <rect width=\"800\" height=\"450\" fill=\"#fff\"/>\n<text x=\"70\" y=\"22\" font-size=\"14\">{}</text>\n",
            escaped(&self.operator)
        );
        text += &grid(&x, &y, "stroke=\"#ddd\"", |power| format!("{power:e}"), |power| time(power as u64));
        for (number, curve) in curves.iter().enumerate() {
            let colour = COLOURS[number % COLOURS.len()];
            let mut timings = curve.timings.clone();
            timings.sort_by_key(|timing| timing.elements);
            let point = |timing: &Timing| (x.place(timing.elements as f64), y.place(timing.median_ns as f64));
            let line: Vec<String> = timings
                .iter()
                .map(|timing| format!("{:.1},{:.1}", point(timing).0, point(timing).1))
                .collect();
            let _ = writeln!(
                text,
                "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" points=\"{}\"/>",
                line.join(" ")
            );
            for timing in &timings {
                let (x, y) = point(timing);
                let title =
                    format!("{}, {}: {}", curve.name, self.call_text(timing.call), time(timing.median_ns));
                let _ = writeln!(
                    text,
                    "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{colour}\"><title>{}</title></circle>",
                    escaped(&title)
                );
            }
            let top = 58.0 + 18.0 * number as f64;
            let _ = writeln!(
                text,
                "<rect x=\"84\" y=\"{:.1}\" width=\"14\" height=\"4\" fill=\"{colour}\"/><text x=\"104\" y=\"{top:.1}\">{}</text>",
                top - 6.0,
                escaped(&curve.name)
            );
        }
        text + "<text x=\"425\" y=\"440\" text-anchor=\"middle\">elements of all operands</text>\n</svg>\n"
    }
}

/// Reads the lines that the program printed.
///
/// # Errors
/// If a line is none of its.
pub fn timings(lines: &str) -> Result<Vec<Timing>, ProfileError> {
    let line = |line: &str| {
        serde_json::from_str(line).map_err(|error| {
            ProfileError::new(
                format!("`{line}` is no line of times: {error}"),
                "the program should print nothing else to its standard output",
            )
        })
    };
    lines.lines().filter(|line| !line.trim().is_empty()).map(line).collect()
}

const HEAD: &str = "#![allow(unused_imports, reason = \"which of them a call needs depends on its arguments\")]\n\n\
use std::time::Instant;\n\n\
use opsmith::{Complex64, DType, Device, Result, Scalar, Tensor, TensorOps, Value};\n";

const TAIL: &str = r#"
/// A tensor of these sizes: random numbers between 0.1 and 1, or small integers.
fn operand(sizes: &[i64], dtype: DType, device: Device) -> Result<Value> {
    let mut state = 1u32;
    let mut random = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        0.1 + 0.9 * f64::from(state) / f64::from(u32::MAX)
    };
    let whole = !dtype.is_float() && !dtype.is_complex();
    let count = sizes.iter().product::<i64>();
    let elements: Vec<f64> =
        (0..count).map(|_| if whole { (random() * 4.0).floor() } else { random() }).collect();
    Ok(Value::Tensor(Tensor::from_slice(&elements, sizes)?.to_dtype(dtype)?.to_device(device)?))
}

/// Calls it for about a third of a second, and prints the median of the calls' times. A device is waited for: a time is then that
/// of twenty calls, divided by twenty.
fn time(
    number: usize,
    device: Device,
    shapes: &[&[i64]],
    call: impl Fn() -> Result<Vec<Value>>,
) -> Result<()> {
    let together = if device == Device::CPU { 1 } else { 20 };
    call()?;
    device.synchronize()?;
    let (start, mut times) = (Instant::now(), Vec::new());
    while times.len() < 5 || start.elapsed().as_millis() < 300 && times.len() < 100_000 {
        let start = Instant::now();
        for _ in 0..together {
            call()?;
        }
        device.synchronize()?;
        times.push(start.elapsed().as_nanos() / together);
    }
    times.sort_unstable();
    let elements: i64 = shapes.iter().map(|sizes| sizes.iter().product::<i64>()).sum();
    let (median, calls) = (times[times.len() / 2], times.len() * together as usize);
    println!(
        "{{\"call\": {number}, \"device\": \"{device}\", \"elements\": {elements}, \"median_ns\": {median}, \"calls\": {calls}}}"
    );
    Ok(())
}
"#;

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison() -> Comparison {
        Comparison {
            operator: "mm".to_owned(),
            library: "opsmith".to_owned(),
            shapes: vec![vec![vec![2, 3], vec![3, 4]], vec![vec![20, 30], vec![30, 40]]],
            dtype: "F32".to_owned(),
            attributes: vec![],
            devices: vec!["Device::CPU".to_owned()],
        }
    }

    #[test]
    fn tables_have_ratios_and_pictures_a_line_for_each_curve() {
        let lines = |first, second| {
            format!(
                "{{\"call\": 0, \"device\": \"cpu\", \"elements\": 18, \"median_ns\": {first}, \"calls\": 9}}\n\
                 {{\"call\": 1, \"device\": \"cpu\", \"elements\": 1800, \"median_ns\": {second}, \"calls\": 9}}\n"
            )
        };
        let curve = |name: &str, first, second| Curve {
            name: name.to_owned(),
            timings: timings(&lines(first, second)).unwrap(),
        };
        let curves = [curve("before", 100, 4000), curve("after", 150, 1000)];
        let table = comparison().table(&curves);
        let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[0], ["Shapes", "before", "after", "ratio"]);
        assert_eq!(rows[2], ["2x3,3x4", "100", "ns", "150", "ns", "1.50"]);
        assert_eq!(rows[3][0], "20x30,30x40");
        assert_eq!(rows[3].last(), Some(&"0.25"));
        let picture = comparison().picture(&curves);
        assert_eq!(picture.matches("<polyline").count(), 2);
        assert_eq!(picture.matches("<circle").count(), 4);
        let refused = timings("hello").unwrap_err().to_string();
        assert!(refused.contains("`hello` is no line of times"), "{refused}");
    }
}
