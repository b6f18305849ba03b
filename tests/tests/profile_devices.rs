//! The profiler on CUDA devices, where there is none: the stand-ins of `tests/cuda` measure the time of streams. The work is done in
//! a process of its own, which finds them as it would find the real ones; `OPSMITH_ON_DEVICE=1` lets it find those.

mod profile_support;
#[path = "profile_support/trace.rs"]
mod trace;

use std::collections::HashMap;
use std::path::Path;

use opsmith::{Device, Tensor, TensorOps};
use opsmith_profile::{
    AveragesRow, Diff, Event, Group, Kind, Limits, Profile, ProfileOptions, SortBy, profile_with,
};
use opsmith_stand_in::process::{self, StandIns};
use profile_support::{alone, ones};
use serde_json::Value as Json;

type Failure = Box<dyn std::error::Error>;

const DEVICE: Device = Device::cuda(0);

/// The process started by the test below.
#[test]
fn worker() {
    process::work(&[("all", || work().unwrap())]);
}

#[test]
fn kernels_on_devices_have_their_time_and_their_memory() {
    let _alone = alone();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("profile-devices");
    StandIns::new(folder, "cublaslt").done("all", &[]);
}

fn work() -> Result<(), Failure> {
    let x = ones(&[64, 256]).to_device(DEVICE)?;
    let step = || -> opsmith::Result<(Tensor, Tensor)> {
        let square = x.mul(&x)?;
        let result = square.log_softmax(1)?;
        Ok((square, result))
    };
    // Kernels are compiled at their first call.
    step()?;
    let (kept, profile) = profile_with(ProfileOptions::new(), step)?;
    assert_eq!(kept?.0.to_vec::<f32>()?, [1.0; 64 * 256]);
    times(&profile)?;
    table(&profile)?;
    files(&profile)?;
    copies()?;
    products(&x)?;
    differences(&profile)?;
    let ((), untimed) = profile_with(ProfileOptions::new().devices(false), || drop(step()))?;
    let notes = Diff::of(&profile, &untimed, false).notes;
    assert!(notes.len() == 1 && notes[0].contains("does not wait for cuda"), "{notes:?}");
    assert!(untimed.device_spans.is_empty() && !named_kernels(&untimed).is_empty());
    // Moments are used again, and a session without work on devices has none.
    let ((), nothing) = profile_with(ProfileOptions::new(), || drop(ones(&[3])))?;
    assert!(nothing.devices.is_empty() && nothing.device_spans.is_empty());
    assert!(!nothing.key_averages(Group::Operator).table().contains("Self device"));
    let (again, profile) =
        profile_with(ProfileOptions::new(), || (0..100).try_for_each(|_| step().map(drop)))?;
    again?;
    times(&profile)
}

fn named_kernels(profile: &Profile) -> Vec<&Event> {
    profile.events.iter().filter(|event| event.kind == Kind::Kernel).collect()
}

/// Every kernel on the device has one part of a stream's time, at or after its submission.
fn times(profile: &Profile) -> Result<(), Failure> {
    assert!(profile.notes.is_empty(), "{:?}", profile.notes);
    assert_eq!(profile.devices, ["cuda:0"]);
    let on_device = |event: &Event| {
        let operands = profile.operands_of(event);
        event.kind == Kind::Kernel
            && operands.is_some_and(|own| own.outs.iter().all(|out| out.device == "cuda:0"))
    };
    let kernels =
        (0..profile.events.len() as u32).filter(|&event| on_device(&profile.events[event as usize]));
    let kernels: Vec<u32> = kernels.collect();
    assert!(kernels.len() >= 2, "{kernels:?}");
    let mut found: Vec<u32> = profile.device_spans.iter().map(|span| span.event).collect();
    // A stream runs kernels in the order of their submission.
    assert!(found.is_sorted(), "{found:?}");
    found.dedup();
    assert_eq!(found, kernels);
    assert_eq!(profile.device_spans.len(), kernels.len());
    for span in &profile.device_spans {
        let kernel = &profile.events[span.event as usize];
        // The device's clock was set by the host's, to some microseconds.
        assert!(span.start_ns + 1_000_000 >= kernel.start_ns, "{span:?} {kernel:?}");
        assert_eq!((span.device, span.stream), (0, 0));
    }
    assert!(profile.device_spans.is_sorted_by(|a, b| a.end_ns() <= b.start_ns));
    assert!(profile.device_spans.iter().any(|span| span.duration_ns > 0));
    Ok(())
}

/// A product's kernel has the library's function inside, which is how a profile tells it from the kernel of our own.
fn products(x: &Tensor) -> Result<(), Failure> {
    let (result, profile) = profile_with(ProfileOptions::new(), || x.matmul(&x.t()?))?;
    result?;
    let functions: Vec<&Event> =
        profile.events.iter().filter(|event| profile.name_of(event) == "cublasLtMatmul").collect();
    if functions.is_empty() && process::on_device() {
        println!("this machine has no cuBLASLt: a product is a kernel of our own");
        return Ok(());
    }
    let [function] = functions[..] else { return Err(format!("{functions:?}").into()) };
    let parent = &profile.events[function.parent.ok_or("it is inside of nothing")? as usize];
    assert_eq!((function.kind, parent.kind), (Kind::Range, Kind::Kernel));
    assert_eq!(profile.device_spans.len(), 1, "{:?}", profile.device_spans);
    Ok(())
}

/// Copies from the host and to it have their part of the stream's time, bytes and places in tables and traces; the device's
/// limits are measured once, and kernels have their share of them.
fn copies() -> Result<(), Failure> {
    const BYTES: u64 = 64 * 256 * 4;
    let host = ones(&[64, 256]);
    let (result, profile) = profile_with(ProfileOptions::new().limits(true), || {
        let there = host.to_device(DEVICE)?;
        there.mul(&there)?.to_device(Device::CPU)
    })?;
    assert_eq!(result?.to_vec::<f32>()?, [1.0; 64 * 256]);
    assert!(profile.notes.is_empty(), "{:?}", profile.notes);
    let names = ["copy cpu to cuda:0", "copy cuda:0 to cpu"];
    let spans: Vec<(&str, Kind)> = profile
        .device_spans
        .iter()
        .map(|span| &profile.events[span.event as usize])
        .map(|event| (profile.name_of(event), event.kind))
        .collect();
    let [first, (_, Kind::Kernel), last] = spans[..] else { panic!("{spans:?}") };
    assert_eq!([first, last], names.map(|name| (name, Kind::Copy)));
    for group in [Group::Operator, Group::Kernel] {
        let averages = profile.key_averages(group);
        for name in names {
            let row = row(&averages.rows, name)?;
            assert_eq!((row.calls, row.moved, row.flops), (1, BYTES, 0));
            assert!(row.device_self_ns > 0 && row.device_self_ns == row.device_total_ns, "{row:?}");
        }
    }
    let mut text = Vec::new();
    profile.write_trace(&mut text)?;
    let trace: Json = serde_json::from_slice(&text)?;
    let events = trace["traceEvents"].as_array().ok_or("no events")?;
    let copies: Vec<&Json> = events.iter().filter(|event| event["cat"] == "gpu_memcpy").collect();
    assert_eq!(copies.iter().map(|copy| copy["name"].as_str()).collect::<Vec<_>>(), names.map(Some));
    for copy in copies {
        assert!(copy["pid"] == 2 && copy["tid"] == 0 && copy["args"]["bytes"] == BYTES, "{copy}");
    }
    let mut binary = Vec::new();
    profile.write_perfetto(&mut binary)?;
    assert_eq!(trace::slices(&binary)?.len(), profile.events.len() + profile.device_spans.len());

    let limits = profile.limits.as_ref().ok_or("no limits")?;
    let of_device = limits.of_device("cuda:0").ok_or("no limits of the device")?;
    assert!(of_device.copy_gb_s > 0.0 && of_device.gflop_s > 0.0, "{of_device:?}");
    // They are those that are kept for the next program, and are not measured again.
    let kept = Path::new(&std::env::var("OPSMITH_CACHE_DIR")?).join("device-limits.json");
    let kept: Json = serde_json::from_slice(&std::fs::read(kept)?)?;
    assert_eq!(kept[0]["limits"]["copy_gb_s"], of_device.copy_gb_s);
    assert_eq!(Limits::clone(limits).with_device(DEVICE)?.devices, limits.devices);
    let averages = profile.key_averages(Group::Operator);
    assert!(row(&averages.rows, "mul.Tensor")?.least_ns > 0.0 && averages.table().contains("of limit"));
    assert!(profile.report().contains("aria-label=\"Roofline of cuda:0\""));
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("copies.profile.json");
    profile.save(&path)?;
    assert_eq!(format!("{:?}", Profile::load(&path)?), format!("{profile:?}"));
    Ok(())
}

/// A call on the device has the time of its kernels beside one on the host, and a reproducer runs and waits there.
fn differences(profile: &Profile) -> Result<(), Failure> {
    let (product, of_host) = profile_with(ProfileOptions::new(), || ones(&[64, 256]).mul(2.0))?;
    product?;
    let diff = Diff::of(&of_host, profile, false);
    let row = diff.rows.iter().find(|row| row.name == "mul.Tensor").ok_or("no row")?;
    assert!(!row.on_devices[0] && row.on_devices[1] && diff.notes.is_empty(), "{diff:?}");
    let rows = profile.key_averages(Group::Operator).rows;
    let own = rows.iter().find(|row| row.name == "mul.Tensor").ok_or("no row")?;
    assert_eq!(row.total_ns[1], own.device_total_ns);
    let program = profile.repro(profile.slowest_call("mul.Tensor").ok_or("no call")?)?;
    assert!(program.contains("DType::F32, Device::cuda(0), fill)?;"), "{program}");
    assert!(program.contains("time(Device::cuda(0), "), "{program}");
    // The call by which such programs wait.
    DEVICE.synchronize()?;
    Device::CPU.synchronize()?;
    assert!(Device::cuda(99).synchronize().is_err());
    Ok(())
}

fn row<'a>(rows: &'a [AveragesRow], name: &str) -> Result<&'a AveragesRow, Failure> {
    rows.iter().find(|row| row.name == name).ok_or_else(|| format!("no {name}").into())
}

fn table(profile: &Profile) -> Result<(), Failure> {
    let averages = profile.key_averages(Group::Operator).sort_by(SortBy::SelfDeviceTime);
    let rows = &averages.rows;
    let whole: u64 = profile.device_spans.iter().map(|span| span.duration_ns).sum();
    assert_eq!(rows.iter().map(|row| row.device_self_ns).sum::<u64>(), whole);
    assert!(rows.is_sorted_by(|a, b| a.device_self_ns >= b.device_self_ns));
    // The kernel is in the operator that the composition calls.
    let (outer, inner) = (row(rows, "log_softmax.int")?, row(rows, "_log_softmax")?);
    assert_eq!(outer.device_self_ns, 0);
    assert_eq!(outer.device_total_ns, inner.device_total_ns);
    assert_eq!(inner.device_self_ns, inner.device_total_ns);
    // A result of 64 × 256 floats, which the profile's end still holds.
    let product = row(rows, "mul.Tensor")?;
    assert_eq!((product.device_self_memory, product.self_memory), (64 * 256 * 4, 0));
    assert_eq!(outer.device_total_memory, 64 * 256 * 4);
    let text = averages.table();
    for head in
        ["Self device %", "Self device", "Device total", "Device avg", "Self device mem", "Device mem"]
    {
        assert!(text.contains(head), "{text}");
    }
    assert!(text.contains("Self device in all"), "{text}");
    // Kernels are those of the device, with their sources there.
    let kernels = profile.key_averages(Group::Kernel);
    for name in ["mul.Tensor", "_log_softmax"] {
        let kernel = kernels.rows.iter().find(|row| row.detail == name).ok_or("no kernel")?;
        assert_eq!(kernel.backend, "cuda", "{kernel:?}");
        assert!(
            ["ops", "kernels/src/cuda/"].iter().any(|start| kernel.source.starts_with(start)),
            "{kernel:?}"
        );
    }
    assert_eq!(kernels.rows.iter().map(|row| row.device_self_ns).sum::<u64>(), whole);
    let csv = averages.csv();
    let line = csv.lines().find(|line| line.starts_with("\"mul.Tensor\"")).ok_or("no line")?;
    assert!(line.ends_with(",65536,65536,0"), "{line}");
    Ok(())
}

fn files(profile: &Profile) -> Result<(), Failure> {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("devices.profile.json");
    profile.save(&path)?;
    let loaded = Profile::load(&path)?;
    assert_eq!(loaded.device_spans, profile.device_spans);
    assert_eq!(loaded.key_averages(Group::Operator).table(), profile.key_averages(Group::Operator).table());
    // Spans of a stream that overlap are no profile.
    let mut damaged: Json = serde_json::from_slice(&std::fs::read(&path)?)?;
    damaged["device_spans"][0]["duration_ns"] = Json::from(1u64 << 50);
    std::fs::write(&path, damaged.to_string())?;
    let error = Profile::load(&path).unwrap_err().to_string();
    assert!(error.contains("a kernel on a device"), "{error}");

    let mut text = Vec::new();
    profile.write_trace(&mut text)?;
    let trace: Json = serde_json::from_slice(&text)?;
    let events = trace["traceEvents"].as_array().ok_or("no events")?;
    let kernels: Vec<&Json> = events.iter().filter(|event| event["cat"] == "kernel").collect();
    assert_eq!(kernels.len(), profile.device_spans.len());
    assert!(kernels.iter().all(|kernel| kernel["pid"] == 2 && kernel["tid"] == 0));
    let named = |event: &&Json| event["name"] == "process_name" && event["args"]["name"] == "cuda:0";
    assert_eq!(events.iter().filter(named).count(), 1);
    // An arrow leads from each submission to its kernel.
    let mut arrows: HashMap<i64, Vec<(&str, i64)>> = HashMap::new();
    for event in events.iter().filter(|event| event["cat"] == "ac2g") {
        let place = (event["ph"].as_str().ok_or("no phase")?, event["pid"].as_i64().ok_or("no process")?);
        arrows.entry(event["id"].as_i64().ok_or("no id")?).or_default().push(place);
    }
    assert_eq!(arrows.len(), kernels.len());
    assert!(arrows.values().all(|ends| ends[..] == [("s", 1), ("f", 2)]), "{arrows:?}");
    let memory = |event: &&Json| event["ph"] == "C" && event["pid"] == 2;
    assert!(events.iter().filter(memory).any(|event| event["args"]["bytes"] == 2 * 64 * 256 * 4));

    let mut binary = Vec::new();
    profile.write_perfetto(&mut binary)?;
    assert_eq!(trace::slices(&binary)?.len(), profile.events.len() + profile.device_spans.len());
    let report = profile.report();
    assert!(report.contains("Timeline of cuda:0, stream 0") && report.contains("Self device memory"));
    Ok(())
}
