"""Makes mistakes on purpose and says which of them the tests notice.

    python tests/mutants/run.py kernels [NUMBER …]
    python tests/mutants/run.py spec [NUMBER …]
    python tests/mutants/run.py check

In: `kernels.toml`, mistakes in kernels, and `spec.toml`, mistakes in the formulas and expressions of `ops.yaml` and the
files that it includes; with numbers, counted from 0 in those files, these mistakes alone. `check` makes none, and lists those
whose text is not there, because the code has changed: such a mistake is written anew before it can be made. Out:
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
    names = [name for name in listed.stdout.decode().split("\0") if name]
    for name in names:
        # A crate finds the spec by links, which lead to the mistakes only if they are links in the copy as well.
        link, path = ROOT / name, TREE / name
        if link.is_symlink() and not path.is_symlink():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            path.symlink_to(os.readlink(link))
    files = [name for name in names if (ROOT / name).is_file() and not (ROOT / name).is_symlink()]
    return {name: (ROOT / name).read_bytes() for name in files}


def write(files):
    for name, content in files.items():
        path = TREE / name
        if not path.exists() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


class Stale(Exception):
    """The text of a mistake is not there, or in several places."""


def replace(text, mutant, where, new):
    found = text.count(mutant["find"])
    if found != 1:
        raise Stale(f"{where} has {found} places instead of one for:\n{mutant['find']}")
    return text.replace(mutant["find"], new)


def chosen(name, numbers):
    """The mistakes of a file with these numbers, or all, by number."""
    listed = dict(enumerate(mutants(name)))
    unknown = [number for number in numbers if number not in listed]
    if unknown:
        sys.exit(f"{name}.toml has no mistakes of the numbers {unknown}; it has {len(listed)}, counted from 0")
    return {number: mutant for number, mutant in listed.items() if not numbers or number in numbers}


def with_kernels(files, listed):
    for number, mutant in listed.items():
        name = f"kernels/src/{mutant['file']}"
        new = re.sub(r"\bMUTANT\b", f"crate::mutant({number})", mutant["replace"])
        files[name] = replace(files[name].decode(), mutant, name, new).encode()
    files["kernels/src/lib.rs"] += SWITCH.encode()


def specs(files, name="ops.yaml"):
    """The names of a spec's files: its own, and those that it includes."""
    block = re.search(r"^include:\n((?:- .*\n)+)", files[name].decode(), re.M)
    included = re.findall(r"^- (\S+)$", block[1], re.M) if block else []
    folder = os.path.dirname(name)
    return [name, *(found for file in included for found in specs(files, os.path.join(folder, file)))]


def with_spec(files, listed):
    texts = {name: "\n" + files[name].decode() for name in specs(files)}
    for mutant in listed.values():
        begin = "\n- func: " + mutant["entry"]
        places = [name for name, text in texts.items() if begin in text]
        if len(places) != 1:
            raise Stale(f"{mutant['entry']} begins an entry in {len(places)} files of the spec instead of one")
        text = texts[places[0]]
        start = text.index(begin)
        end = text.find("\n- func: ", start + 1) % (len(text) + 1)
        entry = replace(text[start:end], mutant, mutant["entry"], mutant["replace"])
        texts[places[0]] = text[:start] + entry + text[end:]
    files |= {name: text.removeprefix("\n").encode() for name, text in texts.items()}


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
    listed, files = chosen("kernels", numbers), copy()
    with_kernels(files, listed)
    write(files)
    programs = build()
    survived = []
    for number, mutant in listed.items():
        by = noticed(programs, mutant, number)
        print(f"{number:3} {mutant['file']:28} {mutant['what']}: {by or 'SURVIVED'}", flush=True)
        survived += [] if by else [number]
    print(f"{len(listed)} mistakes in kernels, {len(survived)} survived: {survived}")
    return survived


def spec(numbers):
    listed, files = chosen("spec", numbers), copy()
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
    for mutant in listed.values():
        ops = [mutant["entry"].split("(")[0], *filter(None, mutant.get("also", "").split(","))]
        names = "|".join(re.escape(op) for op in ops)
        pattern = re.compile(rf"^({names})( \(|:| (float|complex|int|bool)\d*|\.default)", re.M)
        by = [name for name, text in said.items() if pattern.search(text)]
        print(f"{mutant['entry'].split('(')[0]:36} {', '.join(by) or 'SURVIVED'}")
        survived += [] if by else [mutant["entry"]]
    print(f"{len(listed)} mistakes in the spec, {len(survived)} survived: {survived}")
    return survived


def check():
    """The mistakes that cannot be made."""
    files, stale = copy(), 0
    for name, make in (("kernels", with_kernels), ("spec", with_spec)):
        for number, mutant in enumerate(mutants(name)):
            try:
                make(dict(files), {number: mutant})
            except Stale as reason:
                print(f"{name} {number}: {reason}")
                stale += 1
    print(f"{stale} mistakes have no place")
    return stale


if __name__ == "__main__":
    if sys.argv[1:] == ["check"]:
        sys.exit(1 if check() else 0)
    made = {"kernels": kernels, "spec": spec}.get(sys.argv[1] if sys.argv[1:] else None)
    if made is None:
        sys.exit(__doc__)
    try:
        sys.exit(1 if made([int(number) for number in sys.argv[2:]]) else 0)
    except Stale as reason:
        sys.exit(str(reason))
