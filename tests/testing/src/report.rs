//! Results of checks, for one operator and for a whole library.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use opsmith::Backend;
use opsmith_runtime::library::Library;
use opsmith_runtime::op::OpDef;

use crate::checks::caught;

/// The result of a check.
#[derive(Clone, Default, Debug)]
pub struct Report {
    /// The failures, a sentence each.
    pub wrong: Vec<String>,
    /// Number of compared results.
    pub compared: usize,
    /// Number of skipped comparisons that are not failures.
    pub left_out: usize,
}

impl Report {
    /// Adds another report.
    pub fn add(&mut self, other: Report) {
        self.wrong.extend(other.wrong);
        self.compared += other.compared;
        self.left_out += other.left_out;
    }

    /// Adds one comparison, with its failure if any.
    pub(crate) fn compare(&mut self, wrong: Option<String>) {
        self.compared += 1;
        self.wrong.extend(wrong);
    }

    /// Ends a test.
    ///
    /// # Panics
    /// If there are failures, with all of them.
    #[track_caller]
    pub fn assert_right(&self) {
        let Report { wrong, compared, .. } = self;
        assert!(wrong.is_empty(), "{} of {compared} comparisons:\n{}", wrong.len(), wrong.join("\n"));
    }
}

impl From<Vec<String>> for Report {
    fn from(wrong: Vec<String>) -> Report {
        Report { wrong, compared: 1, left_out: 0 }
    }
}

/// The results of a function for each item, in order, computed by as many threads as there are processors.
pub fn of_each<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let run = || {
        while let number = next.fetch_add(1, Ordering::Relaxed)
            && let Some(item) = items.get(number)
        {
            let result = work(item);
            found.lock().expect("work that panics ends all").push((number, result));
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(run))));
    let mut found = found.into_inner().expect("work that panics ends all");
    found.sort_by_key(|(number, _)| *number);
    found.into_iter().map(|(_, result)| result).collect()
}

/// Whether an operator has a host kernel. One with device kernels only is excluded from checks, whose tensors are on
/// the host.
pub fn runs_on_host(op: &OpDef) -> bool {
    let kernels = op.kernels.dtypes(Backend::Cpu).iter().next().is_some();
    kernels || op.kernels.is_none() || op.composite.is_some()
}

/// The results of a check for the operators that a library declares; a panic is a failure.
pub fn report<R: Into<Report> + Send>(
    library: &'static Library,
    check: impl Fn(&'static OpDef) -> R + Sync,
) -> Report {
    let mut all = Report::default();
    let found = of_each(library.ops, |op| {
        if !runs_on_host(op) {
            return Report { left_out: 1, ..Report::default() };
        }
        caught(|| Ok(check(op)))
            .map(Into::into)
            .unwrap_or_else(|why| Report::from(vec![format!("{} ({}): {why}", op.name, op.location)]))
    });
    found.into_iter().for_each(|found| all.add(found));
    all
}
