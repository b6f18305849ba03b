"""Compiles texts of kernels with NVRTC, found where Python's packages have it: nvrtc.py FOLDER [EVERY].

Each text of the folder, or each EVERY-th, is compiled to PTX of compute_80 and to a cubin of sm_90, with the options of
opsmith-cuda. A warning counts as an error. Registers, spills and shared memory are those that ptxas prints.
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


def main():
    folder, every = pathlib.Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    nvrtc = library()
    texts = sorted(folder.glob("*.cu"))[::every]
    if not texts:
        sys.exit(f"{folder}: no texts")
    failures, registers, spills = 0, [], 0
    for path in texts:
        text = path.read_bytes()
        for target in (b"--gpu-architecture=compute_80", b"--gpu-architecture=sm_90"):
            code, log = compile_text(nvrtc, path.name, text, target)
            if code != 0 or "warning" in log:
                failures += 1
                print(f"{path} for {target.decode()}:\n{log}\n{text.decode().splitlines()[-1]}")
            registers += map(int, re.findall(r"Used (\d+) registers", log))
            spills += sum(bool(int(stores)) for stores in re.findall(r"(\d+) bytes spill stores", log))
    most = max(registers, default=0)
    middle = sorted(registers)[len(registers) // 2] if registers else 0
    print(f"{len(texts)} texts, {failures} failures; registers: {middle} in the middle, {most} at most; {spills} kernels spill")
    sys.exit(failures != 0)


if __name__ == "__main__":
    main()
