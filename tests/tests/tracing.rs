//! Calls as spans of the crate `tracing`, for a subscriber of this process.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use opsmith::{Tensor, TensorOps};
use opsmith_profile::{ProfileOptions, Profiler, report_to_tracing};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// A line for each span that begins and ends.
static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Keeps spans of one target as lines.
struct Lines {
    spans: AtomicU64,
}

/// The fields of a span as text.
#[derive(Default)]
struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0 += &format!(" {}={value:?}", field.name());
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "opsmith"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields::default();
        span.record(&mut fields);
        LINES.lock().unwrap().push(format!("{}{}", span.metadata().name(), fields.0));
        Id::from_u64(self.spans.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, _: &Id) {
        LINES.lock().unwrap().push("enter".to_owned());
    }

    fn exit(&self, _: &Id) {
        LINES.lock().unwrap().push("exit".to_owned());
    }
}

#[test]
fn calls_are_spans_of_tracing_that_nest() -> Result<(), Box<dyn std::error::Error>> {
    tracing::subscriber::set_global_default(Lines { spans: AtomicU64::new(0) })?;
    report_to_tracing()?;
    // A second time is the same.
    report_to_tracing()?;
    let x = Tensor::of(&[1.0f32, 2.0]);
    LINES.lock().unwrap().clear();
    let line = line!() + 1;
    x.log_softmax(0)?;
    let lines = std::mem::take(&mut *LINES.lock().unwrap());
    let site = format!("tests/tests/tracing.rs:{line}:");
    assert!(
        lines[0].starts_with("call op=\"log_softmax.int\" site=") && lines[0].contains(&site),
        "{lines:?}"
    );
    assert!(lines.iter().any(|line| line.starts_with("kernel op=\"_log_softmax\"")), "{lines:?}");
    let mut depth = 0;
    for line in &lines {
        depth += i32::from(line == "enter") - i32::from(line == "exit");
        assert!(depth >= 0, "{lines:?}");
    }
    assert_eq!(depth, 0, "{lines:?}");
    // The process has one listener.
    let refused = Profiler::start(ProfileOptions::new()).map(drop).unwrap_err();
    assert!(refused.to_string().contains("another listener"), "{refused}");
    Ok(())
}
