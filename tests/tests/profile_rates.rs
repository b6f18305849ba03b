//! The profiler: arithmetic operations by the spec, shares of the machine's limits, and Perfetto's binary format.

mod profile_support;

use std::collections::HashMap;

use opsmith::profile::{Comparison, Event, Group, Kind, Limits, Profile, profile};
use opsmith::{DType, Tensor, TensorOps};
use profile_support::{alone, ones};

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
    // Nothing says how many comparisons a sort takes.
    assert_eq!(flops_of(|| Ok(a.sort()?.0))?, None);
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
        for values in opsmith_testing::samples::samples(op, DType::F64) {
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
    let profile = profile.with_limits(Limits { copy_gb_s: 1e6, gflop_s: 1.0, threads: 1 });
    let averages = profile.key_averages(Group::Operator);
    let row = averages.rows.iter().find(|row| row.name == "mm").ok_or("no row")?;
    assert_eq!(row.flops, 2 * 64 * 64 * 64);
    assert_eq!(row.least_ns, row.flops as f64);
    let table = averages.table();
    assert!(table.contains("GFLOP/s") && table.contains("of limit"), "{table}");
    assert!(averages.csv().lines().next().is_some_and(|head| head.ends_with(",flops")));
    let report = profile.report();
    assert!(report.contains("aria-label=\"Roofline\"") && report.contains("operations a byte, "), "{report}");
    Ok(())
}

/// A field of a protocol buffer: a number, or bytes.
#[derive(Clone, Debug)]
enum Field {
    Number(u64),
    Bytes(Vec<u8>),
}

/// The fields of a message by their numbers.
fn fields(mut bytes: &[u8]) -> Result<Vec<(u64, Field)>, Failure> {
    fn varint(bytes: &mut &[u8]) -> Result<u64, Failure> {
        let (mut value, mut shift) = (0, 0);
        loop {
            let (&first, rest) = bytes.split_first().ok_or("a number ends early")?;
            *bytes = rest;
            value |= u64::from(first & 0x7f) << shift;
            shift += 7;
            if first < 0x80 {
                return Ok(value);
            }
        }
    }
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes)?;
        let value = match key & 7 {
            0 => Field::Number(varint(&mut bytes)?),
            1 => {
                let (number, rest) = bytes.split_first_chunk::<8>().ok_or("8 bytes end early")?;
                bytes = rest;
                Field::Number(u64::from_le_bytes(*number))
            }
            2 => {
                let length = varint(&mut bytes)? as usize;
                let (text, rest) = bytes.split_at_checked(length).ok_or("bytes end early")?;
                bytes = rest;
                Field::Bytes(text.to_vec())
            }
            other => return Err(format!("wire type {other}").into()),
        };
        found.push((key >> 3, value));
    }
    Ok(found)
}

fn number(message: &[(u64, Field)], field: u64) -> Option<u64> {
    message.iter().find_map(|(found, value)| match value {
        Field::Number(value) if *found == field => Some(*value),
        _ => None,
    })
}

fn parts(message: &[(u64, Field)], field: u64) -> Result<Vec<Vec<(u64, Field)>>, Failure> {
    let parts = message.iter().filter(|(found, _)| *found == field);
    let bytes = parts.filter_map(|(_, value)| match value {
        Field::Bytes(bytes) => Some(bytes),
        Field::Number(_) => None,
    });
    bytes.map(|bytes| fields(bytes)).collect()
}

fn text(message: &[(u64, Field)], field: u64) -> Option<String> {
    message.iter().find_map(|(found, value)| match value {
        Field::Bytes(bytes) if *found == field => String::from_utf8(bytes.clone()).ok(),
        _ => None,
    })
}

/// The slices of a trace that end, by name, with begin and end; interned names are resolved.
fn slices(trace: &[u8]) -> Result<Vec<(String, u64, u64)>, Failure> {
    let mut names: HashMap<u64, String> = HashMap::new();
    let mut open: HashMap<u64, Vec<(String, u64)>> = HashMap::new();
    let mut found = Vec::new();
    for packet in parts(&fields(trace)?, 1)? {
        assert_eq!(number(&packet, 10), Some(1), "a packet without its sequence: {packet:?}");
        for interned in parts(&packet, 12)? {
            for name in parts(&interned, 2)? {
                names.insert(number(&name, 1).ok_or("no number")?, text(&name, 2).ok_or("no name")?);
            }
        }
        for event in parts(&packet, 11)? {
            let (at, track) = (number(&packet, 8).ok_or("no time")?, number(&event, 11).ok_or("no track")?);
            match number(&event, 9) {
                Some(1) => {
                    let name = names.get(&number(&event, 10).ok_or("no name")?).ok_or("an unknown name")?;
                    open.entry(track).or_default().push((name.clone(), at));
                }
                Some(2) => {
                    let (name, start) = open.get_mut(&track).and_then(Vec::pop).ok_or("an end alone")?;
                    found.push((name, start, at));
                }
                Some(4) => assert_eq!(track, 2),
                other => return Err(format!("type {other:?}").into()),
            }
        }
    }
    assert!(open.values().all(Vec::is_empty), "{open:?}");
    Ok(found)
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
