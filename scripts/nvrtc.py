"""Compiles texts of kernels with NVRTC, found where Python's packages have it: nvrtc.py FOLDER [EVERY].

Each text of the folder, or the first and each EVERY-th of each source, is compiled to PTX of compute_80 and to a cubin of sm_90,
with the options of opsmith-cuda. A warning counts as an error, and so does a file of kernels in no text. Registers, spills and
shared memory of each source are those that ptxas prints.
"""

import ctypes
import pathlib
import re
import sys

OPTIONS = [b"--std=c++17", b"--fmad=false", b"--ptxas-options=-v"]


def library():
    for site in map(pathlib.Path, sys.path):
        folder = site / "nvidia" / "cu13" / "lib"
        if (folder / "libnvrtc.so.13").exists():
            for builtins in folder.glob("libnvrtc-builtins.so*"):
                ctypes.CDLL(str(builtins), ctypes.RTLD_GLOBAL)
            return ctypes.CDLL(str(folder / "libnvrtc.so.13"))
    sys.exit("there is no NVRTC: pip install nvidia-cuda-nvrtc")


def compile_text(nvrtc, name, text, target):
    program = ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, name.encode(), 0, None, None)
    options = [target, *(OPTIONS if target.endswith(b"sm_90") else OPTIONS[:-1])]
    code = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return code, log.value.decode()


class Resources:
    """The largest use of a source's kernels."""

    def __init__(self):
        self.texts, self.registers, self.shared, self.spills = 0, [], 0, 0

    def add(self, log):
        self.registers += map(int, re.findall(r"Used (\d+) registers", log))
        self.shared = max([self.shared, *map(int, re.findall(r"(\d+) bytes smem", log))])
        self.spills += sum(bool(int(stores)) for stores in re.findall(r"(\d+) bytes spill stores", log))


def chosen_texts(folder, every):
    """The texts to compile, by source: a file of kernels, or the expressions of all operators. Their names are SOURCE.KEY.cu."""
    sources = {}
    for path in sorted(folder.glob("*.cu")):
        source = path.name.rsplit(".", 2)[0]
        sources.setdefault(source if source.endswith(".cuh") else "expressions", []).append(path)
    return {source: paths[::every] for source, paths in sources.items()}


def files_in_no_text(texts):
    """The files of kernels whose first line is in none of the texts, into which they are copied whole."""
    root = pathlib.Path(__file__).parent.parent
    files = [*root.glob("kernels/cuda/**/*.cuh"), *root.glob("runtime/cuda/src/*.cuh")]
    lines = {line for path in texts for line in path.read_text().splitlines() if line.startswith("//")}
    return [file.relative_to(root) for file in files if file.read_text().splitlines()[0] not in lines]


def main():
    folder, every = pathlib.Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    nvrtc = library()
    sources = chosen_texts(folder, every)
    if not sources:
        sys.exit(f"{folder}: no texts")
    missing = files_in_no_text([path for paths in sources.values() for path in paths])
    for file in missing:
        print(f"{file} is in no text")
    failures, uses = 0, {source: Resources() for source in sources}
    for source, path in ((source, path) for source, paths in sources.items() for path in paths):
        text = path.read_bytes()
        uses[source].texts += 1
        for target in (b"--gpu-architecture=compute_80", b"--gpu-architecture=sm_90"):
            code, log = compile_text(nvrtc, path.name, text, target)
            if code != 0 or "warning" in log:
                failures += 1
                print(f"{path} for {target.decode()}:\n{log}\n{text.decode().splitlines()[-1]}")
            uses[source].add(log)
    for source, use in sorted(uses.items()):
        most = max(use.registers, default=0)
        spills = f", {use.spills} kernels spill" if use.spills else ""
        print(f"{source}: {use.texts} texts, at most {most} registers, {use.shared} bytes of shared memory{spills}")
    registers = sorted(number for use in uses.values() for number in use.registers)
    most = max(registers, default=0)
    middle = registers[len(registers) // 2] if registers else 0
    texts, spills = (sum(getattr(use, field) for use in uses.values()) for field in ("texts", "spills"))
    print(f"{texts} texts, {failures} failures; registers: {middle} in the middle, {most} at most; {spills} kernels spill")
    sys.exit(failures != 0 or bool(missing))


if __name__ == "__main__":
    main()
