//! Colours of printed text.

use anstyle::{AnsiColor, Style};

/// Colours text if enabled.
#[derive(Clone, Copy)]
pub struct Styled(pub bool);

impl Styled {
    /// The name of the subject.
    pub fn title(self, text: &str) -> String {
        self.paint(Style::new().bold().fg_color(Some(AnsiColor::Cyan.into())), text)
    }

    /// The head of a part.
    pub fn heading(self, text: &str) -> String {
        self.paint(Style::new().bold(), text)
    }

    fn paint(self, style: Style, text: &str) -> String {
        if self.0 { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }
}
