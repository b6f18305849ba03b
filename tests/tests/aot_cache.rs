//! The cache of compiled kernels, tested by separate processes.

mod aot_support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use aot_support::prebuilt;
use opsmith::{DType, Tensor};
use opsmith_aot::Declaration;

/// The process started by the tests below: calls a kernel and prints the outcome.
#[test]
fn worker() {
    let Ok(kernel) = std::env::var("AOT_WORKER") else { return };
    let declaration = Declaration::new("aot_worker", kernel).input("x").output("y");
    let declaration = declaration.output_shape([1]).output_dtype(DType::F32);
    let extra = std::env::var("AOT_WORKER_INPUT").is_ok();
    let declaration = if extra { declaration.optional_input("extra") } else { declaration };
    let damaged = std::env::var("AOT_WORKER_DAMAGES").ok();
    let declaration = if damaged.is_some() { declaration.sandbox(true) } else { declaration };
    let result = declaration.declare().and_then(|op| {
        let mut out = op.call(&[&Tensor::of(&[1.0f32])])?;
        if let Some(object) = damaged {
            fs::write(object, "damaged").unwrap();
            out = op.call(&[&Tensor::of(&[1.0f32])])?;
        }
        Ok((out.to_vec::<f32>()?[0], op.compile_time()?.is_some()))
    });
    match result {
        Ok((value, compiled)) => println!("RESULT {value} {compiled}"),
        Err(error) => println!("FAILED {error}\nEND"),
    }
}

struct Place {
    folder: PathBuf,
}

impl Place {
    fn new(name: &str) -> Place {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("aot-cache-{name}"));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Place { folder }
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    fn command(&self, source: &str) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "worker", "--nocapture", "--test-threads=1"]);
        command.env("AOT_WORKER", format!("{source}:F")).env("OPSMITH_CACHE_DIR", self.folder.join("cache"));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// The kernel's result, and whether the compiler ran.
    #[track_caller]
    fn run(&self, source: &str) -> (f32, bool) {
        result(self.command(source))
    }

    fn objects(&self) -> Vec<PathBuf> {
        let entries =
            fs::read_dir(self.folder.join("cache/aot")).unwrap().flatten().map(|entry| entry.path());
        entries.filter(|path| path.extension().is_some_and(|end| end == "so")).collect()
    }
}

#[track_caller]
fn result(mut command: Command) -> (f32, bool) {
    let output = command.output().unwrap();
    parse(&String::from_utf8_lossy(&output.stdout))
}

#[track_caller]
fn parse(text: &str) -> (f32, bool) {
    let line = text.lines().find_map(|line| line.split_once("RESULT ")).unwrap_or_else(|| panic!("{text}")).1;
    let (value, compiled) = line.split_once(' ').unwrap();
    (value.parse().unwrap(), compiled == "true")
}

#[track_caller]
fn failure(mut command: Command) -> String {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_once("FAILED ").unwrap_or_else(|| panic!("{text}")).1.split_once("\nEND").unwrap().0.to_owned()
}

/// Adds a number; needs no header, so that it compiles in no time.
fn adding(number: &str) -> String {
    format!(
        "extern \"C\" int F(int, void **params, int *, long **, const char **, void *, void *) {{\n  \
         *static_cast<float *>(params[1]) = *static_cast<float *>(params[0]) + {number};\n  return 0;\n}}\n"
    )
}

#[test]
fn a_second_process_starts_without_compiling() {
    let place = Place::new("second");
    let source = place.write("k.cc", &adding("1"));
    assert_eq!(place.run(&source), (2.0, true));
    assert_eq!(place.run(&source), (2.0, false));
    // Nor does it query the compiler, which does not exist here.
    let mut command = place.command(&source);
    command.env("OPSMITH_AOT_TIMEOUT", "1");
    assert_eq!(result(command), (2.0, false));
    let mode = fs::metadata(place.folder.join("cache/aot")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn a_change_of_anything_compiles_again() {
    let place = Place::new("change");
    place.write("number.h", "#define NUMBER 1\n");
    let source = place.write("k.cc", &format!("#include \"number.h\"\n{}", adding("NUMBER")));
    assert_eq!(place.run(&source), (2.0, true));
    // The header alone.
    place.write("number.h", "#define NUMBER 2\n");
    assert_eq!(place.run(&source), (3.0, true));
    // Back again: that is still there.
    place.write("number.h", "#define NUMBER 1\n");
    assert_eq!(place.run(&source), (2.0, false));
    // The source.
    place.write("k.cc", &adding("10"));
    assert_eq!(place.run(&source), (11.0, true));
    // Environment variables of the compiler.
    let mut command = place.command(&source);
    command.env("CPATH", &place.folder);
    assert_eq!(result(command), (11.0, true));
}

#[test]
fn files_of_one_name_do_not_collide() {
    let place = Place::new("names");
    let (a, b) = (place.write("a/k.cc", &adding("1")), place.write("b/k.cc", &adding("2")));
    assert_eq!((place.run(&a).0, place.run(&b).0), (2.0, 3.0));
    // The same content, with another header beside it.
    for (folder, number) in [("c", 3), ("d", 4)] {
        place.write(&format!("{folder}/number.h"), &format!("#define NUMBER {number}\n"));
        let source =
            place.write(&format!("{folder}/k.cc"), &format!("#include \"number.h\"\n{}", adding("NUMBER")));
        assert_eq!(place.run(&source).0, 1.0 + number as f32);
    }
}

#[test]
fn sixteen_processes_at_once() {
    let place = Place::new("sixteen");
    let source = place.write("k.cc", &adding("1"));
    let children: Vec<_> = (0..16).map(|_| place.command(&source).spawn().unwrap()).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert_eq!(parse(&String::from_utf8_lossy(&output.stdout)).0, 2.0);
    }
    assert_eq!(place.objects().len(), 1, "all made the same");
    let left = fs::read_dir(place.folder.join("cache/aot")).unwrap().flatten();
    let left: Vec<_> = left.filter(|entry| entry.file_name().to_string_lossy().starts_with("tmp-")).collect();
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(place.run(&source), (2.0, false));
}

#[test]
fn the_cache_is_bounded_and_private() {
    let place = Place::new("bounded");
    // Each library has about 15 KB, so two fit.
    let run = |number: usize| {
        let source = place.write(&format!("k{number}.cc"), &adding(&number.to_string()));
        let mut command = place.command(&source);
        command.env("OPSMITH_CACHE_SIZE", "40K");
        result(command)
    };
    for number in 0..5 {
        assert_eq!(run(number), (1.0 + number as f32, true));
    }
    assert!(place.objects().len() <= 3, "{:?}", place.objects());
    assert_eq!(run(4), (5.0, false), "the last one is there");
    assert_eq!(run(0), (1.0, true), "the first one is not");

    let folder = place.folder.join("cache/aot");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    let source = place.write("k.cc", &adding("1"));
    let error = failure(place.command(&source));
    assert!(error.contains("can be written by other users") && error.contains("chmod 700"), "{error}");
}

/// Every file of the cache.
fn files(folder: &Path) -> Vec<PathBuf> {
    let paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path()).collect();
    paths.iter().flat_map(|path| if path.is_dir() { files(path) } else { vec![path.clone()] }).collect()
}

/// A kind of damage to a file, by name.
type Damage = (&'static str, fn(&Path));

const DAMAGES: [Damage; 8] = [
    ("cut off", |path| {
        let whole = fs::read(path).unwrap();
        fs::write(path, &whole[..whole.len() / 2]).unwrap();
    }),
    ("one byte less", |path| {
        let whole = fs::read(path).unwrap();
        fs::write(path, &whole[..whole.len().saturating_sub(1)]).unwrap();
    }),
    ("one byte changed", |path| {
        let mut whole = fs::read(path).unwrap();
        let middle = whole.len() / 2;
        if let Some(byte) = whole.get_mut(middle) {
            *byte ^= 0x40;
        }
        fs::write(path, &whole).unwrap();
    }),
    ("empty", |path| fs::write(path, "").unwrap()),
    ("something else", |path| fs::write(path, vec![0xA5; 100_000]).unwrap()),
    ("a folder", |path| {
        fs::remove_file(path).unwrap();
        fs::create_dir_all(path.join("with/folders")).unwrap();
    }),
    ("a link to nothing", |path| {
        fs::remove_file(path).unwrap();
        std::os::unix::fs::symlink("nothing", path).unwrap();
    }),
    ("a pipe", |path| {
        fs::remove_file(path).unwrap();
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    }),
];

/// After any damage to a file of the cache, the next process makes it again, and the one after that finds it.
#[test]
fn what_is_damaged_is_made_again() {
    let place = Place::new("damaged");
    let source = place.write("k.cc", &adding("1"));
    assert_eq!(place.run(&source), (2.0, true));
    let all = files(&place.folder.join("cache/aot"));
    for end in [".so", ".h", ".json"] {
        assert!(all.iter().any(|path| path.display().to_string().ends_with(end)), "{all:?}");
    }
    for (kind, damage) in DAMAGES {
        for path in &all {
            damage(path);
            let (value, _) = place.run(&source);
            assert_eq!(value, 2.0, "{kind}: {}", path.display());
            assert_eq!(place.run(&source), (2.0, false), "{kind}: {}", path.display());
            assert!(path.is_file(), "{kind}: {}", path.display());
        }
        // All at once, seen by several processes.
        all.iter().for_each(|path| damage(path));
        let children: Vec<_> = (0..4).map(|_| place.command(&source).spawn().unwrap()).collect();
        for child in children {
            let output = child.wait_with_output().unwrap();
            assert_eq!(parse(&String::from_utf8_lossy(&output.stdout)).0, 2.0, "{kind}");
        }
        assert_eq!(place.run(&source), (2.0, false), "{kind}");
    }
    // No more is left than was there before.
    assert_eq!(files(&place.folder.join("cache/aot")).len(), all.len());
    // In a process that goes on, and loads the library for each call in another one.
    let mut command = place.command(&source);
    command.env("AOT_WORKER_DAMAGES", &place.objects()[0]);
    assert_eq!(result(command).0, 2.0);
}

/// A manifest cannot make a process load a file of its choice.
#[test]
fn manifests_lead_nowhere_else() {
    let place = Place::new("manifest");
    let source = place.write("k.cc", &adding("1"));
    let other = place.write("other.cc", &adding("5"));
    assert_eq!((place.run(&source).0, place.run(&other).0), (2.0, 6.0));
    let folder = place.folder.join("cache/aot");
    let manifest = files(&folder).into_iter().find(|path| {
        path.extension().is_some_and(|end| end == "json")
            && fs::read_to_string(path).unwrap().contains(&source)
    });
    let manifest = manifest.unwrap();
    let text = fs::read_to_string(&manifest).unwrap();
    let own =
        place.objects().into_iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned());
    let own = own.into_iter().find(|name| text.contains(name.as_str())).unwrap();
    let hash = own.rsplit_once('-').unwrap().1;
    fs::create_dir_all(place.folder.join("cache/evil")).unwrap();
    fs::copy(folder.join(&own), place.folder.join(format!("cache/evil/x-{hash}"))).unwrap();
    fs::write(&manifest, text.replace(&own, &format!("../evil/x-{hash}"))).unwrap();
    assert_eq!(place.run(&source), (2.0, true));
    assert_eq!(place.run(&source), (2.0, false));
}

/// Names that lists of files write in their own way, and those that they cannot write.
#[test]
fn files_of_odd_names() {
    let place = Place::new("odd: $(names) #1");
    for name in
        ["a b.h", "cost$.h", "back\\slash.h", "ends \\ .h", "#.h", "tab\t.h", "c:d.h", "ä.h", "x\\ y.h"]
    {
        place.write(name, "#define NUMBER 1\n");
        let source =
            place.write(&format!("{name}.cc"), &format!("#include \"{name}\"\n{}", adding("NUMBER")));
        assert_eq!(place.run(&source), (2.0, true), "{name}");
        assert_eq!(place.run(&source), (2.0, false), "{name}");
        place.write(name, "#define NUMBER 2\n");
        assert_eq!(place.run(&source), (3.0, true), "{name}");
    }
    let source = place.write("line\nbreak.cc", &adding("1"));
    let error = failure(place.command(&source));
    assert!(
        error.contains("the path of the source has a line break") && error.contains("rename it"),
        "{error}"
    );
    // A library needs no list.
    let library = prebuilt(&place.write("plain.cc", &adding("1")), "aot-plain.so", &[]);
    let copy = place.folder.join("line\nbreak.so");
    fs::copy(library, &copy).unwrap();
    assert_eq!(place.run(&copy.display().to_string()), (2.0, false));
}

#[test]
fn compilers_that_are_missing_or_refuse() {
    let place = Place::new("compilers");
    let source = place.write("k.cc", "extern \"C\" int F() { return nothing; }\n");
    let error = failure(place.command(&source));
    assert!(
        error.contains("k.cc does not compile")
            && error.contains("was not declared in this scope")
            && !error.contains("warning"),
        "{error}"
    );
    let mut command = place.command(&source);
    command.env("PATH", "/nonexistent").env_remove("CXX");
    let error = failure(command);
    assert!(error.contains("there is no C++ compiler") && error.contains("apt-get install g++"), "{error}");
    let cuda = place.write("k.cu", &adding("1"));
    let mut command = place.command(&cuda);
    command.env("PATH", "/nonexistent").env_remove("CUDA_HOME").env_remove("CUDA_PATH").env_remove("NVCC");
    if !Path::new("/usr/local/cuda/bin/nvcc").exists() {
        let error = failure(command);
        assert!(error.contains("there is no CUDA compiler") && error.contains("nvidia-cuda-nvcc"), "{error}");
    }
    let mut command = place.command(&source);
    command.env("OPSMITH_CXX", "no-such-compiler");
    let error = failure(command);
    assert!(error.contains("OPSMITH_CXX names `no-such-compiler`"), "{error}");
}

#[test]
fn a_library_made_for_another_signature_is_refused() {
    let place = Place::new("fingerprint");
    let source = place.write("k.cc", &adding("1"));
    assert_eq!(place.run(&source), (2.0, true));
    let library = place.folder.join("shipped.so");
    fs::copy(&place.objects()[0], &library).unwrap();
    let library = library.display().to_string();
    assert_eq!(place.run(&library), (2.0, false));
    let mut command = place.command(&library);
    command.env("AOT_WORKER_INPUT", "1");
    let error = failure(command);
    assert!(
        error.contains("made for another signature: `input extra` (optional) is not in the library"),
        "{error}"
    );
}

#[test]
fn only_allowed_folders() {
    let place = Place::new("allowed");
    let source = place.write("in/k.cc", &adding("1"));
    let mut command = place.command(&source);
    command.env("OPSMITH_AOT_ALLOW", place.folder.join("in"));
    assert_eq!(result(command).0, 2.0);
    let mut command = place.command(&source);
    command.env("OPSMITH_AOT_ALLOW", place.folder.join("out"));
    let error = failure(command);
    assert!(error.contains("is outside the folders that kernels may be loaded from"), "{error}");
    // A link does not lead out.
    fs::create_dir_all(place.folder.join("out")).unwrap();
    std::os::unix::fs::symlink(&source, place.folder.join("out/k.cc")).unwrap();
    let mut command = place.command(&place.folder.join("out/k.cc").display().to_string());
    command.env("OPSMITH_AOT_ALLOW", place.folder.join("out"));
    assert!(failure(command).contains("is outside"));
}

#[test]
fn libraries_that_cannot_be_loaded() {
    let place = Place::new("loading");
    let text = place.write("text.so", "no library");
    assert!(failure(place.command(&text)).contains("it is no shared object"));
    let source = "extern \"C\" void Heplfer();\nextern \"C\" void Helper() {}\nextern \"C\" int F(int, void **, int *, \
                  long **, const char **, void *, void *) { Heplfer(); return 0; }\n";
    let source = place.write("missing.cc", source);
    let library = prebuilt(&source, "aot-missing.so", &[]);
    let error = failure(place.command(&library));
    assert!(error.contains("undefined symbol: Heplfer") && error.contains("it has `Helper`"), "{error}");
}

/// Hot reload: the next call runs the present source.
#[test]
fn a_source_that_changes_is_loaded_again() {
    let place = Place::new("reload");
    let source = place.write("k.cc", &adding("1"));
    let declare = |reload| {
        let declaration = Declaration::new("aot_reload", format!("{source}:F")).unlisted();
        declaration
            .input("x")
            .output("y")
            .output_shape([1])
            .output_dtype(DType::F32)
            .reload(reload)
            .declare()
            .unwrap()
    };
    let (live, fixed) = (declare(true), declare(false));
    let x = Tensor::of(&[1.0f32]);
    let of = |op: opsmith_aot::Operator| op.call(&[&x]).unwrap().to_vec::<f32>().unwrap()[0];
    assert_eq!((of(live), of(fixed)), (2.0, 2.0));
    std::thread::sleep(std::time::Duration::from_millis(20));
    place.write("k.cc", &adding("5"));
    assert_eq!((of(live), of(live), of(fixed)), (6.0, 6.0, 2.0));
}
