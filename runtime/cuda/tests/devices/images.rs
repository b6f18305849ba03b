//! Archives of images: the order of the ways to a kernel, their places, damage, refusals.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::LazyLock;

use opsmith_cuda::images::{CompiledImage, ImageTarget, archive, options_for, text_key};
use opsmith_cuda::{Nvrtc, loaded_kernels};

use crate::common::{Part, STAND_INS, done, empty, start, start_of};
use crate::kernels::{compiled, not_compiled};

/// The parts of this file.
pub const PARTS: &[Part] = &[("archived", archived), ("origins", origins), ("nothing", nothing)];

/// The variables of the part that makes an archive: the folder of texts, the file, architectures.
const TEXTS: &str = "CUDA_TEST_TEXTS";
const FILE: &str = "CUDA_TEST_FILE";
const TARGETS: &str = "CUDA_TEST_TARGETS";
/// The variable with the file of the archive that is part of this program.
const REGISTERED: &str = "CUDA_TEST_REGISTERED";

opsmith_cuda::register_images!("images of the test", registered());

/// The bytes of the archive that is part of this program: that of a file, which the tests choose, or one without kernels.
fn registered() -> &'static [u8] {
    let bytes = match std::env::var_os(REGISTERED) {
        Some(file) => fs::read(file).unwrap(),
        None => archive(Vec::new()).unwrap(),
    };
    bytes.leak()
}

/// Compiles the texts of a folder with the stand-in for NVRTC.
fn archived() {
    let nvrtc = Nvrtc::find().unwrap();
    let targets = std::env::var(TARGETS).unwrap();
    let mut images = Vec::new();
    for entry in fs::read_dir(std::env::var_os(TEXTS).unwrap()).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        for target in targets.split(',') {
            let target: ImageTarget = target.parse().unwrap();
            let image = nvrtc.compile("scale.cuh", &text, target, &options_for(target)).unwrap().image;
            images.push(CompiledImage {
                key: text_key(&text),
                name: "scale.cuh".to_owned(),
                line: "SCALE(2)".to_owned(),
                target,
                compiler: "stand-in".to_owned(),
                resources: None,
                image,
            });
        }
    }
    fs::write(std::env::var_os(FILE).unwrap(), archive(images).unwrap()).unwrap();
}

/// Runs a kernel and prints its origin.
fn origins() {
    compiled();
    for kernel in loaded_kernels(0).unwrap() {
        println!("ORIGIN {}: {}", kernel.name, kernel.origin);
    }
}

/// Prints the error where no way leads to the kernel.
fn nothing() {
    println!("ERROR {}", not_compiled());
}

/// The text of the kernel, as a program keeps it.
static KEPT: LazyLock<PathBuf> = LazyLock::new(|| {
    let texts = empty("images-texts");
    done("compiled", &[("OPSMITH_CUDA_KEEP_TEXT", texts.to_str().unwrap())]);
    let names: Vec<String> = fs::read_dir(&texts)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(
        matches!(&names[..], [name] if name.starts_with("scale.cuh.") && name.ends_with(".cu")),
        "{names:?}"
    );
    texts
});

/// A folder with the driver alone.
static DRIVER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = empty("images-driver");
    opsmith_stand_in::driver(&folder);
    for name in ["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"] {
        fs::write(folder.join(name), "no library").unwrap();
    }
    folder
});

/// A folder of images where nothing is kept.
const NO_CACHE: (&str, &str) = ("OPSMITH_CACHE_DIR", "/proc/nonexistent");
const NO_PATH: (&str, &str) = ("PATH", "/nonexistent");

/// An archive of the kernel for these architectures.
fn archive_for(name: &str, targets: &str) -> PathBuf {
    let file = empty(&format!("images-{name}")).join("kernels.images");
    let (texts, path) = (KEPT.to_str().unwrap(), file.to_str().unwrap());
    prints(&start("archived", &STAND_INS, &[(TEXTS, texts), (FILE, path), (TARGETS, targets)]), &[]);
    file
}

/// The output of a part with an archive.
fn with(part: &str, folder: &Path, archive: &Path, variables: &[(&str, &str)]) -> Output {
    let mut all = vec![("OPSMITH_CUDA_IMAGES", archive.to_str().unwrap()), NO_CACHE];
    if folder != STAND_INS.as_path() {
        all.push(NO_PATH);
    }
    all.extend_from_slice(variables);
    start(part, folder, &all)
}

/// Checks that a part ends well and prints some texts.
#[track_caller]
fn prints(output: &Output, texts: &[&str]) -> String {
    let all = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && all.contains("DONE "), "{all}");
    for text in texts {
        assert!(all.contains(text), "no `{text}` in: {all}");
    }
    all
}

#[test]
fn machine_code_comes_before_the_compiler_and_ptx_after_it() {
    let (cubin, ptx) = (archive_for("cubin", "sm_90"), archive_for("ptx", "compute_75,compute_80"));
    let both = archive_for("both", "sm_90,compute_75");
    let origin = |folder: &Path, archive: &Path, origin: &str| {
        let all =
            prints(&with("origins", folder, archive, &[]), &[&format!("scale.cuh (SCALE(2)): {origin}")]);
        assert!(!all.contains("warning"), "{all}");
    };
    for (archive, of_archive) in [(&cubin, "sm_90 of "), (&both, "sm_90 of ")] {
        let place = format!("{of_archive}{}", archive.display());
        origin(&STAND_INS, archive, &place);
        origin(&DRIVER, archive, &place);
    }
    // Code with features of the device's architecture alone comes before that of all of its kind, and fits no other.
    let exact = archive_for("exact", "sm_90,sm_90a,sm_80,sm_100a");
    origin(&DRIVER, &exact, &format!("sm_90a of {}", exact.display()));
    let other = archive_for("exact-other", "sm_100a,sm_90");
    origin(&DRIVER, &other, &format!("sm_90 of {}", other.display()));
    let exact = archive_for("exact-ptx", "compute_90a,compute_75,compute_80");
    origin(&DRIVER, &exact, &format!("compute_90a of {}", exact.display()));
    origin(&STAND_INS, &ptx, "NVRTC");
    // The newest architecture first.
    origin(&DRIVER, &ptx, &format!("compute_80 of {}", ptx.display()));
    // Several archives; a missing one is a warning.
    let paths = format!("/nonexistent.images:{}:{}", ptx.display(), cubin.display());
    let output = with("origins", &DRIVER, Path::new(&paths), &[]);
    let place = format!("sm_90 of {}", cubin.display());
    prints(&output, &[&place, "warning", "the archive of images /nonexistent.images cannot be read"]);
}

#[test]
fn an_archive_is_beside_the_program_or_part_of_it() {
    let cubin = archive_for("places", "sm_90");
    let variables = [NO_CACHE, NO_PATH];
    let registered = (REGISTERED, cubin.to_str().unwrap());
    let output = start("origins", &DRIVER, &[&variables[..], &[registered]].concat());
    prints(&output, &["sm_90 of images of the test"]);

    let folder = empty("images-beside");
    let program = folder.join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let beside = folder.join("opsmith.images");
    fs::copy(&cubin, &beside).unwrap();
    let output = start_of(&program, "origins", &DRIVER, &variables);
    prints(&output, &[&format!("sm_90 of {}", beside.display())]);
    fs::remove_file(&program).unwrap();
}

#[test]
fn the_error_lists_all_that_was_searched() {
    let lists = |archive: &Path, variables: &[(&str, &str)], texts: &[&str]| {
        let texts =
            [&["no compiler for kernels of the device was found", "opsmith cuda build"], texts].concat();
        prints(&with("nothing", &DRIVER, archive, variables), &texts);
    };
    let none = [
        "OPSMITH_CUDA_IMAGES names no archive",
        "opsmith.images does not exist",
        "wanted: scale.cuh (SCALE(2)) for sm_90",
    ];
    lists(Path::new(""), &[], &none);
    let other = archive_for("other", "sm_80,compute_100");
    lists(
        &other,
        &[],
        &[&format!("{}: it has this kernel for sm_80, compute_100, not for sm_90", other.display())],
    );
    let other = archive_for("other-exact", "sm_100a,compute_100a");
    let names = "it has this kernel for sm_100a, compute_100a, not for sm_90";
    lists(&other, &[], &[&format!("{}: {names}", other.display())]);
    let ptx = archive_for("new-ptx", "compute_75");
    let refused = [
        &*format!("{}, compute_75: cannot load", ptx.display()),
        "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
        "warning",
    ];
    lists(&ptx, &[("STANDIN_PTX_VERSION", "80")], &refused);
    // Of other texts.
    let empty_one = empty("images-empty").join("kernels.images");
    fs::write(&empty_one, archive(Vec::new()).unwrap()).unwrap();
    lists(&empty_one, &[], &["none of its 0 kernels is this one"]);
}

#[test]
fn a_damaged_archive_is_a_warning_and_no_obstacle() {
    let cubin = archive_for("damaged", "sm_90");
    let whole = fs::read(&cubin).unwrap();
    let mut index = whole.clone();
    *index.last_mut().unwrap() ^= 1;
    let mut image = whole.clone();
    image[60] ^= 1;
    for (bytes, reason) in [
        (&whole[..whole.len() - 5], "is damaged: it is shorter than its parts"),
        (&index, "is damaged: the hash of its index is another"),
        (&image, "is damaged: "),
        (b"text", "is no archive of images"),
    ] {
        fs::write(&cubin, bytes).unwrap();
        prints(&with("origins", &STAND_INS, &cubin, &[]), &["(SCALE(2)): NVRTC", "opsmith: warning", reason]);
        prints(&with("nothing", &DRIVER, &cubin, &[]), &["no compiler for kernels", "images: ", reason]);
    }
}

#[test]
fn ptx_serves_where_the_compiler_fails() {
    let ptx = archive_for("failing", "compute_75");
    let place = format!("compute_75 of {}", ptx.display());
    let failing = [("STANDIN_NVRTC_FAIL", "11")];
    prints(&with("origins", &STAND_INS, &ptx, &failing), &[&place, "warning", "NVRTC_ERROR_INTERNAL_ERROR"]);
    // A compiler that the user names is meant.
    let named = [("OPSMITH_NVRTC", "/nonexistent/libnvrtc.so")];
    prints(&with("nothing", &STAND_INS, &ptx, &named), &["OPSMITH_NVRTC names /nonexistent/libnvrtc.so"]);
}
