"""Fourier transforms of every size, normalisation and dtype, their shifts and frequencies."""

import torch

from calls import BF16, C64, C128, F16, F32, F64, integers, randn

NORMS = [None, "backward", "forward", "ortho"]


def calls():
    yield from along_a_dimension()
    yield from over_dimensions()
    for x in (randn(5), randn(4, 3), randn(2, 3, 4), integers(3, 2), randn(0, 3)):
        for name in ("fft_fftshift", "fft_ifftshift"):
            yield name, [x]
            yield name, [x, [-1]]
            yield name, [x, [0, -1]]
    for name in ("fft_fftshift", "fft_ifftshift"):
        yield name, [randn(2, 3, 4), [2, 0]]
        yield name, [randn(2, 3), [2]]
    for name in ("fft_fftfreq", "fft_rfftfreq"):
        for n, d in ((5, 1.0), (4, 0.5), (1, 3.0), (8, -2.0), (0, 1.0)):
            yield name, [n, d]
            yield name, [n, d], {"dtype": F64}
        yield name, [6]
        yield name, [6], {"dtype": C64}
        yield name, [6], {"dtype": torch.int64}


def along_a_dimension():
    for name in ("fft_fft", "fft_ifft", "fft_rfft", "fft_irfft", "fft_hfft", "fft_ihfft"):
        x = randn(4, 5)
        for norm in NORMS:
            yield name, [x], {"norm": norm}
            yield name, [x, 7, 0], {"norm": norm}
        yield name, [x, 3, -2]
        yield name, [x, 4, -1]
        yield name, [x, 1, 1]
        yield name, [x.t()]
        yield name, [randn(2, 3, 2, dtype=F32), None, 1]
        if name not in ("fft_rfft", "fft_ihfft"):
            yield name, [randn(3, dtype=C128)]
            yield name, [randn(2, 4, dtype=C128), 6, -1, "ortho"]
            yield name, [randn(3, 2, dtype=C64), None, 0]
        yield name, [integers(2, 3)]
        yield name, [torch.tensor([True, False, True])]
        yield name, [randn(0, 3)]
        # Refused.
        yield name, [randn(3, 0)]
        yield name, [randn()]
        yield name, [x, 0]
        yield name, [x, -1]
        yield name, [x, 3, 2]
        yield name, [x, None, -1, "other"]
        yield name, [randn(3, dtype=F16)]
        yield name, [randn(3, dtype=BF16)]
        yield name, [randn(1)]


def over_dimensions():
    for kind in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
        for name in (f"fft_{kind}2", f"fft_{kind}n"):
            x = randn(2, 3, 4)
            for norm in NORMS:
                yield name, [x], {"norm": norm}
            yield name, [x, [3, 5]]
            yield name, [x, [3, -1], [0, 2], "ortho"]
            yield name, [x, [2], [1]]
            yield name, [x, None, [2, 0]]
            if kind not in ("rfft", "ihfft"):
                yield name, [randn(2, 3, dtype=C128)]
                yield name, [randn(3, 2, dtype=C64), [4, 3]]
            yield name, [randn(2, 3, dtype=F32)]
            yield name, [integers(2, 3)]
            # Refused.
            yield name, [x, [3]]
            yield name, [x, [3, 4, 5]]
            yield name, [x, None, [0, 0]]
            yield name, [x, None, [0, 3]]
            yield name, [x, [0, 3]]
            yield name, [randn(3, 0)]
            yield name, [randn()]
            yield name, [randn(2, 3, dtype=F16)]
        yield f"fft_{kind}n", [x, None, []]
        yield f"fft_{kind}n", [x, [1, 2, 3, 4]]
