//! Flame graphs: the call tree as a picture, width for time.

use super::text::{colour, escaped};
use crate::model::{Kind, Profile};
use crate::table::{percent, time};
use crate::tree::Tree;

/// Width of the picture and height of a row, in pixels.
const WIDTH: f64 = 1200.0;
const ROW: f64 = 18.0;
/// Narrower boxes are left out.
const NARROWEST: f64 = 0.4;
/// About the width of a character.
const CHARACTER: f64 = 6.6;

impl Profile {
    /// A flame graph as SVG, the outermost calls on top. A box's title has its name, time and calls.
    pub fn flame_graph(&self) -> String {
        let tree = self.tree();
        let mut boxes = String::new();
        let mut deepest = 0;
        let mut waiting = vec![(&tree, 0.0, 0usize)];
        while let Some((node, left, level)) = waiting.pop() {
            let width = WIDTH * node.total_ns as f64 / tree.total_ns.max(1) as f64;
            if width < NARROWEST {
                continue;
            }
            deepest = deepest.max(level);
            boxes += &rectangle(node, left, width, level, tree.total_ns);
            let mut left = left;
            for inside in &node.inside {
                waiting.push((inside, left, level + 1));
                left += WIDTH * inside.total_ns as f64 / tree.total_ns.max(1) as f64;
            }
        }
        let height = (deepest + 1) as f64 * ROW;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"100%\" role=\"img\" \
             aria-label=\"Flame graph of {}\" font-family=\"ui-monospace, monospace\" font-size=\"11\">\n{boxes}</svg>\n",
            escaped(&self.name)
        )
    }
}

fn rectangle(node: &Tree, left: f64, width: f64, level: usize, whole: u64) -> String {
    let name =
        if node.kind == Some(Kind::Kernel) { format!("{} (kernel)", node.name) } else { node.name.clone() };
    let label = label(&name, width);
    let top = level as f64 * ROW;
    let calls = node.calls_text().map_or_else(String::new, |text| format!(", {text}"));
    let title = format!(
        "{name}: {}, {}, self {}{calls}",
        time(node.total_ns),
        percent(node.total_ns as f64, whole as f64),
        time(node.self_ns),
    );
    let fill = if node.kind.is_none() { "hsl(0 0% 85%)".to_owned() } else { colour(&node.name) };
    format!(
        "<g><title>{}</title><rect x=\"{left:.2}\" y=\"{top}\" width=\"{:.2}\" height=\"{}\" rx=\"2\" fill=\"{fill}\"/>\
         <text x=\"{:.2}\" y=\"{}\" fill=\"#111\">{}</text></g>\n",
        escaped(&title),
        (width - 0.5).max(0.2),
        ROW - 1.0,
        left + 3.0,
        top + 12.5,
        escaped(&label)
    )
}

/// As much of a name as a box has room for.
pub(super) fn label(name: &str, width: f64) -> String {
    let room = ((width - 6.0) / CHARACTER).max(0.0) as usize;
    match name.chars().count() {
        count if count <= room => name.to_owned(),
        _ if room >= 4 => name.chars().take(room - 1).chain(['…']).collect(),
        _ => String::new(),
    }
}
