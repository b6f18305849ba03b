//! Libraries that were built for `AotExtraDualABI`, whether their symbols show it or not. `AOT_DUAL_HEADER` names
//! the folder of another `custom_aot_extra_dual_abi.h` that they are built against.

mod aot_support;

use std::path::Path;
use std::sync::LazyLock;

use aot_support::{compiled, kernel};
use opsmith::{DType, Result, Tensor};
use opsmith_aot::{AttrType, Declaration, Interface, inspect};

const LONG: &str = "a text that is much longer than what a string keeps inside itself";

/// The kernels under each layout of strings, optimised or not, with symbols that name the class or without, and
/// whether there are such symbols. Compiled once for all tests.
fn libraries() -> &'static [(String, bool)] {
    static LIBRARIES: LazyLock<Vec<(String, bool)>> = LazyLock::new(|| {
        let header = std::env::var("AOT_DUAL_HEADER").unwrap_or_else(|_| kernel(""));
        let variants =
            [(0, "-O0", true), (0, "-O3", false), (1, "-O0", false), (1, "-O3", true), (1, "-O3", false)];
        let library = |(abi, level, shown): (i32, &str, bool)| {
            let symbols = if shown { "-DWITH_DATA" } else { "-fvisibility-inlines-hidden" };
            let name = format!("dual-{abi}{level}{symbols}.so");
            let abi = format!("-D_GLIBCXX_USE_CXX11_ABI={abi}");
            (compiled("dual.cc", &name, &header, &[&abi, level, symbols, "-s"]), shown)
        };
        variants.into_iter().map(library).collect()
    });
    &LIBRARIES
}

fn declare(library: &str, function: &str) -> Declaration {
    Declaration::new("aot_dual", format!("{library}:{function}"))
        .unlisted()
        .input("x")
        .output("y")
        .attribute("flag", true)
        .attribute("a_number_with_a_name_that_is_rather_long", -(1i64 << 40))
        .attribute("real", 0.5)
        .attribute("short", "brief")
        .attribute("long", LONG)
        .attribute("empty", "")
        .attribute("ints", vec![1i64, -2, 3])
        .attribute("floats", vec![0.5, -1.25])
        .attribute("int_lists", vec![vec![1i64, 2], vec![], vec![3]])
        .attribute("float_lists", vec![vec![1.5], vec![2.5, 3.5]])
}

fn told(declaration: Declaration) -> Result<String> {
    let out = declaration.declare()?.call(&[&Tensor::of(&[1.0f32])])?;
    let bytes: Vec<u8> = out.to_vec::<u8>()?.into_iter().take_while(|byte| *byte != 0).collect();
    Ok(String::from_utf8(bytes).unwrap())
}

fn run(library: &str, function: &str) -> Result<String> {
    told(declare(library, function).output_shape([256]).output_dtype(DType::U8))
}

#[test]
fn attributes_of_every_type_arrive() -> Result<()> {
    for (library, shown) in libraries() {
        for (function, expected) in [
            ("Flag", "true"),
            ("Number", "-1099511627776"),
            ("Real", "0.500000"),
            ("Words", LONG),
            ("Ints", "[1 -2 3]"),
            ("Floats", "[0.500000 -1.250000]"),
            ("IntLists", "[[1 2][][3]]"),
            ("FloatLists", "[[1.500000][2.500000 3.500000]]"),
            ("Has", "yes"),
            ("Stubborn", "0.500000"),
        ] {
            assert_eq!(run(library, function)?, expected, "{function} of {library}");
        }
        if *shown {
            let expected = format!(
                "true -1099511627776 0.500000 brief|{LONG}| [1 -2 3][0.500000 -1.250000] [[1 2][][3]] \
                 [[1.500000][2.500000 3.500000]] yes 3"
            );
            assert_eq!(run(library, "Echo")?, expected, "{library}");
        }
        let seen = inspect(Path::new(library))?;
        assert_eq!(seen.interface, shown.then_some(Interface::DualAbi), "{library}");
        assert_eq!(seen.problems, [""; 0], "{library}");
    }
    Ok(())
}

#[test]
fn the_functions_beside_a_kernel_get_theirs() -> Result<()> {
    for (library, _) in libraries() {
        let beside = || declare(library, "Beside").attribute_at_call("size", AttrType::Int).declare();
        let call = |size: i64| beside()?.call_with(&[&Tensor::of(&[1.0f32])], &[("size", size.into())]);
        assert_eq!(call(300)?[0].shape(), [300], "{library}");
        assert_eq!(call(256)?[0].to_vec::<u8>()?[..8], *b"beside 3", "{library}");
    }
    Ok(())
}

#[test]
fn mistakes_in_attributes_are_told() {
    for (library, _) in libraries() {
        let error = run(library, "Nope").unwrap_err().to_string();
        assert!(error.contains("asks for the attribute `nope`, which is not declared"), "{error}");
        let error = run(library, "Wrong").unwrap_err().to_string();
        assert!(error.contains("reads the attribute `short` as int, but it is str"), "{error}");
        let error = run(library, "Deletes").unwrap_err().to_string();
        assert!(error.contains("deleted the AotExtra that it was given"), "{error}");
    }
}

/// Guards and poisons, and a process of its own.
#[test]
fn switches_do_the_same_as_for_others() -> Result<()> {
    let (library, _) = libraries().last().unwrap();
    let real = || declare(library, "Real").output_shape([256]).output_dtype(DType::U8);
    assert_eq!(told(real().check(true))?, "0.500000");
    assert_eq!(told(real().sandbox(true))?, "0.500000");
    assert_eq!(told(real().check(true).sandbox(true))?, "0.500000");
    Ok(())
}
