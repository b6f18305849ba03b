//! Mutated graphs: a mutated saved graph is either rejected with an error, or a valid graph.
//!
//! `cargo test -p opsmith-tests --test graph_fuzz -- --ignored --nocapture` runs for `OPSMITH_FUZZ_SECONDS` seconds
//! (60), from the seed `OPSMITH_FUZZ_SEED` (the time, printed). Each input is loaded, checked, described, drawn,
//! optimised by each pass, and run, with several sizes and with threads. That happens in a child process with little
//! memory, so that a crash or a loop without end is a finding like any other: a seed and what was being done.
//! `OPSMITH_FUZZ_ONLY=SEED` looks at one input alone, in this process, and prints it. What was a finding once is a
//! test in `graph_hostile.rs`.

mod graph_fuzz {
    pub mod corpus;
    pub mod mutate;
}

use std::io::{BufRead as _, BufReader, Write as _};
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use graph_fuzz::corpus::{self, Saved};
use graph_fuzz::mutate;
use opsmith::graph::{BufferKind, Graph, Node, NodeKind, Pass, Passes};
use opsmith::{DType, Tensor, TensorOps};
use opsmith_runtime::Complex64;

/// Longer than any input should take, on a machine that has other things to do.
const LIMIT: Duration = Duration::from_secs(30);
/// What a child may address, in KiB: little enough that no other program notices.
const MEMORY: &str = "3000000";
/// Larger graphs are not run, since that alone would take long.
const LARGE: usize = 8 << 20;

/// The next action of a child, from its standard output: the seed of an input, and a step.
#[derive(Clone, PartialEq)]
struct Doing {
    seed: u64,
    step: String,
}

fn say(seed: u64, step: &str) {
    let mut out = std::io::stdout().lock();
    let said = writeln!(out, "{seed} {step}").and_then(|()| out.flush());
    said.expect("whoever started the child listens");
}

fn folder(name: &str) -> PathBuf {
    let folder =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("graph-fuzz-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the folder for temporary files can be written");
    folder
}

/// Does everything with a graph that programs do. Errors are answers.
fn look(folder: &Path, note: &dyn Fn(&str)) {
    note("load");
    let Ok(mut graph) = Graph::load(folder) else { return };
    note("check");
    drop(graph.check().map(|checked| checked.to_string()).map_err(|errors| errors.to_string()));
    note("describe");
    let names: Vec<String> = graph.symbols().infos().iter().map(|symbol| symbol.name.clone()).collect();
    let _ = (graph.describe(), graph.to_html(), graph.to_dot(), graph.variants().count());
    for value in [0, 1, 5, 1 << 33, i64::MAX, -1] {
        let sizes: Vec<(&str, i64)> = names.iter().map(|name| (name.as_str(), value)).collect();
        note(&format!("describe at {value}"));
        let _ = (graph.check_at(&sizes), graph.describe_at(&sizes), graph.memory_at(&sizes));
    }
    note("run");
    run(&graph);
    for pass in Pass::all() {
        note(&format!("{pass:?}"));
        let less = graph.optimize(&Passes::none().with(pass).frozen());
        note(&format!("describe after {pass:?}"));
        let _ = (less.describe(), less.check().is_ok());
        note(&format!("run after {pass:?}"));
        run(&less);
    }
    note("all passes");
    let mut less = graph.optimize(&Passes::all());
    note("run in tiles");
    run(&less.clone().with_tiles(3));
    note("run with threads");
    less.set_threads(3);
    run(&less);
    graph.set_threads(2);
    run(&graph);
    note("save");
    let _ = less.save(folder).and_then(|()| Graph::load(folder)).map(|graph| run(&graph));
}

/// Runs a graph with inputs of several sizes, twice each, unless it is large.
fn run(graph: &Graph) {
    let example: Vec<i64> = graph.symbols().infos().iter().filter_map(|symbol| symbol.example).collect();
    let others = [0, 1, 3, 8].map(|size| vec![size; example.len()]);
    for sizes in std::iter::once(example).chain(others) {
        let named: Vec<(&str, i64)> = graph
            .symbols()
            .infos()
            .iter()
            .map(|symbol| symbol.name.as_str())
            .zip(sizes.iter().copied())
            .collect();
        if graph.memory_at(&named).is_ok_and(|memory| {
            let parts = [memory.planned, memory.results, memory.constants, memory.inputs];
            parts.into_iter().fold(0, usize::saturating_add) > LARGE
        }) {
            continue;
        }
        // A plan of its own each time, in memory that held something else.
        let results = [7.5f32, -3.25].map(|filling| {
            let inputs = inputs(graph, &sizes)?;
            fill_free_memory(filling);
            let graph = graph.clone();
            let first = graph.run(&inputs).ok()?;
            let elements = first.iter().map(bits).collect::<Vec<_>>();
            let _ = graph.run(&inputs).map(|again| again.iter().map(bits).count());
            Some(elements)
        });
        if let [Some(first), Some(second)] = results
            && repeats(graph)
        {
            assert!(first == second, "a run with the sizes {sizes:?} reads what nothing wrote");
        }
        if sizes.is_empty() {
            break;
        }
    }
}

/// What the elements of a tensor are.
fn bits(tensor: &Tensor) -> Vec<u64> {
    let wide = opsmith::to_dtype(tensor, DType::C128).and_then(|wide| wide.to_vec::<Complex64>());
    wide.unwrap_or_default()
        .into_iter()
        .flat_map(|element| [element.re.to_bits(), element.im.to_bits()])
        .collect()
}

/// Whether a graph gives the same results each time: it draws no numbers, and changes no constant.
fn repeats(graph: &Graph) -> bool {
    let mut changes = false;
    graph.nodes().iter().for_each(|node| {
        node.for_each_write(&mut |id| {
            let buffer = graph.tensors()[id.0 as usize].buffer;
            changes |= matches!(graph.buffers()[buffer.0 as usize].kind, BufferKind::Constant(_));
        });
    });
    if changes {
        return false;
    }
    fn of_nodes(nodes: &[Node]) -> bool {
        nodes.iter().all(|node| {
            node.kind.op().is_none_or(|op| op.facts.deterministic)
                && node.kind.regions().into_iter().all(|region| of_nodes(&region.nodes))
        })
    }
    of_nodes(graph.nodes()) && graph.variants().all(|(_, _, graph)| repeats(graph))
}

/// Leaves numbers in memory that the next tensors get.
fn fill_free_memory(filling: f32) {
    let tensors: Vec<_> = [4, 16, 64, 200, 500, 1000, 4000, 20_000]
        .into_iter()
        .flat_map(|size| [size; 6])
        .filter_map(|size| opsmith::full([size], filling).ok())
        .collect();
    drop(tensors);
}

fn inputs(graph: &Graph, sizes: &[i64]) -> Option<Vec<Tensor>> {
    let input = |id: &opsmith::graph::TensorId| {
        let info = &graph.tensors()[id.0 as usize];
        let known = info
            .layout
            .sizes
            .iter()
            .map(|size| size.evaluate(|symbol| sizes.get(symbol.0 as usize).copied()));
        let shape: Vec<i64> = known.collect::<Option<_>>()?;
        let small =
            shape.iter().try_fold(1i64, |numel, size| numel.checked_mul(*size).filter(|_| *size >= 0));
        small.filter(|numel| *numel < 100_000)?;
        let values = opsmith::linspace(-1.0, 2.0, shape.iter().product()).ok()?;
        let own = opsmith::to_dtype(&values.reshape(&shape).ok()?, info.dtype).ok()?;
        Some(own)
    };
    graph.inputs().iter().map(input).collect()
}

/// Writes the files of an input; gives the name of the graph that it was made of.
fn write(folder: &Path, corpus: &[Saved], seed: u64) -> &'static str {
    let (name, changed) = mutate::changed(corpus, seed);
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        // Overwriting a file waits for the disk, making one does not.
        let _ = std::fs::remove_file(&path);
        std::fs::write(path, bytes).expect("the folder for temporary files can be written");
    };
    write("graph.json", changed.structure.as_bytes());
    write("constants.safetensors", &changed.constants);
    name
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// What a child does: inputs one after the other, until its time or their number is over.
#[test]
#[ignore = "is what the others start as a process of its own"]
fn child() {
    let (Some(seed), Some(folder)) =
        (number("OPSMITH_GRAPH_FUZZ_FROM"), std::env::var_os("OPSMITH_GRAPH_FUZZ_FOLDER"))
    else {
        return;
    };
    let (folder, count) = (PathBuf::from(folder), number("OPSMITH_GRAPH_FUZZ_COUNT").unwrap_or(u64::MAX));
    let end = Instant::now() + Duration::from_secs(number("OPSMITH_GRAPH_FUZZ_SECONDS").unwrap_or(600));
    let corpus = corpus::corpus(&folder.join("corpus"));
    let input = folder.join("input");
    std::fs::create_dir_all(&input).expect("the folder for temporary files can be written");
    let mut now = seed;
    while now - seed < count && Instant::now() < end {
        say(now, "mutate");
        write(&input, &corpus, now);
        if panic::catch_unwind(AssertUnwindSafe(|| look(&input, &|step| say(now, step)))).is_err() {
            std::process::exit(101);
        }
        now += 1;
    }
    say(now, "end");
}

/// Starts children until the time or the number of inputs is over. Out: how many inputs there were, and the findings.
fn fuzz(name: &str, first: u64, seconds: u64, count: u64, findings: usize) -> (u64, Vec<String>) {
    let folder = folder(name);
    let end = Instant::now() + Duration::from_secs(seconds);
    let (mut seed, mut found) = (first, Vec::new());
    while seed - first < count && Instant::now() < end && found.len() < findings {
        let left = end.saturating_duration_since(Instant::now()).as_secs().max(1);
        let numbers = [("FROM", seed), ("COUNT", count - (seed - first)), ("SECONDS", left)];
        let (status, last) = run_child(&folder, seed, numbers);
        seed = last.seed + 1;
        match status {
            Some(status) if status.success() => seed = last.seed,
            // A loop may go on for ever, as any loop in a program.
            None if last.step.starts_with("run") && has_a_loop(&folder.join("input")) => {}
            status => {
                let how = status.map_or(format!("took more than {LIMIT:?}"), |status| status.to_string());
                let errors = std::fs::read_to_string(folder.join("errors")).unwrap_or_default();
                found.push(format!("seed {}, {}: {how}\n{}", last.seed, last.step, errors.trim()));
            }
        }
    }
    let _ = std::fs::remove_dir_all(&folder);
    (seed - first, found)
}

/// Runs a child. Out: its exit status, `None` if one step took too long; and its last action.
fn run_child(folder: &Path, seed: u64, numbers: [(&str, u64); 3]) -> (Option<ExitStatus>, Doing) {
    let mut command = Command::new("sh");
    // Without `exec`, killing the child would leave the program alone.
    command.args(["-c", &format!("ulimit -v {MEMORY}; ulimit -c 0; exec \"$0\" \"$@\"")]);
    command.arg(std::env::current_exe().expect("the test runs"));
    command.args(["--exact", "child", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env("OPSMITH_GRAPH_FUZZ_FOLDER", folder);
    for (name, number) in numbers {
        command.env(format!("OPSMITH_GRAPH_FUZZ_{name}"), number.to_string());
    }
    let errors = std::fs::File::create(folder.join("errors")).expect("a file can be made");
    let mut child = command.stdout(Stdio::piped()).stderr(errors).spawn().expect("a shell can be started");
    let said = BufReader::new(child.stdout.take().expect("it is a pipe"));
    let last = Arc::new(Mutex::new((Doing { seed, step: "start".to_owned() }, Instant::now())));
    let heard = Arc::clone(&last);
    let listener = std::thread::spawn(move || {
        for line in said.lines().map_while(Result::ok) {
            if let Some((seed, step)) = line.split_once(' ')
                && let Ok(seed) = seed.parse()
            {
                *heard.lock().expect("nobody panics with it") =
                    (Doing { seed, step: step.to_owned() }, Instant::now());
            }
        }
    });
    let status = loop {
        if let Some(status) = child.try_wait().expect("the child was started here") {
            break Some(status);
        }
        std::thread::sleep(Duration::from_millis(20));
        if last.lock().expect("nobody panics with it").1.elapsed() > LIMIT {
            let _ = child.kill();
            let _ = child.wait();
            break None;
        }
    };
    listener.join().expect("the listener ends with the child");
    let last = last.lock().expect("nobody panics with it").0.clone();
    (status, last)
}

fn has_a_loop(folder: &Path) -> bool {
    Graph::load(folder).is_ok_and(|graph| {
        let is_loop = |kind: &NodeKind| matches!(kind, NodeKind::While { .. });
        graph.nodes().iter().any(|node| is_loop(&node.kind))
    })
}

#[test]
fn a_few_mutated_graphs() {
    let (inputs, found) = fuzz("few", 1, 600, 150, 1);
    assert!(found.is_empty(), "{}", found.join("\n\n"));
    assert_eq!(inputs, 150);
}

#[test]
fn the_corpus_itself_runs() {
    let folder = folder("corpus");
    for saved in corpus::corpus(&folder) {
        std::fs::write(folder.join("graph.json"), saved.structure.to_string()).unwrap();
        std::fs::write(folder.join("constants.safetensors"), &saved.constants).unwrap();
        let graph = Graph::load(&folder).unwrap_or_else(|error| panic!("{}: {error}", saved.name));
        let sizes: Vec<i64> = graph.symbols().infos().iter().filter_map(|symbol| symbol.example).collect();
        let inputs = inputs(&graph, &sizes).unwrap_or_else(|| panic!("{} has inputs", saved.name));
        graph.run(&inputs).unwrap_or_else(|error| panic!("{}: {error}", saved.name));
        look(&folder, &|_| {});
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
#[ignore = "takes a minute; `.ci/run` calls it"]
fn fuzz_saved_graphs() {
    if let Some(seed) = number("OPSMITH_FUZZ_ONLY") {
        let folder = folder("only");
        let name = write(&folder, &corpus::corpus(&folder.join("corpus")), seed);
        println!("{name}, in {}", folder.display());
        return look(&folder, &|step| {
            println!("{step}");
            let _ = std::io::stdout().flush();
        });
    }
    let seconds = number("OPSMITH_FUZZ_SECONDS").unwrap_or(60);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |now| now.as_nanos() as u64);
    // A number that a person can type again.
    let seed = number("OPSMITH_FUZZ_SEED").unwrap_or(now % 1_000_000_000);
    println!("seed {seed}, {seconds} s");
    let findings = number("OPSMITH_FUZZ_FINDINGS").unwrap_or(1) as usize;
    let (inputs, found) = fuzz("long", seed, seconds, u64::MAX, findings);
    println!("{inputs} inputs");
    assert!(found.is_empty(), "{}", found.join("\n\n"));
}
