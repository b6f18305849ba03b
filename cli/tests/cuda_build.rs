//! `opsmith cuda`, run as a process: archives by the stand-in for NVRTC and by a script in nvcc's place; with the real nvcc if
//! asked for.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use support::{Run, opsmith, opsmith_with};

const TEXT: &str = "#define SCALE(factor) \\
  extern \"C\" __global__ void opsmith_kernel(float *numbers) { numbers[threadIdx.x] *= factor; }
SCALE(2)
";

/// A folder of this program, empty.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cuda-build-{name}"));
    _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

static NVRTC: LazyLock<String> = LazyLock::new(|| {
    let folder = folder("nvrtc");
    opsmith_stand_in::nvrtc(&folder);
    folder.join("libnvrtc.so.13").display().to_string()
});

/// Texts as a program keeps them, one under a name with the key.
fn texts(name: &str) -> PathBuf {
    let folder = folder(name);
    fs::write(folder.join("scale.cuh.0123456789abcdef0123456789abcdef.cu"), TEXT).unwrap();
    fs::write(folder.join("other.cu"), TEXT.replace("(2)", "(3)")).unwrap();
    // The same text again.
    fs::write(folder.join("twice.cu"), TEXT).unwrap();
    folder
}

/// Runs `opsmith cuda` with NVRTC alone.
fn by_nvrtc(arguments: &[&str]) -> Run {
    let variables =
        [("OPSMITH_NVRTC", NVRTC.as_str()), ("OPSMITH_NVCC", "/nonexistent/nvcc"), ("CXX", "/usr/bin/c++")];
    opsmith_with(&variables, &[&["cuda"], arguments].concat())
}

#[track_caller]
fn fails(run: &Run, status: i32, parts: &[&str]) {
    assert_eq!(run.status, Some(status), "{}{}", run.stdout, run.stderr);
    for part in parts {
        assert!(run.stderr.contains(part), "no `{part}` in: {}", run.stderr);
    }
}

#[test]
fn an_archive_is_built_listed_and_verified() {
    let texts = texts("built");
    let file = texts.join("kernels.images").display().to_string();
    let texts = texts.display().to_string();
    let targets = ["--arch", "sm_90,sm_90a,sm_80", "--ptx", "compute_75"];
    let run =
        by_nvrtc(&[&["build", &texts, "-o", &file, "--compiler", "nvrtc", "--list"], &targets[..]].concat());
    run.assert_parts(&[
        "other (SCALE(3)): sm_80, ",
        "other (SCALE(3)): sm_90, ",
        "other (SCALE(3)): sm_90a, ",
        "other (SCALE(3)): compute_75, ",
        "scale.cuh (SCALE(2)): sm_80, ",
        "kernels.images: 2 kernels by NVRTC 13.0 in ",
        "sm_80: 2 images, ",
        "sm_90a: 2 images, ",
        "compute_75: 2 images, ",
        " compressed",
    ]);
    assert_eq!(run.status, Some(0), "{}", run.stderr);
    let run = by_nvrtc(&["list", &file, "--verify"]);
    run.assert_parts(&["scale.cuh (SCALE(2)): sm_90, ", "2 kernels\n", "all images are whole"]);
    assert_eq!(run.status, Some(0), "{}", run.stderr);

    let whole = fs::read(&file).unwrap();
    let mut damaged = whole.clone();
    damaged[100] ^= 1;
    fs::write(&file, &damaged).unwrap();
    let run = by_nvrtc(&["list", &file, "--verify"]);
    assert_eq!(run.status, Some(1), "{}", run.stderr);
    assert!(run.stdout.contains("is damaged") && !run.stdout.contains("all images"), "{}", run.stdout);
    fs::write(&file, &whole[..whole.len() - 1]).unwrap();
    fails(&by_nvrtc(&["list", &file]), 2, &["kernels.images is damaged: it is shorter than its parts"]);
    opsmith(&["cuda", "list", "Cargo.toml"]).assert(
        2,
        "",
        "error: Cargo.toml is no archive of images\n  help: make it with this version: opsmith cuda build TEXTS -o FILE\n",
    );
}

#[test]
fn each_kernel_that_does_not_compile_is_named() {
    let texts = texts("mistakes");
    fs::write(texts.join("wrong.cu"), TEXT.replace("*= factor", "= undeclared_name")).unwrap();
    fs::write(texts.join("nothing.cu"), "// A text without a kernel.\n").unwrap();
    let file = texts.join("kernels.images");
    let (texts, path) = (texts.display().to_string(), file.display().to_string());
    let run = by_nvrtc(&["build", &texts, "-o", &path, "--arch", "sm_90", "--compiler", "nvrtc"]);
    let parts = [
        "wrong (SCALE(2)) for sm_90:",
        "undeclared_name",
        "nothing (// A text without a kernel.) for sm_90:\nit defines no kernel `opsmith_kernel`",
        "error: 2 failures of 4 compilations by NVRTC 13.0",
        "is not written",
    ];
    fails(&run, 1, &parts);
    assert!(!file.exists());
}

#[test]
fn mistakes_of_a_call_are_named() {
    let texts = texts("calls");
    let none = folder("no-texts").display().to_string();
    let texts = texts.display().to_string();
    let build =
        |texts: &str, more: &[&str]| by_nvrtc(&[&["build", texts, "-o", "/nonexistent/a"], more].concat());
    fails(&build(&texts, &[]), 2, &["no architecture is named: write --arch sm_90"]);
    fails(&build(&texts, &["--arch", "compute_75"]), 2, &["--arch compute_75", "write sm_75"]);
    fails(&build(&texts, &["--ptx", "sm_75"]), 2, &["--ptx sm_75", "write compute_75"]);
    fails(&build(&texts, &["--arch", "90"]), 2, &["`90` is no architecture"]);
    fails(&build(&none, &["--arch", "sm_90"]), 2, &["has no texts (*.cu)", "OPSMITH_CUDA_KEEP_TEXT"]);
    let nvcc = ["--arch", "sm_90", "--nvcc", "/nonexistent/nvcc"];
    fails(&build(&texts, &nvcc), 2, &["cannot run /nonexistent/nvcc"]);
    let nvcc = ["--arch", "sm_90", "--nvcc", "/usr/bin/true"];
    fails(&build(&texts, &nvcc), 2, &["/usr/bin/true --version names no version"]);
    let nvcc = ["--arch", "sm_90", "--compiler", "nvcc"];
    fails(&build(&texts, &nvcc), 2, &["OPSMITH_NVCC names `/nonexistent/nvcc`, which is no program"]);
    let old = ["--arch", "sm_70", "--compiler", "nvrtc"];
    fails(&build(&texts, &old), 2, &["NVRTC 13.0 does not know sm_70: it knows sm_75, sm_80, "]);
    let exact = ["--arch", "sm_75a", "--compiler", "nvrtc"];
    fails(&build(&texts, &exact), 2, &["`sm_75a` is no architecture", "sm_90a for code with features"]);
    let exact = ["--arch", "sm_99a", "--compiler", "nvrtc"];
    fails(&build(&texts, &exact), 2, &["NVRTC 13.0 does not know sm_99a: it knows sm_75, sm_80, "]);
    let write = ["--arch", "sm_90", "--compiler", "nvrtc"];
    fails(&build(&texts, &write), 2, &["cannot write /nonexistent/a"]);
}

/// A script in nvcc's place, which notes its arguments.
fn script(folder: &Path) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let script = folder.join("nvcc");
    let text = "#!/bin/sh
if [ \"$1\" = --version ]; then
  echo 'Cuda compilation tools, release 13.0, V13.0.88'
  exit 0
fi
if [ \"$1\" = --list-gpu-code ]; then
  echo sm_90
  exit 0
fi
if [ \"$1\" = --list-gpu-arch ]; then
  printf 'compute_75\\ncompute_90\\n'
  exit 0
fi
echo \"$@\" >>\"$(dirname \"$0\")/calls\"
while [ \"$1\" != -o ]; do shift; done
echo \"ptxas info    : Used 24 registers, 128 bytes smem\" >&2
if grep -q 'SCALE(3)' \"$3\"; then
  head -n 1 \"$3\" >&2
  exit 1
fi
echo opsmith_kernel >\"$2\"
";
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    script
}

#[test]
fn nvcc_compiles_where_it_is_found() {
    let texts = texts("script");
    let nvcc = script(&texts).display().to_string();
    let file = texts.join("kernels.images").display().to_string();
    let one = texts.join("twice.cu").display().to_string();
    let build = ["cuda", "build", &one, "-o", &file, "--arch", "sm_90", "--ptx", "compute_75", "--list"];
    let run = opsmith_with(&[("OPSMITH_NVCC", &nvcc)], &build);
    run.assert_parts(&[
        "twice (SCALE(2)): sm_90, 15 bytes, 24 registers, 128 bytes shared\n",
        "twice (SCALE(2)): compute_75, 15 bytes\n",
        "1 kernel by nvcc 13.0.88 in ",
        "sm_90: 1 images, 0.00 MB; registers: 24 in the middle, 24 at most; 0 kernels spill",
    ]);
    let calls = fs::read_to_string(texts.join("calls")).unwrap();
    for part in [
        "--gpu-architecture=sm_90 --std=c++17 --fmad=false",
        "-cubin",
        "--gpu-architecture=compute_75",
        "-ptx",
    ] {
        assert!(calls.contains(part), "{calls}");
    }
    let new = ["cuda", "build", &one, "-o", &file, "--ptx", "compute_100", "--nvcc", &nvcc];
    fails(
        &opsmith_with(&[], &new),
        2,
        &["nvcc 13.0.88 does not know compute_100: it knows compute_75, compute_90"],
    );
    // Messages name the source.
    let all = texts.display().to_string();
    let run = opsmith_with(&[], &["cuda", "build", &all, "-o", &file, "--arch", "sm_90", "--nvcc", &nvcc]);
    fails(
        &run,
        1,
        &["other (SCALE(3)) for sm_90:", "#line 1 \"other\"", "1 failure of 2 compilations by nvcc 13.0.88"],
    );
}

/// Loops for all ways through memory, and movement.
#[test]
fn texts_are_completed() {
    let texts = folder("completed");
    let of = "OPSMITH_LOOP(opsmith_kernel, opsmith::Loop0<opsmith::dtype::F32>";
    fs::write(texts.join("exp.cu"), format!("// The text of a loop.\n{of}, contiguous)\n")).unwrap();
    let nvcc = script(&texts).display().to_string();
    let file = texts.join("kernels.images").display().to_string();
    let all = texts.display().to_string();
    let build =
        ["cuda", "build", &all, "-o", &file, "--arch", "sm_90", "--nvcc", &nvcc, "--complete", "--list"];
    let run = opsmith_with(&[], &build);
    let form = |form: &str| format!("exp ({of}, {form})): sm_90");
    run.assert_parts(&[
        &form("contiguous"),
        &form("strided32"),
        &form("strided64"),
        "movement.cuh (OPSMITH_ACCUMULATE(opsmith_kernel, ",
        "movement.cuh (OPSMITH_CONVERT(opsmith_kernel, bf16, c32, u32)): sm_90",
        "kernels.images: 690 kernels by nvcc",
    ]);
}

/// With the compiler that `OPSMITH_NVCC` names, of CUDA 13.
#[test]
#[ignore = "needs nvcc, which `.ci/run` installs before it calls it"]
fn the_real_compiler_makes_an_archive() {
    let texts = texts("real");
    let file = texts.join("kernels.images").display().to_string();
    let all = texts.display().to_string();
    let build = [
        "cuda",
        "build",
        &all,
        "-o",
        &file,
        "--arch",
        "sm_90,sm_90a,sm_120",
        "--ptx",
        "compute_75",
        "--list",
    ];
    let run = opsmith_with(&[], &build);
    run.assert_parts(&[
        "scale.cuh (SCALE(2)): sm_90, ",
        " registers, 0 bytes shared",
        "2 kernels by nvcc 13.",
    ]);
    assert_eq!(run.status, Some(0), "{}", run.stderr);
    opsmith_with(&[], &["cuda", "list", &file, "--verify"]).assert_parts(&["all images are whole"]);
}

const MANIFEST: &str = "[package]
name = \"embeds\"
version = \"0.1.0\"
edition = \"2024\"

[workspace]

[dependencies]
opsmith-cuda = { path = \"{root}/runtime/cuda\" }

";

const PROGRAM: &str = "//! Prints the archives that are part of it.

fn main() {
    for archive in opsmith_cuda::images::archives() {
        println!(\"{}: {} kernels\", archive.place(), archive.kernels().len());
    }
}
";

#[test]
#[ignore = "compiles a crate: a minute; `.ci/run` calls it"]
fn a_build_embeds_an_archive() {
    let texts = texts("embedded");
    let file = texts.join("kernels.images").display().to_string();
    let all = texts.display().to_string();
    let run = by_nvrtc(&["build", &all, "-o", &file, "--ptx", "compute_75", "--compiler", "nvrtc"]);
    assert_eq!(run.status, Some(0), "{}", run.stderr);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let crate_folder = folder("embedding-crate");
    fs::create_dir_all(crate_folder.join("src")).unwrap();
    let workspace = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let profiles = &workspace[workspace.find("[profile.dev]").unwrap()..];
    let manifest = MANIFEST.replace("{root}", &root.display().to_string()) + profiles;
    fs::write(crate_folder.join("Cargo.toml"), manifest).unwrap();
    fs::copy(root.join("Cargo.lock"), crate_folder.join("Cargo.lock")).unwrap();
    fs::write(crate_folder.join("src/main.rs"), PROGRAM).unwrap();
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let run = |embed: &str| {
        let mut command = Command::new(env!("CARGO"));
        command.args(["run", "--profile", "test", "--quiet", "--target-dir"]).arg(target);
        let output = command.current_dir(&crate_folder).env("OPSMITH_CUDA_EMBED", embed).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&output.stdout), text(&output.stderr))
    };
    assert_eq!(run(&file).0, "embedded in opsmith-cuda: 2 kernels\n");
    assert_eq!(run("").0, "");
    let manifest = root.join("Cargo.toml").display().to_string();
    for (embed, reason) in [
        ("kernels.images", "the path must be absolute"),
        ("/nonexistent.images", "it cannot be read"),
        (manifest.as_str(), "it is no archive of images; make one: opsmith cuda build"),
    ] {
        let (_, errors) = run(embed);
        assert!(errors.contains(&format!("OPSMITH_CUDA_EMBED names {embed}: {reason}")), "{errors}");
    }
}
