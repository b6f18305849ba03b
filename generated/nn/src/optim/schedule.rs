//! Schedules: learning rates as functions of the step.
//!
//! In: the initial learning rate and a step. Out: the learning rate there. Schedules have no state:
//! [`Scheduler`](crate::optim::Scheduler) counts steps.

use std::f64::consts::PI;

/// The learning rate at each step, from an initial one. Step 0 is that of the first update.
pub trait Schedule {
    /// The learning rate.
    fn at(&self, initial: f64, step: u64) -> f64;
}

impl<S: Schedule + ?Sized> Schedule for Box<S> {
    fn at(&self, initial: f64, step: u64) -> f64 {
        (**self).at(initial, step)
    }
}

/// `initial * factor ^ (step / every)`, with a division of integers.
///
/// ```
/// use opsmith_nn::optim::{Schedule, StepLr};
///
/// let schedule = StepLr { every: 2, factor: 0.5 };
/// assert_eq!([0, 1, 2, 4].map(|step| schedule.at(1.0, step)), [1.0, 1.0, 0.5, 0.25]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepLr {
    /// Number of steps with one learning rate; 0 counts as 1.
    pub every: u64,
    /// Ratio of one to the next.
    pub factor: f64,
}

impl Schedule for StepLr {
    fn at(&self, initial: f64, step: u64) -> f64 {
        initial * self.factor.powf((step / self.every.max(1)) as f64)
    }
}

/// `initial * factor ^ step`.
///
/// ```
/// use opsmith_nn::optim::{ExponentialLr, Schedule};
///
/// assert_eq!(ExponentialLr { factor: 0.5 }.at(1.0, 3), 0.125);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExponentialLr {
    /// Ratio of each learning rate to the next.
    pub factor: f64,
}

impl Schedule for ExponentialLr {
    fn at(&self, initial: f64, step: u64) -> f64 {
        initial * self.factor.powf(step as f64)
    }
}

/// Half a wave of the cosine from the initial learning rate to the least, and back if there are more steps (Loshchilov
/// and Hutter, *SGDR*, 2017, without restarts).
///
/// ```
/// use opsmith_nn::optim::{CosineAnnealing, Schedule};
///
/// let schedule = CosineAnnealing { steps: 10, least: 0.0 };
/// assert_eq!(schedule.at(1.0, 0), 1.0);
/// assert!((schedule.at(1.0, 5) - 0.5).abs() < 1e-12);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CosineAnnealing {
    /// Number of steps to the least learning rate; 0 counts as 1.
    pub steps: u64,
    /// The least learning rate.
    pub least: f64,
}

impl Schedule for CosineAnnealing {
    fn at(&self, initial: f64, step: u64) -> f64 {
        let part = step as f64 / self.steps.max(1) as f64;
        self.least + (initial - self.least) * (1.0 + (PI * part).cos()) / 2.0
    }
}

/// A line from a part of the initial learning rate to all of it.
///
/// ```
/// use opsmith_nn::optim::{LinearWarmup, Schedule};
///
/// let schedule = LinearWarmup { steps: 4, start: 0.5 };
/// assert_eq!([0, 2, 4, 9].map(|step| schedule.at(1.0, step)), [0.5, 0.75, 1.0, 1.0]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinearWarmup {
    /// Number of steps to the initial learning rate.
    pub steps: u64,
    /// The part of it at the first step.
    pub start: f64,
}

impl Schedule for LinearWarmup {
    fn at(&self, initial: f64, step: u64) -> f64 {
        if step >= self.steps {
            return initial;
        }
        initial * (self.start + (1.0 - self.start) * step as f64 / self.steps as f64)
    }
}

/// The curve between two learning rates of [`OneCycle`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Annealing {
    /// Half a wave of the cosine.
    Cosine,
    /// A line.
    Linear,
}

/// Up from a small learning rate to the largest, and down to a very small one (Smith and Topin, *Super-convergence*,
/// 2018). Of the optimizer's learning rate nothing is used, and its momentum stays.
///
/// ```
/// use opsmith_nn::optim::{OneCycle, Schedule};
///
/// let schedule = OneCycle::new(0.1, 100);
/// assert!((schedule.at(1.0, 0) - 0.004).abs() < 1e-12);
/// assert!((schedule.at(1.0, 29) - 0.1).abs() < 1e-12);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OneCycle {
    /// The largest learning rate.
    pub largest: f64,
    /// Number of steps of the cycle. The last learning rate stays after them.
    pub steps: u64,
    /// The part of the steps in which the learning rate grows.
    pub warmup: f64,
    /// Ratio of the largest learning rate to the first.
    pub first_divisor: f64,
    /// Ratio of the first learning rate to the last.
    pub last_divisor: f64,
    /// The curve.
    pub annealing: Annealing,
}

impl OneCycle {
    /// A cycle with PyTorch's defaults: growth in 30 % of the steps from 1/25, then a fall to 1/250000 of the largest.
    pub fn new(largest: f64, steps: u64) -> OneCycle {
        OneCycle {
            largest,
            steps,
            warmup: 0.3,
            first_divisor: 25.0,
            last_divisor: 1e4,
            annealing: Annealing::Cosine,
        }
    }
}

impl Schedule for OneCycle {
    fn at(&self, _initial: f64, step: u64) -> f64 {
        let first = self.largest / self.first_divisor;
        let last = first / self.last_divisor;
        let end = self.steps.saturating_sub(1) as f64;
        let peak = self.warmup * self.steps as f64 - 1.0;
        let step = (step as f64).min(end);
        let between = |from: f64, to: f64, part: f64| match self.annealing {
            Annealing::Cosine => to + (from - to) / 2.0 * (1.0 + (PI * part).cos()),
            Annealing::Linear => from + (to - from) * part,
        };
        if step <= peak && peak > 0.0 {
            between(first, self.largest, step / peak)
        } else if end > peak {
            between(self.largest, last, (step - peak) / (end - peak))
        } else {
            last
        }
    }
}

/// Schedules that all apply: each takes the learning rate of the one before for the initial one.
///
/// ```
/// use opsmith_nn::optim::{Chained, ExponentialLr, LinearWarmup, Schedule};
///
/// let schedule = Chained::new()
///     .with(LinearWarmup { steps: 2, start: 0.5 })
///     .with(ExponentialLr { factor: 0.5 });
/// assert_eq!(schedule.at(1.0, 0), 0.5);
/// assert_eq!(schedule.at(1.0, 2), 0.25);
/// ```
#[derive(Default)]
pub struct Chained(Vec<Box<dyn Schedule + Send + Sync>>);

impl Chained {
    /// No schedules: the initial learning rate.
    pub fn new() -> Chained {
        Chained::default()
    }

    /// Adds a schedule.
    #[must_use]
    pub fn with(mut self, schedule: impl Schedule + Send + Sync + 'static) -> Chained {
        self.0.push(Box::new(schedule));
        self
    }
}

impl Schedule for Chained {
    fn at(&self, initial: f64, step: u64) -> f64 {
        self.0.iter().fold(initial, |rate, schedule| schedule.at(rate, step))
    }
}

/// Schedules one after the other, each from its own step 0.
///
/// ```
/// use opsmith_nn::optim::{CosineAnnealing, LearningRateSequence, LinearWarmup, Schedule};
///
/// let schedule = LearningRateSequence::new(LinearWarmup { steps: 10, start: 0.1 })
///     .then(10, CosineAnnealing { steps: 90, least: 0.0 });
/// assert_eq!(schedule.at(1.0, 10), 1.0);
/// assert!(schedule.at(1.0, 100) < 1e-12);
/// ```
pub struct LearningRateSequence {
    first: Box<dyn Schedule + Send + Sync>,
    later: Vec<(u64, Box<dyn Schedule + Send + Sync>)>,
}

impl LearningRateSequence {
    /// Begins with a schedule.
    pub fn new(schedule: impl Schedule + Send + Sync + 'static) -> LearningRateSequence {
        LearningRateSequence { first: Box::new(schedule), later: Vec::new() }
    }

    /// Goes on with a schedule from a step on. Steps that are not in order are those of the latest schedule given.
    #[must_use]
    pub fn then(
        mut self,
        step: u64,
        schedule: impl Schedule + Send + Sync + 'static,
    ) -> LearningRateSequence {
        self.later.push((step, Box::new(schedule)));
        self
    }
}

impl Schedule for LearningRateSequence {
    fn at(&self, initial: f64, step: u64) -> f64 {
        match self.later.iter().rev().find(|(from, _)| *from <= step) {
            Some((from, schedule)) => schedule.at(initial, step - from),
            None => self.first.at(initial, step),
        }
    }
}
