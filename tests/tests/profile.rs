//! The profiler: its records of calls, kernels, backward, graphs, threads and memory, and its outputs.
//!
//! Recording belongs to the process, so that one test records at a time.

mod aot_support;
#[path = "profile_support/kernels.rs"]
mod kernels;
mod profile_support;
#[path = "profile_support/written.rs"]
mod written;

use std::collections::HashMap;
use std::panic::Location;

use kernels::explained;
use opsmith::{Tensor, TensorOps};
use opsmith_graph::Graph;
use opsmith_profile::{
    Diff, Event, Group, Kind, Profile, ProfileOptions, Profiler, RecordedArg, SortBy, profile, profile_with,
    range,
};
use profile_support::{alone, ones};

type Failure = Box<dyn std::error::Error>;

/// The names of the events that an event is inside of, outermost first, and its own.
fn path(profile: &Profile, event: &Event) -> Vec<String> {
    let mut names = vec![profile.name_of(event).to_owned()];
    let mut parent = event.parent;
    while let Some(outer) = parent {
        names.push(profile.name_of(&profile.events[outer as usize]).to_owned());
        parent = profile.events[outer as usize].parent;
    }
    names.reverse();
    names
}

fn named<'a>(profile: &'a Profile, kind: Kind, name: &str) -> Vec<&'a Event> {
    profile.events.iter().filter(|event| event.kind == kind && profile.name_of(event) == name).collect()
}

/// Whether events of a thread are inside of each other or apart.
fn assert_nested(profile: &Profile) {
    let mut last: HashMap<(u32, Option<u32>), u64> = HashMap::new();
    for event in &profile.events {
        if let Some(parent) = event.parent {
            let outer = &profile.events[parent as usize];
            assert!(
                outer.start_ns <= event.start_ns && event.end_ns() <= outer.end_ns(),
                "{event:?} in {outer:?}"
            );
        }
        let before = last.insert((event.thread, event.parent), event.end_ns());
        assert!(before.is_none_or(|end| end <= event.start_ns), "{event:?} begins before {before:?}");
        assert!(event.end_ns() <= profile.duration_ns);
    }
}

#[test]
fn calls_compositions_and_kernels_are_inside_each_other() -> Result<(), Failure> {
    let _alone = alone();
    let x = ones(&[3, 5]);
    let (line, (result, profile)) = (line!(), profile(|| x.log_softmax(1))?);
    result?;
    assert_nested(&profile);
    let [kernel] = profile.events.iter().filter(|event| event.kind == Kind::Kernel).collect::<Vec<_>>()[..]
    else {
        panic!("one kernel: {:?}", profile.events)
    };
    let names = path(&profile, kernel);
    assert_eq!(names[0], "log_softmax.int");
    assert_eq!(names[1], "_log_softmax");
    assert_eq!(profile.operator_of(kernel).ok_or("no operator")?.name, "_log_softmax");
    assert!(profile.operator_of(kernel).ok_or("no operator")?.entry.starts_with("ops/"));
    // The call's place is the user's line, its operands are those that it was given.
    let call = named(&profile, Kind::Call, "log_softmax.int")[0];
    let site = profile.site_of(call).ok_or("no site")?;
    assert!(site.starts_with(&format!("{}:{line}:", file!())), "{site}");
    let operands = profile.operands_of(call).ok_or("no operands")?;
    assert_eq!(operands.text(), "float32[3, 5], 1, none");
    assert!(matches!(&operands.args[0], RecordedArg::Tensor(tensor) if tensor.strides == [5, 1]));
    let source = profile.source_of(kernel).ok_or("no source")?;
    let explained = explained("_log_softmax")?;
    let found = explained.kernels.iter().find_map(|kernel| kernel.source.as_deref()).ok_or("no place")?;
    assert!(source.starts_with("kernels/src/cpu/") && found.ends_with(source), "{source}, {found}");
    // Of the kernel, results too: 60 bytes are read and 60 written.
    assert_eq!(profile.operands_of(kernel).ok_or("no operands")?.bytes(), 120);
    let tree = profile.tree();
    assert_eq!(tree.inside[0].inside[0].inside[0].kind, Some(Kind::Kernel));
    assert!(
        tree.text(8, 0.0)
            .lines()
            .nth(3)
            .is_some_and(|line| line.contains("(kernel of cpu, kernels/src/cpu/")),
        "{}",
        tree.text(8, 0.0)
    );
    Ok(())
}

#[test]
fn every_form_has_its_name_and_its_time() -> Result<(), Failure> {
    let _alone = alone();
    let (a, b, mut out) = (ones(&[4]), ones(&[4]), ones(&[4]));
    let (result, profile) = profile(|| -> opsmith::Result<()> {
        a.add(&b)?;
        a.add_(&b)?;
        opsmith::add_out(&a, &b, &mut out)?;
        opsmith::call("add.Tensor", &[a.clone().into(), b.clone().into()], &[])?;
        Ok(())
    })?;
    result?;
    let averages = profile.key_averages(Group::Operator).sort_by(SortBy::Name);
    let rows: Vec<(&str, u64)> = averages.rows.iter().map(|row| (row.name.as_str(), row.calls)).collect();
    assert_eq!(rows, [("add.Tensor", 2), ("add.out", 1), ("add_.Tensor", 1)]);
    // A row's own time has that of its kernel; all rows together are the time of the outermost events.
    let outermost: u64 =
        profile.events.iter().filter(|event| event.parent.is_none()).map(|event| event.duration_ns).sum();
    assert_eq!(averages.rows.iter().map(|row| row.self_ns).sum::<u64>(), outermost);
    let kernels = profile.key_averages(Group::Kernel);
    assert_eq!(kernels.rows.iter().map(|row| row.calls).sum::<u64>(), 4);
    assert_eq!(profile.key_averages(Group::Shapes).rows[0].detail, "float32[4], float32[4], 1");
    let sites = profile.key_averages(Group::Site);
    assert_eq!(sites.rows.len(), 4, "{}", sites.table());
    Ok(())
}

#[test]
fn backward_belongs_to_the_call_that_it_derives() -> Result<(), Failure> {
    let _alone = alone();
    let (a, b) = (ones(&[4]).requires_grad_(true)?, ones(&[4]));
    let (line, (result, profile)) = (line!(), profile(|| a.mul(&b)?.exp()?.sum()?.backward())?);
    result?;
    assert_nested(&profile);
    let pairs: Vec<(&str, &str)> = profile
        .forward_of_backward()
        .into_iter()
        .map(|(call, backward)| {
            (profile.name_of(&profile.events[call]), profile.name_of(&profile.events[backward]))
        })
        .collect();
    let wanted = ["sum", "exp", "mul.Tensor"].map(|name| (name.to_owned(), format!("backward of {name}")));
    assert_eq!(pairs, wanted.each_ref().map(|(call, backward)| (call.as_str(), backward.as_str())));
    // Formulas are calls inside of the node, which is inside of the pass.
    let node = named(&profile, Kind::Backward, "backward of mul.Tensor")[0];
    assert_eq!(path(&profile, node), ["backward", "backward of mul.Tensor"]);
    // Both have the place of the call that is derived, not one in generated code.
    for event in profile.events.iter().filter(|event| event.operator.is_some()) {
        let site = profile.site_of(event);
        let place = format!("{}:{line}:", file!());
        assert!(site.is_some_and(|site| site.starts_with(&place)), "{site:?} of {}", profile.name_of(event));
    }
    let inside =
        profile.events.iter().filter(|event| event.kind == Kind::Kernel).map(|event| path(&profile, event));
    assert!(
        inside.clone().any(|path| path[..2] == ["backward", "backward of exp"]),
        "{:?}",
        inside.collect::<Vec<_>>()
    );
    Ok(())
}

#[test]
fn steps_of_a_graph_have_the_places_of_the_traced_function() -> Result<(), Failure> {
    let _alone = alone();
    let x = ones(&[6]);
    let place = Location::caller().file();
    let graph = Graph::trace(|x: &[Tensor]| x[0].mul(&x[0])?.exp(), [&x])?;
    let (outputs, profile) = profile(|| graph.run(&[&x]))?;
    assert_eq!(outputs?[0].to_vec::<f32>()?.len(), 6);
    assert_nested(&profile);
    let steps: Vec<&Event> = profile.events.iter().filter(|event| event.kind == Kind::Step).collect();
    assert_eq!(steps.iter().map(|step| profile.name_of(step)).collect::<Vec<_>>(), ["mul.Tensor", "exp"]);
    // A step tells its node, by the name that the graph's own table has for its result.
    for step in &steps {
        let (node, name, table) = (step.node.ok_or("no node")?, profile.name_of(step), graph.describe());
        let row = table.lines().find(|line| line.starts_with(&format!("%{node} ")));
        assert!(row.is_some_and(|row| row.contains(name)), "%{node} {name}\n{table}");
        assert!(profile.slowest_table(9).contains(&format!("{name} (%{node})")));
        let program = profile.repro(profile.slowest_call(name).ok_or("a step is not repeated")?)?;
        assert!(program.contains(&format!("opsmith::call(\"{name}\", &args, &[])")), "{program}");
    }
    for step in steps {
        assert_eq!(path(&profile, step)[0], "graph");
        assert!(profile.site_of(step).is_some_and(|site| site.starts_with(place)));
        assert!(profile.operands_of(step).is_some_and(|operands| operands.text().contains("float32[6]")));
    }
    Ok(())
}

#[test]
fn each_thread_has_its_events() -> Result<(), Failure> {
    let _alone = alone();
    let ((), profile) = profile(|| {
        std::thread::scope(|scope| {
            for number in 0..3 {
                let run = move || (0..=number).for_each(|_| drop(ones(&[8]).exp().unwrap()));
                std::thread::Builder::new()
                    .name(format!("worker {number}"))
                    .spawn_scoped(scope, run)
                    .unwrap();
            }
        });
    })?;
    assert_nested(&profile);
    let mut counts: Vec<(&str, usize)> = profile
        .threads
        .iter()
        .enumerate()
        .map(|(thread, info)| {
            let of_thread = |event: &&&Event| event.thread as usize == thread;
            (info.name.as_str(), named(&profile, Kind::Call, "exp").iter().filter(of_thread).count())
        })
        .collect();
    counts.sort_unstable();
    assert_eq!(counts, [("worker 0", 1), ("worker 1", 2), ("worker 2", 3)]);
    Ok(())
}

#[test]
fn memory_is_that_of_the_call_that_took_it() -> Result<(), Failure> {
    let _alone = alone();
    let x = ones(&[1 << 18]);
    let (kept, profile) = profile(|| {
        drop(x.exp());
        x.add(&x)
    })?;
    let kept = kept?;
    let add = named(&profile, Kind::Call, "add.Tensor")[0];
    assert_eq!((add.allocated, add.freed), (1 << 20, 0));
    let timeline = profile.memory_timeline();
    assert_eq!(timeline.points.iter().map(|(_, bytes)| *bytes).collect::<Vec<_>>(), [1 << 20, 0, 1 << 20]);
    assert_eq!(timeline.peak.1, 1 << 20);
    let [owner] = &timeline.owners[..] else { panic!("{:?}", timeline.owners) };
    assert!(owner.name.starts_with("exp at ") && owner.bytes == 1 << 20, "{owner:?}");
    drop(kept);
    let (_, without) = profile_with(ProfileOptions::new().memory(false).shapes(false), || x.exp())?;
    assert!(without.changes.is_empty() && without.operands.is_empty());
    assert_eq!(named(&without, Kind::Call, "exp")[0].allocated, 1 << 20);
    let (_, without) = profile_with(ProfileOptions::new().sites(false), || x.exp())?;
    assert!(without.events.iter().all(|event| event.site.is_none()));
    assert!(!without.texts.iter().any(|text| text.contains(".rs:")), "{:?}", without.texts);
    Ok(())
}

#[test]
fn later_events_overwrite_earlier_ones_and_a_note_says_so() -> Result<(), Failure> {
    let _alone = alone();
    let x = ones(&[2]);
    let ((), profile) = profile_with(ProfileOptions::new().records(10), || {
        let _outer = range("overwritten");
        for _ in 0..20 {
            drop(x.exp());
        }
        drop(x.sin());
    })?;
    assert_nested(&profile);
    assert_eq!(profile.events.len(), 10);
    assert_eq!(profile.threads[0].overwritten, 1 + 42 - 10);
    assert_eq!(named(&profile, Kind::Call, "sin").len(), 1);
    // A result of each call is allocated and freed: 42 changes.
    let said = |text: &str| profile.notes.iter().any(|note| note.starts_with(text));
    assert!(
        said("33 events were overwritten") && said("32 changes of memory were overwritten"),
        "{:?}",
        profile.notes
    );
    // The first that is left is a kernel whose call was overwritten, or a call.
    assert!(profile.events.iter().all(|event| event.kind != Kind::Range));
    Ok(())
}

#[test]
fn events_beyond_a_depth_are_left_out_and_a_note_says_so() -> Result<(), Failure> {
    let _alone = alone();
    let x = ones(&[2]);
    let (kept, profile) = profile(|| {
        let mut ranges: Vec<_> = (0..3000).map(|_| range("deeper")).collect();
        let kept = x.exp();
        while ranges.pop().is_some() {}
        kept
    })?;
    kept?;
    assert_nested(&profile);
    assert_eq!(profile.events.len(), 1001);
    assert_eq!(profile.notes, ["2001 events were left out that were inside of more than 1000 others"]);
    assert_eq!(profile.changes[0].event, Some(1000));
    assert!(profile.report().contains("</html>") && profile.tree().text(2000, 0.0).lines().count() == 1002);
    Ok(())
}

#[test]
fn steps_are_skipped_warmed_up_and_recorded() -> Result<(), Failure> {
    let _alone = alone();
    let x = ones(&[2]);
    let mut profiler = Profiler::start(ProfileOptions::new().schedule(1, 2, 2))?;
    for _ in 0..8 {
        x.exp()?;
        profiler.step()?;
    }
    let profile = profiler.stop();
    assert_nested(&profile);
    let ranges: Vec<&str> = profile
        .events
        .iter()
        .filter(|event| event.kind == Kind::Range)
        .map(|event| profile.name_of(event))
        .collect();
    assert_eq!(ranges, ["step 4", "step 5"]);
    assert_eq!(named(&profile, Kind::Call, "exp").len(), 2);
    // The time before and after the recorded steps is no part of it, without a warm-up too.
    let pause = std::time::Duration::from_millis(400);
    let mut profiler = Profiler::start(ProfileOptions::new().schedule(1, 0, 1))?;
    std::thread::sleep(pause);
    profiler.step()?;
    x.exp()?;
    profiler.step()?;
    std::thread::sleep(pause);
    let profile = profiler.stop();
    assert_eq!(named(&profile, Kind::Call, "exp").len(), 1);
    assert!(u128::from(profile.duration_ns) < pause.as_nanos(), "{}", profile.duration_ns);
    Ok(())
}

#[test]
fn one_profiler_records_and_nothing_afterwards() -> Result<(), Failure> {
    let _alone = alone();
    let x = ones(&[2]);
    let profiler = Profiler::start(ProfileOptions::new())?;
    let error = Profiler::start(ProfileOptions::new()).err().ok_or("a second profiler")?;
    assert!(
        error.to_string().contains("a profiler runs in this process already\n  help: stop it first"),
        "{error}"
    );
    x.exp()?;
    // Dropped without `stop`, it ends as well.
    drop(profiler);
    x.exp()?;
    let ((), profile) = profile(|| ())?;
    assert!(profile.events.is_empty(), "{:?}", profile.events);
    assert!(profile.key_averages(Group::Operator).table().contains("Self CPU in all: 0 ns"));
    assert!(profile.report().contains("<h2>Operators</h2>") && profile.flame_graph().starts_with("<svg"));
    Ok(())
}

#[test]
fn a_call_that_fails_ends() -> Result<(), Failure> {
    let _alone = alone();
    let (a, b) = (ones(&[2]), ones(&[3]));
    let (result, profile) = profile(|| {
        let failed = a.add(&b);
        a.exp().map(|_| failed)
    })?;
    assert!(result?.is_err());
    assert_nested(&profile);
    assert_eq!(named(&profile, Kind::Call, "exp")[0].parent, None);
    Ok(())
}

#[test]
fn ranges_that_are_open_when_recording_ends_last_until_then() -> Result<(), Failure> {
    let _alone = alone();
    let x = ones(&[2]);
    let profiler = Profiler::start(ProfileOptions::new())?;
    let outer = range("epoch");
    x.exp()?;
    let profile = profiler.stop();
    drop(outer);
    assert_nested(&profile);
    let epoch = named(&profile, Kind::Range, "epoch")[0];
    assert_eq!(epoch.end_ns(), profile.duration_ns);
    assert_eq!(path(&profile, named(&profile, Kind::Call, "exp")[0]), ["epoch", "exp"]);
    // A range that was open across sessions belongs to none of the later ones.
    let ((), later) = profile_with(ProfileOptions::new(), || drop(x.exp()))?;
    assert_eq!(later.events[0].parent, None);
    Ok(())
}

#[test]
fn a_difference_tells_real_changes_from_chance() -> Result<(), Failure> {
    let _alone = alone();
    let (small, large) = (ones(&[1000]), ones(&[200_000]));
    let run = |x: &Tensor, name: &str| {
        profile_with(ProfileOptions::new().name(name), || {
            for _ in 0..50 {
                drop(x.exp());
                drop(small.sin());
            }
        })
    };
    let (((), first), ((), second)) = (run(&small, "before")?, run(&large, "after")?);
    let diff = Diff::of(&first, &second, false);
    assert_eq!(diff.names, ["before", "after"]);
    let row = |name: &str| diff.rows.iter().find(|row| row.name == name).unwrap();
    assert!(row("exp").ratio.is_some_and(|ratio| ratio > 5.0), "{}", diff.table());
    assert!(row("exp").errors.is_some_and(|errors| errors > 3.0), "{}", diff.table());
    assert_eq!(row("sin").calls, [50, 50]);
    // By operands, sizes that only one side has are rows of their own.
    let by_shapes = Diff::of(&first, &second, true);
    let exp: Vec<[u64; 2]> =
        by_shapes.rows.iter().filter(|row| row.name == "exp").map(|row| row.calls).collect();
    assert!(exp.contains(&[50, 0]) && exp.contains(&[0, 50]), "{exp:?}");
    // A function that is called eagerly, and as a graph: its operators are the steps of the graph.
    let work = |x: &Tensor| x.mul(x)?.exp();
    let (eager, of_calls) = profile_with(ProfileOptions::new().name("eager"), || work(&large))?;
    let graph = Graph::trace(|x: &[Tensor]| work(&x[0]), [&large])?;
    let (ran, of_graph) = profile_with(ProfileOptions::new().name("graph"), || graph.run(&[&large]))?;
    drop((eager?, ran?));
    let both = Diff::of(&of_calls, &of_graph, false);
    let exp = both.rows.iter().find(|row| row.name == "exp").ok_or("no row")?;
    assert_eq!((exp.calls, exp.ratio.is_some()), ([1, 1], true), "{}", both.table());
    // A profile differs from itself by nothing.
    assert!(Diff::of(&first, &first, false).rows.iter().all(|row| row.ratio == Some(1.0)));
    Ok(())
}
