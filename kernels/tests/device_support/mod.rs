//! Functions of the device library beside their twins: compiled together for the host, called with the same numbers.

#![allow(dead_code, reason = "each test uses a part")]

pub mod arrays;
pub mod launch;
pub mod numbers;

use std::ffi::c_void;
use std::path::{Path, PathBuf};

use libloading::Library;
use opsmith_kernels::device::HEADERS;

use numbers::{Bits, Number};

/// Random values for each function and type.
const RANDOM: usize = 100_000;

/// How far a result may be from its twin's, in units in the last place of numbers not below `floor`.
#[derive(Clone, Copy)]
pub struct Allowed {
    pub units: f64,
    pub floor: f64,
}

/// The same bits, NaN's apart.
pub const EXACT: Allowed = units(0);

/// As many units in the last place.
pub const fn units(units: u32) -> Allowed {
    Allowed { units: units as f64, floor: 0.0 }
}

/// A function of the device library with one type of arguments.
pub struct Case {
    /// The exported function's name.
    symbol: String,
    /// Its definition.
    text: String,
    compare: Box<dyn Fn(Entry) -> Result<f64, String>>,
}

/// An exported function: a count, arrays of the arguments (those that it has), an array of results.
type Entry = unsafe extern "C" fn(usize, *const c_void, *const c_void, *const c_void, *mut c_void);

/// The calls of a function with all its arguments' values.
fn case<T: Number, R: Number>(
    function: &str,
    arguments: Vec<Vec<T>>,
    results: Vec<R>,
    allowed: impl Fn(&[T], R) -> Allowed + 'static,
) -> Case {
    let symbol = format!("{}_{}_{}", function.replace(|c: char| !c.is_alphanumeric(), "_"), T::NAME, R::NAME);
    let pointers = ["a", "b", "c"].map(|name| format!("const {} *{name}", T::NAME)).join(", ");
    let list = ["a[i]", "b[i]", "c[i]"][..arguments.len()].join(", ");
    let text = format!(
        "extern \"C\" void {symbol}(unsigned long count, {pointers}, {} *out) {{ (void)a, (void)b, (void)c; \
         for (unsigned long i = 0; i < count; ++i) out[i] = {function}({list}); }}\n",
        R::NAME
    );
    let compare = move |entry: Entry| {
        let address =
            |index: usize| arguments.get(index).map_or(std::ptr::null(), |values| values.as_ptr().cast());
        let mut found = results.clone();
        // SAFETY: the function takes as many arrays of that type; all have the length of `results`.
        unsafe { entry(results.len(), address(0), address(1), address(2), found.as_mut_ptr().cast()) };
        let mut largest = 0f64;
        for (index, (&found, &wanted)) in found.iter().zip(&results).enumerate() {
            let inputs: Vec<T> = arguments.iter().map(|values| values[index]).collect();
            let allowed = allowed(&inputs, wanted);
            let distance = found.distance(wanted, allowed.floor);
            if distance > allowed.units {
                return Err(format!("{inputs:?} gives {found:?} instead of {wanted:?}: {distance} units"));
            }
            largest = largest.max(distance);
        }
        Ok(largest)
    };
    Case { symbol, text, compare: Box::new(compare) }
}

/// Seeds differ, so that the arguments of one call do.
fn random<T: Number>(seed: u64) -> impl Iterator<Item = T> {
    let mut bits = Bits(seed);
    (0..RANDOM).map(move |_| T::random(&mut bits))
}

/// A function of one number: every special value, and random ones.
pub fn unary<T: Number, R: Number>(function: &str, twin: fn(T) -> R, allowed: Allowed) -> Case {
    let values: Vec<T> = T::special().into_iter().chain(random(1)).collect();
    let results = values.iter().map(|&x| twin(x)).collect();
    case(function, vec![values], results, move |_, _| allowed)
}

/// A function of two numbers: every pair of special values, and random pairs.
pub fn binary<T: Number, R: Number>(function: &str, twin: fn(T, T) -> R, allowed: Allowed) -> Case {
    conditioned(function, twin, move |_, _| allowed)
}

/// The same with a distance that depends on the arguments and the result.
pub fn conditioned<T: Number, R: Number>(
    function: &str,
    twin: fn(T, T) -> R,
    allowed: impl Fn(&[T], R) -> Allowed + 'static,
) -> Case {
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for a in T::special() {
        for b in T::special() {
            first.push(a);
            second.push(b);
        }
    }
    first.extend(random::<T>(1));
    second.extend(random::<T>(2));
    let results = first.iter().zip(&second).map(|(&a, &b)| twin(a, b)).collect();
    case(function, vec![first, second], results, allowed)
}

/// A function of three numbers: random triples, of which every fourth number is a special one.
pub fn ternary<T: Number, R: Number>(function: &str, twin: fn(T, T, T) -> R, allowed: Allowed) -> Case {
    let special = T::special();
    let mut bits = Bits(4);
    let mut values = |seed| -> Vec<T> {
        let choose = |value| {
            let next = bits.next();
            if next.is_multiple_of(4) { special[(next >> 8) as usize % special.len()] } else { value }
        };
        random(seed).map(choose).collect()
    };
    let (first, second, third) = (values(1), values(2), values(3));
    let results = (0..RANDOM).map(|i| twin(first[i], second[i], third[i])).collect();
    case(function, vec![first, second, third], results, move |_, _| allowed)
}

/// A folder for one test of this program.
fn folder(name: &str) -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(program.file_stem().unwrap()).join(name);
    _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Compiles the library with a text after it.
#[track_caller]
pub fn compiled(name: &str, text: &str) -> Library {
    let folder = folder(name);
    let source = folder.join("kernels.cc");
    std::fs::write(&source, [&HEADERS.concat(), text, "\nSTANDIN_TABLE()\n"].concat()).unwrap();
    let library = folder.join("libkernels.so");
    let header = opsmith_stand_in::emulation().display().to_string();
    let flags = ["-Werror", "-ffp-contract=off", "-include", &header];
    opsmith_stand_in::compile(&source.display().to_string(), &library, &flags);
    // SAFETY: the library has no initialisers.
    unsafe { Library::new(&library) }.unwrap()
}

/// Compares all cases; the error names each function that differs. With `DEVICE_MATH_SHOW`, the distances are printed.
#[track_caller]
pub fn check(name: &str, cases: Vec<Case>) {
    let definitions: String = cases.iter().map(|case| &*case.text).collect();
    let library = compiled(name, &format!("namespace opsmith {{\n{definitions}}}\n"));
    let show = std::env::var_os("DEVICE_MATH_SHOW").is_some();
    let mut failures = Vec::new();
    for case in &cases {
        // SAFETY: `case` gave the function this type.
        let entry = unsafe { library.get::<Entry>(case.symbol.as_bytes()) }.unwrap();
        match (case.compare)(*entry) {
            Ok(largest) if show => println!("{} {largest}", case.symbol),
            Ok(_) => {}
            Err(message) => failures.push(format!("{}: {message}", case.symbol)),
        }
    }
    assert!(failures.is_empty(), "{} of {} differ:\n{}", failures.len(), cases.len(), failures.join("\n"));
}
