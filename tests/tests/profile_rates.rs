//! The profiler: arithmetic operations by the spec, shares of the machine's limits, and Perfetto's binary format.

mod profile_support;
#[path = "profile_support/trace.rs"]
mod trace;

use opsmith::{DType, Tensor, TensorOps};
use opsmith_profile::{Comparison, Event, Group, Kind, Limits, Profile, profile};
use profile_support::{alone, ones};
use trace::{fields, number, parts, slices};

type Failure = Box<dyn std::error::Error>;

/// The operations of the only kernel of some work.
fn flops_of(work: impl FnOnce() -> opsmith::Result<Tensor>) -> Result<Option<u64>, Failure> {
    let (result, profile) = profile(work)?;
    result?;
    let kernels: Vec<&Event> = profile.events.iter().filter(|event| event.kind == Kind::Kernel).collect();
    let [kernel] = kernels[..] else { return Err(format!("one kernel: {:?}", profile.events).into()) };
    Ok(profile.operands_of(kernel).ok_or("no operands")?.flops)
}

#[test]
fn operations_are_those_of_the_spec_and_of_expressions() -> Result<(), Failure> {
    let _alone = alone();
    let (a, b) = (ones(&[2, 3]), ones(&[3, 4]));
    // Two operations for each product of elements.
    assert_eq!(flops_of(|| a.mm(&b))?, Some(2 * 2 * 3 * 4));
    // A multiplication and an addition an element; one that happens once a call does not count.
    assert_eq!(flops_of(|| a.add(&a))?, Some(2 * 6));
    assert_eq!(flops_of(|| a.mul(&a))?, Some(6));
    assert_eq!(flops_of(|| a.sum())?, Some(6));
    let (image, weight) = (ones(&[1, 2, 5, 5]), ones(&[3, 2, 3, 3]));
    let convolved = opsmith::conv2d(&image, &weight)?;
    assert_eq!(convolved.shape(), [1, 3, 3, 3]);
    assert_eq!(flops_of(|| opsmith::conv2d(&image, &weight))?, Some(2 * 3 * 9 * 2 * 9));
    // Of a sort the comparisons by merging: log₂ of the size for each element, rounded up.
    assert_eq!(flops_of(|| Ok(a.sort()?.0))?, Some(6 * 2));
    // Nothing says how many elements a selection looks at.
    assert_eq!(flops_of(|| Ok(a.topk(2)?.0))?, None);
    Ok(())
}

/// Of a transform the operations by which the field measures it: 5 n log₂ n of complex numbers, half of real ones.
#[test]
fn operations_of_transforms_are_those_of_their_sizes() -> Result<(), Failure> {
    let _alone = alone();
    let signal = ones(&[3, 16]);
    let ((), profile) = profile(|| {
        let transformed = opsmith::fft_rfft(&signal).and_then(|half| opsmith::fft_irfft(&half));
        let whole =
            opsmith::fft_fft(&transformed.expect("a transform")).and_then(|all| opsmith::fft_ifft(&all));
        assert_eq!(whole.expect("a transform").shape(), [3, 16]);
    })?;
    let of = |name: &str| -> Vec<Option<u64>> {
        let own = |event: &&Event| {
            event.kind == Kind::Kernel && profile.operator_of(event).is_some_and(|op| op.name == name)
        };
        profile.events.iter().filter(own).map(|event| profile.operands_of(event)?.flops).collect()
    };
    let complex = 3 * 5 * 16 * 4;
    assert_eq!(of("_fft_r2c")[0], Some(complex / 2));
    assert_eq!(of("_fft_c2r"), [Some(complex / 2)]);
    assert!(of("_fft_c2c").contains(&Some(complex)), "{:?}", of("_fft_c2c"));
    Ok(())
}

#[test]
fn every_formula_of_the_spec_counts_something() -> Result<(), Failure> {
    let _alone = alone();
    let mut counted = 0;
    for op in opsmith::LIBRARY.ops {
        if !matches!(op.flops, opsmith_runtime::op::Flops::Call(_)) {
            continue;
        }
        counted += 1;
        // Some take complex numbers alone.
        let takes = |dtype: &DType| {
            let calls = opsmith_testing::samples::samples(op, *dtype);
            calls.iter().all(|values| opsmith_testing::calls::call(op, values).is_ok())
        };
        let dtype = [DType::F64, DType::C128].into_iter().find(takes).ok_or(op.name)?;
        for values in opsmith_testing::samples::samples(op, dtype) {
            let (result, profile) = profile(|| opsmith_testing::calls::call(op, &values))?;
            result?;
            let of_op = |event: &&Event| {
                event.kind == Kind::Kernel
                    && profile.operator_of(event).is_some_and(|own| own.name == op.name)
            };
            for kernel in profile.events.iter().filter(of_op) {
                let operands = profile.operands_of(kernel).ok_or("no operands")?;
                assert!(operands.flops.is_some(), "{}: {}", op.name, operands.text());
            }
        }
    }
    assert!(counted > 40, "{counted}");
    Ok(())
}

#[test]
fn shares_are_those_of_the_least_time() -> Result<(), Failure> {
    let _alone = alone();
    let (a, b) = (ones(&[64, 64]), ones(&[64, 64]));
    let (result, profile) = profile(|| a.mm(&b))?;
    result?;
    let profile =
        profile.with_limits(Limits { copy_gb_s: 1e6, gflop_s: 1.0, threads: 1, devices: Vec::new() });
    let averages = profile.key_averages(Group::Operator);
    let row = averages.rows.iter().find(|row| row.name == "mm").ok_or("no row")?;
    assert_eq!(row.flops, 2 * 64 * 64 * 64);
    assert_eq!(row.least_ns, row.flops as f64);
    let table = averages.table();
    assert!(table.contains("GFLOP/s") && table.contains("of limit"), "{table}");
    assert!(averages.csv().lines().next().is_some_and(|head| head.contains(",moved_bytes,flops,")));
    let report = profile.report();
    assert!(report.contains("aria-label=\"Roofline\"") && report.contains("operations a byte, "), "{report}");
    Ok(())
}

#[test]
fn perfetto_traces_have_every_event_once_in_its_time() -> Result<(), Failure> {
    let _alone = alone();
    let (result, profile) = profile(|| -> opsmith::Result<()> {
        let x = ones(&[3, 5]).requires_grad_(true)?;
        (0..50).try_for_each(|_| x.log_softmax(1)?.sum()?.backward())
    })?;
    result?;
    let mut trace = Vec::new();
    profile.write_perfetto(&mut trace)?;
    // `scripts/perfetto.sh` checks the same trace by Perfetto's schema.
    if let Some(path) = std::env::var_os("OPSMITH_TRACE") {
        std::fs::write(path, &trace)?;
    }
    let mut found = slices(&trace)?;
    let expected = |profile: &Profile| -> Vec<(String, u64, u64)> {
        let slice = |event: &Event| (profile.name_of(event).to_owned(), event.start_ns, event.end_ns());
        profile.events.iter().map(slice).collect()
    };
    let mut expected = expected(&profile);
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    // Arrows have both ends: 47 begins one, 48 ends it.
    let packets = parts(&fields(&trace)?, 1)?;
    let events = packets.iter().map(|packet| parts(packet, 11)).collect::<Result<Vec<_>, _>>()?;
    let ends = |field| events.iter().flatten().filter_map(|event| number(event, field)).collect::<Vec<_>>();
    let (mut begun, mut ended) = (ends(47), ends(48));
    begun.sort_unstable();
    ended.sort_unstable();
    assert!(!begun.is_empty());
    assert_eq!(begun, ended);
    let mut json = Vec::new();
    profile.write_trace(&mut json)?;
    assert!(trace.len() * 4 < json.len(), "{} and {} bytes", trace.len(), json.len());
    Ok(())
}

#[path = "profile_support/mm_sizes.rs"]
mod mm_sizes;

#[test]
fn an_operator_over_sizes_is_timed_by_a_program_that_compiles_and_runs() -> Result<(), Failure> {
    let _alone = alone();
    let comparison = Comparison {
        operator: "mm".to_owned(),
        library: "opsmith".to_owned(),
        shapes: [4, 8].map(|n| vec![vec![n, n], vec![n, n]]).to_vec(),
        dtype: "F32".to_owned(),
        attributes: Vec::new(),
        devices: vec!["Device::CPU".to_owned()],
    };
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/profile_support/mm_sizes.rs");
    if std::env::var_os("OPSMITH_BLESS").is_some() {
        std::fs::write(&path, comparison.program())?;
    }
    assert_eq!(std::fs::read_to_string(&path)?, comparison.program(), "OPSMITH_BLESS=1 writes it anew");
    // It prints a line for each call, which `cli/tests/scaffold.rs` reads.
    mm_sizes::main()?;
    Ok(())
}
