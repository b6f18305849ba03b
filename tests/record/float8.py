"""Records conversions to 8-bit floats and a scaled product, by PyTorch 2.15, in `tests/data/float8`.

A line of `float8_*.txt` is a number of single precision, as bits, and the byte that it becomes: the numbers of all bytes, the
middles between neighbours and the numbers beside them, numbers too small and too large. `numbers_*.txt` has the number of each
byte. `scaled_mm.txt` has operands and result of a product, all as bits.
"""

from pathlib import Path

import torch

FOLDER = Path(__file__).parent.parent / "data" / "float8"


def bits(numbers):
    return [f"{number & 0xFFFFFFFF:08x}" for number in numbers.contiguous().view(torch.int32).flatten().tolist()]


def bytes_of(numbers):
    return [f"{number:02x}" for number in numbers.contiguous().view(torch.uint8).flatten().tolist()]


def boundaries(dtype):
    every = torch.arange(256, dtype=torch.uint8).view(dtype).float()
    finite = every[every.isfinite() & (every >= 0)].sort().values
    last = 2 * finite[-1] - finite[-2]
    middles = (finite + torch.cat([finite[1:], last[None]])) / 2
    inf = torch.tensor(float("inf"))
    near = torch.cat([middles, torch.nextafter(middles, inf), torch.nextafter(middles, -inf)])
    others = torch.tensor([0.0, 1e-45, 1e-38, 1e-12, last, 448.5, 1e6, 3e38, float("inf")])
    found = torch.cat([near, others, torch.nextafter(finite, inf)])
    return torch.cat([every, found, -found])


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in ("float8_e4m3fn", "float8_e5m2"):
        dtype = getattr(torch, name)
        numbers = boundaries(dtype)
        pairs = zip(bits(numbers), bytes_of(numbers.to(dtype)))
        (FOLDER / f"{name}.txt").write_text("".join(f"{number} {byte}\n" for number, byte in pairs))
        every = torch.arange(256, dtype=torch.uint8).view(dtype).float()
        (FOLDER / f"numbers_{name}.txt").write_text("".join(f"{number}\n" for number in bits(every)))
    torch.manual_seed(0)
    left, right = torch.randn(4, 16).to(torch.float8_e4m3fn), torch.randn(16, 16).to(torch.float8_e4m3fn).t()
    scale_a, scale_b, bias = torch.tensor(0.75), torch.tensor(1.5), torch.randn(16)
    result = torch._scaled_mm(left, right, scale_a=scale_a, scale_b=scale_b, bias=bias, out_dtype=torch.float32)
    lines = [bytes_of(left), bytes_of(right), bits(scale_a), bits(scale_b), bits(bias), bits(result)]
    (FOLDER / "scaled_mm.txt").write_text("".join(" ".join(line) + "\n" for line in lines))


main()
