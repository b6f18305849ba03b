"""Makes mistakes on purpose and says which of them the tests notice.

    python tests/mutants/run.py kernels [NUMBER …]
    python tests/mutants/run.py spec

In: `kernels.toml`, mistakes in kernels, and `spec.toml`, mistakes in the formulas and expressions of `ops.yaml`. Out:
a table, a line for each mistake, with the first test that failed. The mistakes are made in a copy of the project
under `target/mutants`, so nothing here is changed. Those in kernels are branches on a number from the environment, so
that one build serves them all; those in the spec are built at once, and told apart by the operators that fail.

A mistake that survives is a sample or a size that is missing, or none at all: then it does not belong here.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TREE = Path(os.environ.get("OPSMITH_MUTANTS", ROOT / "target" / "mutants")) / "tree"
HERE = Path(__file__).resolve().parent
CARGO = os.environ.get("CARGO", "cargo").split()
# The tests of the kernels' own crate, and those of operators, the quick ones first.
QUICK = ["opsmith_kernels", "losses", "operators", "spatial", "gradients", "forward", "seeds", "parity", "written"]
SLOW = ["special", "derivatives", "graph", "precision"]
SECONDS = 300

SWITCH = """
/// Whether the mistake with a number is made.
pub fn mutant(number: usize) -> bool {
    static MADE: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    let read = || std::env::var("MUTANT").ok().and_then(|text| text.parse().ok()).unwrap_or(usize::MAX);
    *MADE.get_or_init(read) == number
}
"""


def mutants(name):
    with open(HERE / f"{name}.toml", "rb") as file:
        return tomllib.load(file)["mutant"]


def copy():
    """Brings the copy up to date; files that are as they were keep their times, for cargo."""
    listed = subprocess.run(["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True)
    names = [name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()]
    return {name: (ROOT / name).read_bytes() for name in names}


def write(files):
    for name, content in files.items():
        path = TREE / name
        if not path.exists() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def replace(text, mutant, where, new):
    found = text.count(mutant["find"])
    if found != 1:
        sys.exit(f"{where} has {found} places instead of one for:\n{mutant['find']}")
    return text.replace(mutant["find"], new)


def with_kernels(files, listed):
    for number, mutant in enumerate(listed):
        name = f"kernels/src/{mutant['file']}"
        new = re.sub(r"\bMUTANT\b", f"crate::mutant({number})", mutant["replace"])
        files[name] = replace(files[name].decode(), mutant, name, new).encode()
    files["kernels/src/lib.rs"] += SWITCH.encode()


def with_spec(files, listed):
    text = files["ops.yaml"].decode()
    for mutant in listed:
        start = text.index("\n- func: " + mutant["entry"])
        end = text.find("\n- func: ", start + 1) % (len(text) + 1)
        entry = replace(text[start:end], mutant, mutant["entry"], mutant["replace"])
        text = text[:start] + entry + text[end:]
    files["ops.yaml"] = text.encode()


def build():
    """The programs of the tests, by name."""
    tests = [word for name in QUICK[1:] + SLOW for word in ("--test", name)]
    programs = {}
    for package in (["-p", "opsmith-kernels", "--lib"], ["-p", "opsmith-tests", *tests]):
        command = [*CARGO, "test", "--no-run", "--message-format=json-render-diagnostics", *package]
        target = os.environ.get("CARGO_TARGET_DIR", str(TREE.parent / "target"))
        run = subprocess.run(command, cwd=TREE, stdout=subprocess.PIPE, env={**os.environ, "CARGO_TARGET_DIR": target})
        if run.returncode:
            sys.exit("the mistakes do not compile")
        for line in run.stdout.decode().splitlines():
            message = json.loads(line)
            if message.get("executable") and message.get("profile", {}).get("test"):
                programs[message["target"]["name"]] = message["executable"]
    return programs


def run(programs, name, filters=(), **environment):
    """What fails of a program, and what it says."""
    folder = TREE / ("kernels" if name == QUICK[0] else "tests")
    env = {**os.environ, "CARGO_MANIFEST_DIR": str(folder), "RUST_BACKTRACE": "0", **environment}
    try:
        done = subprocess.run([programs[name], *filters], cwd=folder, env=env, capture_output=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return ["does not end"], ""
    text = (done.stdout + done.stderr).decode(errors="replace")
    failed = re.findall(r"^test (\S+) \.\.\. FAILED", text, re.M)
    return failed or ([f"ended with {done.returncode}"] if done.returncode else []), text


def noticed(programs, mutant, number):
    """The first test that fails because of a mistake in a kernel."""
    on = {"MUTANT": str(number)}
    trials = [("special", {"OPSMITH_ONLY": mutant["ops"]})] + [(name, {}) for name in QUICK + SLOW]
    for name, more in trials:
        # Other tests of the program do not depend on kernels.
        filters = ["results_and_gradients"] if name == "special" else []
        failed, _ = run(programs, name, filters, **on, **more)
        if failed:
            return f"{name}::{failed[0]}"
    return None


def kernels(numbers):
    listed, files = mutants("kernels"), copy()
    with_kernels(files, listed)
    write(files)
    programs = build()
    survived = []
    for number, mutant in enumerate(listed):
        if numbers and number not in numbers:
            continue
        by = noticed(programs, mutant, number)
        print(f"{number:3} {mutant['file']:28} {mutant['what']}: {by or 'SURVIVED'}", flush=True)
        survived += [] if by else [number]
    print(f"{len(numbers or listed)} mistakes in kernels, {len(survived)} survived: {survived}")
    return survived


def spec():
    listed, files = mutants("spec"), copy()
    with_spec(files, listed)
    write(files)
    programs = build()
    said = {}
    for name in SLOW[:2] + QUICK[1:] + SLOW[2:]:
        failed, text = run(programs, name)
        print(f"{name}: {len(failed)} tests fail", flush=True)
        (TREE.parent / f"spec.{name}.log").write_text(text)
        said[name] = text
    survived = []
    for mutant in listed:
        ops = [mutant["entry"].split("(")[0], *filter(None, mutant.get("also", "").split(","))]
        names = "|".join(re.escape(op) for op in ops)
        pattern = re.compile(rf"^({names})( \(|:| (float|complex|int|bool)\d*|\.default)", re.M)
        by = [name for name, text in said.items() if pattern.search(text)]
        print(f"{mutant['entry'].split('(')[0]:36} {', '.join(by) or 'SURVIVED'}")
        survived += [] if by else [mutant["entry"]]
    print(f"{len(listed)} mistakes in the spec, {len(survived)} survived: {survived}")
    return survived


if __name__ == "__main__":
    if sys.argv[1:2] == ["kernels"]:
        sys.exit(1 if kernels([int(number) for number in sys.argv[2:]]) else 0)
    if sys.argv[1:] == ["spec"]:
        sys.exit(1 if spec() else 0)
    sys.exit(__doc__)
