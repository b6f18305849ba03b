//! Which file is loaded, and in which process: the one that was checked, and never this one if the sandbox is on.

mod aot_support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use aot_support::compiled;
use opsmith::{DType, Tensor};
use opsmith_aot::{Declaration, inspect};

/// The process started by the tests below: looks into a library, and calls its kernel.
#[test]
fn worker() {
    let Ok(kernel) = std::env::var("AOT_WORKER") else { return };
    println!("PROCESS {}", std::process::id());
    if let Ok(library) = std::env::var("AOT_WORKER_INSPECTS") {
        match inspect(Path::new(&library)) {
            Ok(seen) => println!("SEEN {:?} {:?}", seen.kernels, seen.problems),
            Err(error) => println!("FAILED {error}"),
        }
        return;
    }
    let declaration = Declaration::new("aot_loaded", &kernel).input("x").output("y");
    let op = declaration.output_shape([3]).declare().expect("it is right");
    println!("INFERS {:?}", op.infers_dtypes());
    let result = op.load().and_then(|()| op.call(&[&Tensor::of(&[1.0f32, 2.0, 3.0])]));
    match result {
        Ok(out) => println!("RESULT {} {:?}", out.dtype(), out.to_vec::<f32>().expect("it has floats")),
        Err(error) => println!("FAILED {error}"),
    }
}

struct Place {
    folder: PathBuf,
}

impl Place {
    fn new(name: &str) -> Place {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("aot-loading-{name}"));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Place { folder: fs::canonicalize(folder).unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        let path = self.folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    /// A library that does something when it is loaded.
    fn library(&self, name: &str, loaded: &str) -> PathBuf {
        let made = format!("aot-loading-{}.so", loaded.replace(|c: char| !c.is_alphanumeric(), "-"));
        let path = self.path(name);
        fs::copy(compiled("initialisers.cc", &made, ".", &[&format!("-DLOADED={loaded}")]), &path).unwrap();
        path
    }

    fn command(&self, kernel: &str) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "worker", "--nocapture", "--test-threads=1"]).current_dir(&self.folder);
        command.env("AOT_WORKER", kernel).env("OPSMITH_CACHE_DIR", self.folder.join("cache"));
        command.env("AOT_DIARY", self.folder.join("diary"));
        for switch in ["OPSMITH_CHECK", "OPSMITH_AOT_SANDBOX", "OPSMITH_AOT_RELOAD", "OPSMITH_AOT_ALLOW"] {
            command.env_remove(switch);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// The processes that have loaded a library.
    fn loaders(&self) -> Vec<String> {
        let diary = fs::read_to_string(self.folder.join("diary")).unwrap_or_default();
        diary.lines().map(str::to_owned).collect()
    }
}

/// The output of a process, which must end by itself within a time limit.
#[track_caller]
fn told(mut command: Command) -> String {
    let mut child = command.spawn().unwrap();
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
            panic!("it hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&stdout).into_owned();
    assert!(status.success(), "{status}: {text}{}", String::from_utf8_lossy(&stderr));
    text
}

/// The number of the process that printed it.
fn process(text: &str) -> &str {
    text.lines().find_map(|line| line.split_once("PROCESS ")).unwrap().1
}

/// A bare name is a file of this folder, not another of that name along the loader's path.
#[test]
fn a_bare_name_is_the_file_that_was_checked() {
    let place = Place::new("bare");
    place.library("good/mine.so", "(void)0");
    place.library("evil/mine.so", "std::puts(\"EVIL\"), std::fflush(stdout)");
    let run = |allow: Option<&str>, kernel: &str| {
        let mut command = place.command(kernel);
        command.current_dir(place.folder.join("good")).env("LD_LIBRARY_PATH", place.folder.join("evil"));
        allow.map(|folder| command.env("OPSMITH_AOT_ALLOW", folder));
        told(command)
    };
    let good = place.folder.join("good").display().to_string();
    for allow in [None, Some(good.as_str()), Some(".")] {
        for kernel in ["mine.so:F", "./mine.so:F", "../good/mine.so:F"] {
            let text = run(allow, kernel);
            assert!(text.contains("RESULT float32 [1.0, 2.0, 3.0]") && !text.contains("EVIL"), "{text}");
        }
    }
    // A name that is only along the loader's path is no file.
    let mut command = place.command("mine.so:F");
    command.env("LD_LIBRARY_PATH", place.folder.join("evil"));
    let text = told(command);
    assert!(text.contains("cannot read mine.so: No such file") && !text.contains("EVIL"), "{text}");
}

/// Links are followed before folders are compared, wherever they stand.
#[test]
fn links_do_not_lead_out_of_the_allowed_folders() {
    let place = Place::new("links");
    place.library("out/mine.so", "(void)0");
    place.library("in/own.so", "(void)0");
    fs::write(place.path("out/k.cc"), "extern \"C\" int F() { return 0; }\n").unwrap();
    let link = |to: &str, from: &str| std::os::unix::fs::symlink(to, place.path(from)).unwrap();
    link("../out/mine.so", "in/link.so");
    link("../out", "in/folder");
    link("../out/k.cc", "in/k.cc");
    link("own.so", "in/inside.so");
    link("in", "other");
    let run = |kernel: &str| {
        let mut command = place.command(kernel);
        command.env("OPSMITH_AOT_ALLOW", place.folder.join("in"));
        told(command)
    };
    for kernel in ["in/link.so:F", "in/folder/mine.so:F", "in/k.cc:F", "in/../out/mine.so:F", "out/mine.so:F"]
    {
        let text = run(kernel);
        assert!(text.contains("is outside the folders that kernels may be loaded from"), "{kernel}: {text}");
    }
    assert_eq!(place.loaders(), [""; 0]);
    for kernel in ["in/own.so:F", "in/inside.so:F", "other/own.so:F", "out/../in/own.so:F"] {
        let text = run(kernel);
        assert!(text.contains("RESULT"), "{kernel}: {text}");
    }
}

/// For any behaviour of a library at load time, this process goes on, and has not loaded it.
#[test]
fn the_sandbox_loads_nothing_here() {
    let place = Place::new("sandbox");
    for (loaded, expected) in [
        ("std::abort()", "crashed with signal 6 (SIGABRT"),
        ("_exit(0)", "ended its process with exit status 0"),
        ("std::exit(7)", "ended its process with exit status 7"),
        ("raise(SIGKILL)", "crashed with signal 9"),
        ("Hang()", "did not return within 0.5 s, and was ended"),
        // A process that goes on keeps the pipe open when the one that was waited for dies.
        ("if(fork()==0)Hang();else std::abort()", "crashed with signal 6"),
        ("if(fork()==0)Hang()", "RESULT float32 [1.0, 2.0, 3.0]"),
        ("fork()", "RESULT float32 [1.0, 2.0, 3.0]"),
        ("if(fork()!=0)_exit(3)", "ended its process with exit status 3"),
        ("(void)0", "RESULT float32 [1.0, 2.0, 3.0]"),
    ] {
        let library = place.library("mine.so", loaded);
        let mut command = place.command(&format!("{}:F", library.display()));
        command.env("OPSMITH_AOT_SANDBOX", "1").env("OPSMITH_AOT_TIMEOUT", "0.5");
        let start = Instant::now();
        let text = told(command);
        assert!(text.contains(expected) && text.contains("INFERS Ok(true)"), "{loaded}: {text}");
        assert!(start.elapsed() < Duration::from_secs(20), "{loaded}");
        let loaders = place.loaders();
        assert!(
            !loaders.is_empty() && !loaders.iter().any(|id| id == process(&text)),
            "{loaded}: {loaders:?}"
        );
        fs::remove_file(place.folder.join("diary")).unwrap();
    }
}

/// Nor does looking into a library load it here.
#[test]
fn a_library_is_looked_into_from_outside() {
    let place = Place::new("inspected");
    for (loaded, expected) in [
        ("std::abort()", "crashed with signal 6 (SIGABRT"),
        ("_exit(0)", "ended its process with exit status 0"),
        ("Hang()", "did not return within 0.5 s"),
        ("(void)0", " []"),
    ] {
        let library = place.library("mine.so", loaded);
        let mut command = place.command("");
        command.env("AOT_WORKER_INSPECTS", &library).env("OPSMITH_AOT_TIMEOUT", "0.5");
        let text = told(command);
        assert!(
            text.contains("SEEN [KernelFacts { name: \"F\"") && text.contains(expected),
            "{loaded}: {text}"
        );
        let loaders = place.loaders();
        assert!(!loaders.iter().any(|id| id == process(&text)), "{loaded}: {loaders:?}");
        _ = fs::remove_file(place.folder.join("diary"));
    }
}

/// Files that are not libraries, or truncated ones.
#[test]
fn what_cannot_be_read_is_refused_at_once() {
    let place = Place::new("unreadable");
    let pipe = place.path("pipe.so");
    let status = Command::new("mkfifo").arg(&pipe).arg(place.path("pipe.cc")).status().unwrap();
    assert!(status.success());
    let whole = fs::read(place.library("whole.so", "(void)0")).unwrap();
    fs::write(place.path("cut.so"), &whole[..whole.len() / 3]).unwrap();
    fs::write(place.path("empty.so"), "").unwrap();
    fs::File::create(place.path("huge.so")).unwrap().set_len(1 << 40).unwrap();
    fs::create_dir_all(place.path("folder.so")).unwrap();
    for (file, expected) in [
        ("/dev/zero", "/dev/zero is a device, no file"),
        ("/dev/tty.cc", "cannot read /dev/tty.cc"),
        ("pipe.so", "pipe.so is a pipe, no file"),
        ("pipe.cc", "pipe.cc is a pipe, no file"),
        ("folder.so", "folder.so is a folder, no file"),
        ("huge.so", "huge.so has more than 1024 MiB"),
        ("empty.so", "it is no shared object"),
        ("cut.so", "it was cut off"),
    ] {
        let text = told(place.command(&format!("{file}:F")));
        assert!(text.contains("FAILED") && text.contains(expected), "{file}: {text}");
        let mut command = place.command("");
        command.env("AOT_WORKER_INSPECTS", file);
        let text = told(command);
        assert!(text.contains("FAILED") && text.contains(expected), "{file}: {text}");
    }
}

/// A kernel's functions are those of its library, not those of libraries that it is linked with.
#[test]
fn functions_beside_a_kernel_are_its_own() {
    let place = Place::new("beside");
    let source = place.path("other.cc");
    fs::write(&source, "extern \"C\" int FInit(int *, long **, const char **, void *) { return 9; }\n")
        .unwrap();
    let other = compiled(source.to_str().unwrap(), "libaot-other.so", ".", &[]);
    let flags = ["-DLOADED=(void)0", "-Wl,--no-as-needed", &other, "-Wl,-rpath,$ORIGIN"];
    let library = compiled("initialisers.cc", "aot-linked.so", ".", &flags);
    let declaration =
        Declaration::new("aot_linked", format!("{library}:F")).unlisted().input("x").output("y");
    let op = declaration.output_shape([1]).output_dtype(DType::F32).declare().unwrap();
    assert_eq!(op.call(&[&Tensor::of(&[4.0f32])]).unwrap().to_vec::<f32>().unwrap(), [4.0]);
}
