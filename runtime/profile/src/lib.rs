//! The profiler: which operator is slow, which code it is, how it is reproduced, and whether a change helped.
//!
//! In: spans that the runtime reports, of calls, kernels, nodes of backward and steps of graphs. Out: a [`Profile`], and from
//! it tables, a call tree, traces for Perfetto, flame graphs, reports, differences, and programs that repeat one call. Knows
//! no operator by name. While nothing is profiled, a call costs the read of a flag more.
//!
//! ```
//! use opsmith_profile::{Group, profile};
//!
//! let (result, profile) = profile(|| 6 * 7)?;
//! assert_eq!(result, 42);
//! println!("{}", profile.key_averages(Group::Operator).table());
//! profile.save(std::env::temp_dir().join("answer.profile.json"))?;
//! # Ok::<(), opsmith_profile::ProfileError>(())
//! ```

mod averages;
mod axis;
mod collect;
mod compare;
mod diff;
mod error;
mod export;
mod limits;
mod model;
mod recorder;
mod repro;
mod session;
#[cfg(feature = "tracing")]
mod spans;
mod table;
mod tree;

pub use averages::{Averages, AveragesRow, Group, SortBy};
pub use compare::{Comparison, Curve, Timing, timings};
pub use diff::{Diff, DiffRow};
pub use error::ProfileError;
pub use export::{Owner, Timeline};
pub use limits::{DeviceLimits, Limits};
pub use model::{
    Change, DeviceSpan, Event, Kind, Operands, Profile, ProfiledKernel, ProfiledOp, RecordedArg, TensorShape,
    Thread,
};
pub use session::{ProfileOptions, Profiler, Range, profile, profile_with, range};
#[cfg(feature = "tracing")]
pub use spans::report_to_tracing;
pub use tree::Tree;
