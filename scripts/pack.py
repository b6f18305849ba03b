#!/usr/bin/env python3
"""Packs an extension module that cargo built, and the package's Python files, into a wheel: ``pack.py LIBRARY FOLDER [IMAGES]``.

IMAGES is an archive of kernels for CUDA devices, which the module finds beside it: they then need no compiler.
The tag follows from the newest version of the C library that the module asks for. `pip` and maturin make the same wheel from the
sources; this one compiles nothing, so that the optimised library of other programs is used.
"""

import base64
import hashlib
import pathlib
import platform
import re
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "python"
SUFFIXES = {".py", ".pyi", ".typed"}
# The largest wheel without kernels for devices, in MiB (25 MB).
LARGEST = 23.8
# The modules of the C library and the compiler that every Linux has.
ALLOWED = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libstdc++.so.6"}


def version() -> str:
    found = re.search(r'^version = "([^"]+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    assert found, "Cargo.toml has no version"
    return found.group(1)


def tag(library: bytes) -> str:
    """The platform of the wheel: the newest version of the C library among those that the module asks for."""
    versions = {(int(a), int(b)) for a, b in re.findall(rb"GLIBC_(\d+)\.(\d+)", library)}
    major, minor = max(versions)
    asked = {name.decode() for name in re.findall(rb"\0(lib[a-z_+]+\.so\.\d+)\0", library)}
    if asked - ALLOWED:
        sys.exit(f"the module needs {', '.join(sorted(asked - ALLOWED))}, which not every Linux has")
    return f"manylinux_{major}_{minor}_{platform.machine()}"


def metadata() -> str:
    lines = [
        "Metadata-Version: 2.4",
        "Name: opsmith",
        f"Version: {version()}",
        "Summary: Tensor operators declared once, in a YAML file: functions, gradients, graphs",
        "License-Expression: MIT OR Apache-2.0",
        "License-File: LICENSE-MIT",
        "License-File: LICENSE-APACHE",
        "Requires-Python: >=3.11",
        "Description-Content-Type: text/markdown",
        "Provides-Extra: numpy",
        'Requires-Dist: numpy>=1.26; extra == "numpy"',
    ]
    return "\n".join(lines) + "\n\n" + (PACKAGE / "README.md").read_text()


def main() -> None:
    library = pathlib.Path(sys.argv[1]).read_bytes()
    folder = pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    tags = f"cp311-abi3-{tag(library)}"
    info = f"opsmith-{version()}.dist-info"
    files = {f"opsmith/{path.name}": path.read_bytes() for path in sorted((PACKAGE / "opsmith").iterdir()) if path.suffix in SUFFIXES}
    files["opsmith/py.typed"] = b""
    files["opsmith/_opsmith.abi3.so"] = library
    if len(sys.argv) > 3:
        images = pathlib.Path(sys.argv[3]).read_bytes()
        if not images.startswith(b"OPSMIMGS"):
            sys.exit(f"{sys.argv[3]} is no archive of images: make one with scripts/cuda-images")
        files["opsmith/opsmith.images"] = images
    files[f"{info}/METADATA"] = metadata().encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: opsmith\nRoot-Is-Purelib: false\nTag: {tags}\n".encode()
    for name in ("LICENSE-MIT", "LICENSE-APACHE"):
        files[f"{info}/licenses/{name}"] = (ROOT / name).read_bytes()
    record = []
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record.append(f"{name},sha256={digest},{len(content)}")
    files[f"{info}/RECORD"] = ("\n".join([*record, f"{info}/RECORD,,"]) + "\n").encode()
    path = folder / f"opsmith-{version()}-{tags}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0))
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, (0o755 if name.endswith(".so") else 0o644) << 16
            wheel.writestr(entry, content)
    size = path.stat().st_size / 2**20
    print(f"{path}: {size:.1f} MiB")
    if size > LARGEST and len(sys.argv) < 4:
        sys.exit(f"the wheel has more than {LARGEST} MiB: find the crate or dependency that grew, for instance with cargo bloat")


if __name__ == "__main__":
    main()
