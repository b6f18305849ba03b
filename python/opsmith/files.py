"""Files of named tensors in the format of safetensors."""

from __future__ import annotations

import os

from . import _opsmith
from ._opsmith import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Mapping, Optional, Union

_NAMES = {
    "bool": "BOOL", "uint8": "U8", "uint16": "U16", "uint32": "U32", "uint64": "U64", "int8": "I8", "int16": "I16",
    "int32": "I32", "int64": "I64", "float16": "F16", "bfloat16": "BF16", "float32": "F32", "float64": "F64",
    "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
    "complex64": "C64",
}  # fmt: skip
_TYPES = {name: dtype for dtype, name in _NAMES.items()}
_LARGEST_HEADER = 100_000_000


def save_file(
    tensors: Mapping[str, Tensor],
    path: Union[str, os.PathLike[str]],
    metadata: Optional[Mapping[str, str]] = None,
) -> None:
    """Writes tensors by name. The file appears when it is complete."""
    import json
    import tempfile

    header: dict[str, object] = {}
    if metadata:
        header["__metadata__"] = dict(metadata)
    offset = 0
    for name, tensor in tensors.items():
        kind = _NAMES.get(tensor.dtype.name)
        if kind is None:
            raise TypeError(f"the format has no {tensor.dtype.name}\n  help: convert `{name}` first")
        end = offset + tensor.nbytes
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    folder = os.path.dirname(os.path.abspath(path))
    handle, part = tempfile.mkstemp(dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for tensor in tensors.values():
                file.write(_opsmith._to_bytes(tensor))
        os.replace(part, path)
    except BaseException:
        os.unlink(part)
        raise


def load_file(path: Union[str, os.PathLike[str]]) -> dict[str, Tensor]:
    """Reads the tensors of a file by name."""
    import json

    with open(path, "rb") as file:
        start = file.read(8)
        length = int.from_bytes(start, "little") if len(start) == 8 else -1
        if not 0 <= length <= _LARGEST_HEADER:
            raise ValueError(f"{os.fspath(path)} is no file of safetensors")
        try:
            header = json.loads(file.read(length))
            data = file.read()
            found: dict[str, Tensor] = {}
            for name, entry in header.items():
                if name == "__metadata__":
                    continue
                begin, end = entry["data_offsets"]
                if not 0 <= begin <= end <= len(data):
                    raise ValueError(f"`{name}` lies outside the file")
                dtype = _TYPES[entry["dtype"]]
                found[name] = Tensor._from_bytes(data[begin:end], entry["shape"], dtype, False)
            return found
        except (KeyError, TypeError, AttributeError, UnicodeDecodeError, json.JSONDecodeError) as error:
            raise ValueError(f"{os.fspath(path)} is damaged: {error}") from error
