//! Mutated graphs: a mutated saved graph is either rejected with an error, or a valid graph.
//!
//! `cargo test -p opsmith-tests --test graph_fuzz -- --ignored --nocapture` runs for `OPSMITH_FUZZ_SECONDS` seconds
//! (60), from the seed `OPSMITH_FUZZ_SEED` (the time, printed). Each input is loaded, checked, described, drawn,
//! optimised by each pass, and run, with several sizes and with threads. That happens in a child process with little
//! memory, so that a crash or a loop without end is a finding like any other: a seed and the step.
//! `OPSMITH_FUZZ_ONLY=SEED` looks at one input alone, in this process, and prints it. Each former finding is a
//! test in `graph_hostile.rs`.

#[path = "../../tests/fuzz_support/mod.rs"]
mod fuzz_support;
mod graph_fuzz {
    pub mod corpus;
    pub mod mutate;
}

use std::io::Write as _;
use std::path::Path;

use fuzz_support::children::{Children, number};
use graph_fuzz::corpus::{self, Saved};
use graph_fuzz::mutate;
use opsmith::graph::{BufferKind, Graph, Node, NodeKind, Pass, Passes};
use opsmith::{DType, Tensor, TensorOps};
use opsmith_runtime::Complex64;

const CHILDREN: Children = Children {
    name: "graph-fuzz",
    // A loop may go on for ever, as any loop in a program.
    may_hang: |step, input| step.starts_with("run") && has_a_loop(input),
};

/// Larger graphs are not run, since that alone would take long.
const LARGE: usize = 8 << 20;

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

/// The bits of a tensor's elements.
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

/// The work of a child.
#[test]
#[ignore = "is what the others start as a process of its own"]
fn child() {
    CHILDREN.child(|folder| {
        let (corpus, input) = (corpus::corpus(&folder.join("corpus")), folder.join("input"));
        Box::new(move |seed, note| {
            write(&input, &corpus, seed);
            look(&input, note);
        })
    });
}

fn has_a_loop(folder: &Path) -> bool {
    Graph::load(folder).is_ok_and(|graph| {
        let is_loop = |kind: &NodeKind| matches!(kind, NodeKind::While { .. });
        graph.nodes().iter().any(|node| is_loop(&node.kind))
    })
}

#[test]
fn a_few_mutated_graphs() {
    let (inputs, found) = CHILDREN.fuzz("few", 1, 600, 150, 1);
    assert!(found.is_empty(), "{}", found.join("\n\n"));
    assert_eq!(inputs, 150);
}

#[test]
fn the_corpus_itself_runs() {
    let folder = CHILDREN.folder("corpus");
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
        let folder = CHILDREN.folder("only");
        let name = write(&folder, &corpus::corpus(&folder.join("corpus")), seed);
        println!("{name}, in {}", folder.display());
        return look(&folder, &|step| {
            println!("{step}");
            let _ = std::io::stdout().flush();
        });
    }
    CHILDREN.fuzz_long();
}
