//! Outputs of the profiler: files, traces, pictures and programs.

use std::collections::HashMap;

use opsmith::{DType, TensorOps, autograd};
use opsmith_profile::{Group, Kind, Limits, Profile, ProfileOptions, profile, profile_with, range};

use super::Failure;
use super::profile_support::{alone, ones};

fn of_everything() -> Result<Profile, Failure> {
    let a = ones(&[64, 64]).requires_grad_(true)?;
    let options = ProfileOptions::new().name("a <small> \"network\"");
    let (result, profile) = profile_with(options, || -> opsmith::Result<()> {
        let _step = range("step & more");
        a.mm(&a)?.relu()?.log_softmax(1)?.sum()?.backward()?;
        autograd::no_grad(|| a.t()?.softmax(0)).map(drop)
    })?;
    result?;
    Ok(profile)
}

#[test]
fn a_file_gives_the_profile_back() -> Result<(), Failure> {
    let _alone = alone();
    let profile = of_everything()?.with_limits(Limits {
        copy_gb_s: 10.0,
        gflop_s: 100.0,
        threads: 1,
        devices: Vec::new(),
    });
    let path = std::env::temp_dir().join(format!("opsmith-profile-{}.json", std::process::id()));
    profile.save(&path)?;
    let again = Profile::load(&path)?;
    assert_eq!(format!("{again:?}"), format!("{profile:?}"));
    // A damaged one is an error with its place, for any byte that is missing.
    let text = std::fs::read(&path)?;
    for end in [0, 1, text.len() / 2, text.len() - 1] {
        std::fs::write(&path, &text[..end])?;
        let error = Profile::load(&path).err().ok_or("half a profile")?.to_string();
        assert!(error.starts_with(&path.display().to_string()) && error.contains("help: "), "{error}");
    }
    let lying = String::from_utf8(text)?.replacen("[\"Call\",0,", "[\"Call\",7,", 1);
    std::fs::write(&path, lying)?;
    assert!(Profile::load(&path).err().ok_or("a lie")?.to_string().contains("refers to what is not there"));
    std::fs::remove_file(&path)?;
    Ok(())
}

#[test]
fn a_trace_is_json_whose_events_nest_and_whose_arrows_have_both_ends() -> Result<(), Failure> {
    let _alone = alone();
    let profile = of_everything()?;
    let mut text = Vec::new();
    profile.write_trace(&mut text)?;
    let trace: serde_json::Value = serde_json::from_slice(&text)?;
    let events = trace["traceEvents"].as_array().ok_or("no events")?;
    let of_phase = |phase: &str| events.iter().filter(|event| event["ph"] == phase).collect::<Vec<_>>();
    let complete = of_phase("X");
    assert_eq!(complete.len(), profile.events.len());
    // Perfetto drops events of a thread that overlap without nesting; times are exact to the nanosecond.
    let mut open: HashMap<i64, Vec<f64>> = HashMap::new();
    for event in &complete {
        let (start, duration) =
            (event["ts"].as_f64().ok_or("no ts")?, event["dur"].as_f64().ok_or("no dur")?);
        let stack = open.entry(event["tid"].as_i64().ok_or("no tid")?).or_default();
        while stack.last().is_some_and(|end| *end <= start + 1e-6) {
            stack.pop();
        }
        assert!(stack.last().is_none_or(|end| start + duration <= end + 1e-6), "{event}");
        stack.push(start + duration);
    }
    let ends = |phase: &str| of_phase(phase).iter().map(|event| event["id"].as_i64()).collect::<Vec<_>>();
    assert!(!ends("s").is_empty());
    assert_eq!(ends("s"), ends("f"));
    let product = complete.iter().find(|event| event["name"] == "mm").ok_or("no product")?;
    assert_eq!(product["args"]["Input Dims"], serde_json::json!([[64, 64], [64, 64]]));
    assert_eq!(product["args"]["Input type"], serde_json::json!(["float32", "float32"]));
    assert!(complete.iter().any(|event| event["name"] == "step & more" && event["cat"] == "user_annotation"));
    Ok(())
}

#[test]
fn pictures_and_reports_are_whole_and_escaped() -> Result<(), Failure> {
    let _alone = alone();
    let profile = of_everything()?;
    let (report, flame) = (profile.report(), profile.flame_graph());
    for text in [&report, &flame] {
        assert!(text.contains("step &amp; more") && !text.contains("step & more"));
        assert!(!text.contains("NaN") && !text.contains("inf"));
    }
    assert!(report.contains("a &lt;small&gt; &quot;network&quot;") && !report.contains("<small>"));
    // Nothing is loaded from elsewhere.
    assert!(!report.contains("src=") && !report.contains("href=") && !report.contains("@import"));
    let count = |text: &str, part: &str| text.matches(part).count();
    for tag in ["main", "table", "svg", "details", "div", "g", "script", "style"] {
        let opened = count(&report, &format!("<{tag} ")) + count(&report, &format!("<{tag}>"));
        assert_eq!(opened, count(&report, &format!("</{tag}>")), "{tag}");
    }
    let csv = profile.key_averages(Group::Shapes).csv();
    assert!(
        csv.lines().skip(1).all(|line| line.starts_with('"'))
            && csv.contains("\"mm\",\"float32[64, 64], float32[64, 64]\",\"\",\"\",1,")
    );
    Ok(())
}

#[path = "bernoulli_.rs"]
mod bernoulli_;
/// Programs as the profiler writes them, compiled and run: `OPSMITH_BLESS=1` writes them anew. The operators of the last three take
/// no zeros, or positive definite matrices alone, or probabilities.
#[path = "cat.rs"]
mod cat;
#[path = "cholesky.rs"]
mod cholesky;
#[path = "floor_divide.rs"]
mod floor_divide;

#[test]
fn a_call_is_repeated_by_a_program_that_compiles_and_runs() -> Result<(), Failure> {
    let _alone = alone();
    let (a, bias) = (ones(&[6, 4]), ones(&[1, 6]).expand([4, 6])?);
    let half = a.to_dtype(DType::BF16)?;
    let indices = opsmith::zeros([2, 4])?.to_dtype(DType::I64)?;
    let (done, profile) = profile(|| -> opsmith::Result<()> {
        drop(opsmith::addmm(&bias, &a.t().unwrap(), &a.t().unwrap().narrow(0, 0, 4).unwrap()));
        drop(opsmith::cat(&[&half, &half]));
        drop(a.gather(0, &indices));
        drop(opsmith::linalg_cholesky(&opsmith::eye(5).unwrap()));
        drop(indices.add(1)?.floor_divide(&indices.add(2)?));
        drop(a.mul(0.5)?.bernoulli());
        Ok(())
    })?;
    done?;
    let written = |name: &str| -> Result<String, Failure> {
        let call = profile.slowest_call(name).ok_or("no such call")?;
        let text = profile.repro(call)?;
        // The time of this run is in the first line.
        let (first, rest) = text.split_once('\n').ok_or("one line")?;
        assert!(first.contains("called at ") && first.ends_with(" there."), "{first}");
        Ok(format!("//! The repetition of a call, as `Profile::repro` writes it.\n{rest}"))
    };
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/profile_support");
    type Main = fn() -> opsmith::Result<()>;
    let programs: [(&str, &str, Main); 4] = [
        ("cat", "cat.rs", cat::main),
        ("linalg_cholesky", "cholesky.rs", cholesky::main),
        ("floor_divide", "floor_divide.rs", floor_divide::main),
        ("bernoulli", "bernoulli_.rs", bernoulli_::main),
    ];
    if std::env::var_os("OPSMITH_BLESS").is_some() {
        for (operator, file, _) in programs {
            std::fs::write(folder.join(file), written(operator)?)?;
        }
    }
    for (operator, file, main) in programs {
        let recorded = std::fs::read_to_string(folder.join(file))?;
        assert_eq!(recorded, written(operator)?, "OPSMITH_BLESS=1 writes it anew");
        main()?;
    }
    assert!(profile.slowest_call("gather").is_some() && profile.slowest_call("nothing").is_none());
    assert!(written("gather")?.contains("DType::I64"));
    let kernel = profile.events.iter().find(|event| event.kind == Kind::Kernel).ok_or("no kernel")?;
    assert!(profile.repro(kernel).is_err_and(|error| error.to_string().contains("only a call")));
    Ok(())
}
