//! Kernels in profiles: their sources, custom ones, and the way from a slow one to its code.

use std::path::Path;

use opsmith::TensorOps;
use opsmith::{Backend, DType};
use opsmith_codegen::{Config, pipeline};
use opsmith_profile::{Diff, Group, Kind, Profile, ProfileOptions, ProfiledKernel, profile, profile_with};
use opsmith_runtime::op::KernelCall;
use opsmith_tools::describe;

use super::profile_support::{alone, ones};
use super::{Failure, aot_support, path};

#[test]
fn custom_kernels_are_recorded_like_others() -> Result<(), Failure> {
    let _alone = alone();
    let op = aot_support::add_reduce("profile_custom").declare()?;
    let x = ones(&[4, 5]);
    let (results, profile) = profile(|| op.call_with(&[&x, &x], &[("axis", 1.into())]))?;
    assert_eq!(results?[0].to_vec::<f32>()?, [10.0; 4]);
    let kernel = profile.events.iter().find(|event| event.kind == Kind::Kernel).ok_or("no kernel")?;
    assert_eq!(profile.operator_of(kernel).ok_or("no operator")?.name, "profile_custom");
    assert_eq!(path(&profile, kernel)[0], "profile_custom");
    let source = profile.source_of(kernel).ok_or("no source")?;
    let (file, line) = source.rsplit_once(':').ok_or("no line")?;
    let line = std::fs::read_to_string(file)?.lines().nth(line.parse::<usize>()? - 1).map(str::to_owned);
    assert!(line.is_some_and(|line| line.contains("(int ")), "{source}");
    assert!(
        profile
            .operands_of(kernel)
            .is_some_and(|operands| operands.text().starts_with("float32[4, 5], float32[4, 5], 1"))
    );
    Ok(())
}

/// The facts of an operator of the stock library that `opsmith explain` prints.
pub fn explained(operator: &str) -> Result<describe::DescribedOperator, Failure> {
    let config = Config::stock(Path::new(env!("CARGO_MANIFEST_DIR")).join("../ops.yaml"));
    let checked = pipeline::check(&config).map_err(|_| "the spec has mistakes")?;
    let op = checked.model.ops.iter().find(|op| op.name == operator).ok_or("no such operator")?;
    Ok(describe::describe(&checked, &config, op))
}

/// The source of the kernel of `exp`, which is on the host.
fn source_of_exp(profile: &Profile) -> Result<&str, Failure> {
    let of_exp = |kernel: &&ProfiledKernel| profile.operators[kernel.operator as usize].name == "exp";
    let [kernel] = profile.kernels.iter().filter(of_exp).collect::<Vec<_>>()[..] else {
        return Err(format!("one kernel: {:?}", profile.kernels).into());
    };
    assert_eq!(kernel.backend, "cpu");
    Ok(&kernel.source)
}

/// From a slow program to the kernel that makes it slow, and to the difference that mending it makes.
#[test]
fn a_slow_kernel_is_found_repeated_mended_and_compared() -> Result<(), Failure> {
    fn slow(call: &KernelCall<'_>) -> opsmith::Result<()> {
        std::thread::sleep(std::time::Duration::from_micros(300));
        opsmith_runtime::generated::pointwise::map1(call, [0], |x: f32| x.exp())
    }
    let _alone = alone();
    let x = ones(&[50]);
    let work = |name: &str| {
        profile_with(ProfileOptions::new().name(name), || -> opsmith::Result<()> {
            (0..20).try_for_each(|_| x.softplus()?.mul(&x)?.exp()?.sum().map(drop))
        })
    };
    let (op, _) = opsmith::LIBRARY.get("exp")?;
    let (line, fast) =
        (line!(), op.kernels.replace(Backend::Cpu, DType::F32, Some(slow)).ok_or("no kernel")?);
    let (result, before) = work("before")?;
    // SAFETY: it was replaced in this table, for this backend and dtype.
    unsafe { op.kernels.restore(Backend::Cpu, DType::F32, fast) };
    result?;
    let averages = before.key_averages(Group::Operator);
    let slowest = &averages.rows[0];
    assert_eq!((slowest.name.as_str(), slowest.calls), ("exp", 20), "{}", averages.table());
    assert!(slowest.self_ns >= 20 * 300_000);
    // Its place, its entry with the kernel, and the program that repeats it.
    let call = before.slowest_call("exp").ok_or("no call")?;
    assert!(before.site_of(call).is_some_and(|site| site.starts_with(file!())));
    let profiled = before.operator_of(call).ok_or("no operator")?;
    let explained = explained(&profiled.name)?;
    assert!(explained.declared.starts_with("ops/") && explained.declared == profiled.entry);
    assert!(explained.kernels.iter().any(|kernel| kernel.text.contains("exp(")), "{:?}", explained.kernels);
    assert!(before.repro(call)?.contains("opsmith::call(\"exp\", &args, &[])"));
    let (result, after) = work("after")?;
    result?;
    // The kernel that was installed has the line that did it, and the one of before its own again.
    assert!(source_of_exp(&before)?.starts_with(&format!("{}:{line}:", file!())));
    assert!(source_of_exp(&after)?.starts_with("ops/"));
    let diff = Diff::of(&before, &after, false);
    assert_eq!(diff.rows[0].name, "exp", "{}", diff.table());
    assert!(diff.rows[0].ratio.is_some_and(|ratio| ratio < 0.5), "{}", diff.table());
    assert!(diff.rows[0].errors.is_some_and(|errors| errors < -3.0), "{}", diff.table());
    Ok(())
}
