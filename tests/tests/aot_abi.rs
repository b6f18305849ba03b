//! The interface of custom kernels: the values that kernels receive, under both layouts of strings.

mod aot_support;

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use aot_support::{add_reduce, matrix, prebuilt};
use opsmith::{Arg, DType, Result, Tensor, Value};
use opsmith_aot::{AttrType, AttrValue, Declaration, StringAbi, inspect};

/// The kernels, compiled by hand with one layout of strings, with and without optimisation; once for all
/// tests.
fn library(abi: u8, optimised: bool) -> &'static str {
    static LIBRARIES: [[OnceLock<String>; 2]; 2] = [const { [const { OnceLock::new() }; 2] }; 2];
    LIBRARIES[usize::from(abi)][usize::from(optimised)].get_or_init(|| {
        let name = format!("abi-{abi}-{}.so", if optimised { "fast" } else { "plain" });
        let abi = format!("-D_GLIBCXX_USE_CXX11_ABI={abi}");
        prebuilt("abi.cc", &name, &[&abi, if optimised { "-O3" } else { "-O0" }])
    })
}

fn text(tensor: &Tensor) -> Result<String> {
    let bytes: Vec<u8> = tensor.to_vec::<u8>()?.into_iter().take_while(|byte| *byte != 0).collect();
    Ok(String::from_utf8(bytes).unwrap())
}

#[test]
fn attributes_of_every_type_arrive_under_both_layouts() -> Result<()> {
    for (abi, optimised) in [(0, false), (0, true), (1, false), (1, true)] {
        let path = library(abi, optimised);
        let expected = if abi == 0 { StringAbi::Old } else { StringAbi::New };
        assert_eq!(inspect(Path::new(path))?.strings, Some(expected), "{path}");
        let long = "a text that is much longer than what a string keeps inside itself";
        let echo = Declaration::new("aot_echo", format!("{path}:Echo"))
            .unlisted()
            .input("x")
            .output("y")
            .attribute("flag", true)
            .attribute("a_number_with_a_name_that_is_rather_long", -(1i64 << 40))
            .attribute("real", 0.5)
            .attribute("short", "brief")
            .attribute("long", long)
            .attribute("empty", "")
            .attribute("ints", vec![1i64, -2, 3])
            .attribute("floats", vec![0.5, -1.25])
            .attribute("int_lists", vec![vec![1i64, 2], vec![], vec![3]])
            .attribute("float_lists", vec![vec![1.5], vec![2.5, 3.5]])
            .declare()?;
        let out = echo.call(&[&Tensor::of(&[1.0f32])])?;
        assert_eq!(
            text(&out)?,
            format!(
                "true -1099511627776 0.500000 brief|{long}| [1 -2 3][0.500000 -1.250000] [[1 2][][3]] \
                 [[1.500000][2.500000 3.500000]] yes"
            ),
            "{path}"
        );
    }
    Ok(())
}

/// Lists of lists at a call, by default and by name, in eager calls of every kind.
#[test]
fn lists_of_lists_are_given_at_calls() -> Result<()> {
    let echo = Declaration::new("aot_echo_lists", format!("{}:Echo", library(1, false)))
        .input("x")
        .output("y")
        .attribute("flag", true)
        .attribute("a_number_with_a_name_that_is_rather_long", 1)
        .attribute("real", 0.5)
        .attribute("short", "s")
        .attribute("long", "l")
        .attribute("empty", "")
        .attribute_at_call("ints", AttrType::Ints)
        .attribute_with_default("floats", vec![0.5])
        .attribute_at_call("int_lists", AttrType::IntLists)
        .attribute_with_default("float_lists", vec![vec![1.5], vec![]])
        .declare()?;
    let schema = echo.definition().schema.text;
    assert!(schema.contains("int[][] int_lists, float[][] float_lists=[[1.5], []]"), "{schema}");
    let x = Tensor::of(&[1.0f32]);
    let shown = |ints: &str, floats: &str| format!("true 1 0.500000 s|l| [7][0.500000] {ints} {floats} yes");
    let lists = || AttrValue::from(vec![vec![1i64, 2], vec![3]]);
    let ints = || ("ints", AttrValue::from(vec![7i64]));
    let out = echo.call_with(&[&x], &[ints(), ("int_lists", lists())])?;
    assert_eq!(text(&out[0])?, shown("[[1 2][3]]", "[[1.500000][]]"));
    // Integers where numbers are wanted, and other values than in the call before.
    let out =
        echo.call_with(&[&x], &[ints(), ("int_lists", vec![vec![4i64]].into()), ("float_lists", lists())])?;
    assert_eq!(text(&out[0])?, shown("[[4]]", "[[1.000000 2.000000][3.000000]]"));
    let args = [Value::from(&x), vec![7i64].into(), Value::Ints(Vec::new())];
    let named = [("float_lists", Value::from(vec![vec![2.5]]))];
    // Arguments that can be left out come last, so the lists of integers are given by name.
    let by_name =
        opsmith::call("aot_echo_lists", &args[..2], &[("int_lists", args[2].clone()), named[0].clone()])?;
    assert_eq!(text(&by_name[0].clone().into_tensor()?)?, shown("[]", "[[2.500000]]"));
    let error = echo.call_with(&[&x], &[ints(), ("int_lists", "text".into())]).unwrap_err().to_string();
    assert!(error.contains("`int_lists` must be a list of lists of ints, got a str"), "{error}");
    Ok(())
}

#[test]
fn arrays_hold_what_the_interface_says() -> Result<()> {
    let path = library(1, false);
    let describe = Declaration::new("aot_describe", format!("{path}:Describe"))
        .unlisted()
        .input("x")
        .optional_input("mask")
        .dynamic_input("rest")
        .output("text")
        .output_shape([256])
        .output_dtype(DType::U8)
        .declare()?;
    let x = Tensor::from_slice(&[1.0f64; 6], &[2, 3])?;
    let (scalar, empty) = (Tensor::scalar(1.0, DType::BF16), Tensor::from_slice::<i16>(&[], &[0, 5])?);
    let rest = [scalar.clone(), empty, Tensor::of(&[true])];
    let out = describe.invoke(&[Arg::Tensor(&x), Arg::None, Arg::Tensors(&rest)])?;
    assert_eq!(
        text(&out[0])?,
        "6; float64 (2,3); none null (); bfloat16 (); int16 (0,5); bool (1); uint8 (256)"
    );
    let out = describe.invoke(&[Arg::Tensor(&scalar), Arg::Tensor(&x), Arg::Tensors(&[])])?;
    assert_eq!(text(&out[0])?, "3; bfloat16 (); float64 (2,3); uint8 (256)");
    Ok(())
}

#[test]
fn several_outputs_are_inferred_by_the_library() -> Result<()> {
    let path = library(0, true);
    let fixed = Declaration::new("aot_parts", format!("{path}:Parts")).unlisted();
    let fixed = fixed.input("x").output("a").output("b").attribute("count", 2).declare()?;
    let x = Tensor::of(&[1.5f64]);
    let outs = fixed.call_several(&[&x])?;
    assert_eq!(outs[0].to_vec::<f64>()?, [1.5]);
    assert_eq!(outs[1].to_vec::<f64>()?, [3.0, 3.0]);
    // As many as the library says.
    let list = Declaration::new("aot_list", format!("{path}:Parts")).unlisted();
    let list = list.input("x").dynamic_output("parts").attribute_with_default("count", 3).declare()?;
    assert_eq!(list.call_several(&[&x])?[2].to_vec::<f64>()?, [4.5; 3]);
    assert_eq!(list.call_with(&[&x], &[("count", 1.into())])?.len(), 1);
    // Not as many as declared.
    let wrong = Declaration::new("aot_wrong", format!("{path}:Parts")).unlisted();
    let wrong = wrong.input("x").output("a").output("b").attribute("count", 3).declare()?;
    let error = wrong.call_several(&[&x]).unwrap_err().to_string();
    assert!(error.contains("inference gave 3 shapes for the 2 outputs of `Parts`"), "{error}");
    Ok(())
}

/// `FInit` runs once for each new shape; the object it creates is destroyed with the operator.
#[test]
fn objects_live_as_long_as_they_are_needed() -> Result<()> {
    let diary = Path::new(env!("CARGO_TARGET_TMPDIR")).join("diary");
    let _ = fs::remove_file(&diary);
    let lives = Declaration::new("aot_lives", format!("{}:Lives", library(0, false)))
        .unlisted()
        .input("x")
        .output("y")
        .attribute("diary", diary.display().to_string())
        .output_shape_fn(|call| Ok(vec![call.shape(0)?.to_vec()]))
        .output_dtype(DType::F32)
        .declare()?;
    let call = |size: usize| lives.call(&[&Tensor::of(&vec![1.0f32; size])]).map(|out| out.numel());
    for size in [2, 2, 3, 2, 3, 4] {
        assert_eq!(call(size)?, size as i64);
    }
    assert_eq!(fs::read_to_string(&diary).unwrap(), "234");
    lives.unload();
    assert_eq!(fs::read_to_string(&diary).unwrap(), "234ddd");
    assert!(call(2).is_err());
    Ok(())
}

/// After unloading nothing of the library is mapped any more, and doing it often leaves nothing behind.
#[test]
fn unloading_closes_the_library() -> Result<()> {
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("aot-unloaded.so");
    fs::copy(library(0, true), &copy).unwrap();
    let mapped = || fs::read_to_string("/proc/self/maps").unwrap().contains("aot-unloaded.so");
    let mut definitions = std::collections::BTreeSet::new();
    for _ in 0..50 {
        let parts = Declaration::new("aot_unloaded", format!("{}:Parts", copy.display()));
        let parts = parts.input("x").dynamic_output("parts").attribute("count", 1).declare()?;
        parts.call_several(&[&Tensor::of(&[1.0f64])])?;
        assert!(mapped());
        definitions.insert(std::ptr::from_ref(parts.definition()) as usize);
        parts.unload();
        assert!(!mapped(), "the library is still there");
    }
    assert_eq!(definitions.len(), 1, "one definition serves all");
    Ok(())
}

/// Calls from many threads, of several shapes, share nothing.
#[test]
fn calls_from_many_threads() -> Result<()> {
    let op = add_reduce("aot_threads").declare()?;
    std::thread::scope(|scope| {
        for thread in 0..8 {
            scope.spawn(move || {
                for round in 0..200 {
                    let columns = 5 + (thread * 7 + round) % 11;
                    let x = matrix(4, columns, |index| (index + thread) as f32);
                    let out = &op.call_with(&[&x, &x], &[("axis", 1.into())]).unwrap()[0];
                    let row = |row: usize| {
                        (0..columns).map(move |column| (row * columns + column + thread) as f32 * 2.0)
                    };
                    let expected: Vec<f32> = (0..4).map(|index| row(index).sum()).collect();
                    assert_eq!(out.to_vec::<f32>().unwrap(), expected);
                }
            });
        }
    });
    Ok(())
}
