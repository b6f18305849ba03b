"""The memory that PyTorch holds in the training steps of `train.rs`, as JSON lines with the same names.

`held_bytes` are alive after the forward pass beyond what was alive before the step, `saved_bytes` those that the
graph saved for backward (each storage once, parameters and inputs too), `peak_bytes` the most that was alive at
once during the step beyond what was alive before it. Allocations are those that PyTorch's own profiler records.
"""
import json

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.profiler import ProfilerActivity, profile, record_function


def saved_bytes(forward):
    storages = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        storages[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = forward()
    del loss
    return sum(storages.values())


def measure(name, forward, clear):
    for _ in range(2):
        clear()
        forward().backward()
    clear()
    saved = saved_bytes(forward)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        loss = forward()
        with record_function("forward is done"):
            pass
        loss.backward()
    events = sorted(profiler.profiler.kineto_results.events(), key=lambda event: event.start_ns())
    live = peak = held = 0
    for event in events:
        if event.name() == "[memory]":
            live += event.nbytes()
            peak = max(peak, live)
        elif event.name() == "forward is done":
            held = live
    clear()
    print(json.dumps({"lib": "torch", "case": name, "held_bytes": held, "saved_bytes": saved, "peak_bytes": peak}))


class Block(nn.Module):
    def __init__(self, width=256, heads=4):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(self.n1(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        scores = (q @ k.transpose(-1, -2)) * (width // self.heads) ** -0.5
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, width)
        x = x + self.out(mixed)
        return x + self.down(F.gelu(self.up(self.n2(x))))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    net = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 10))
    x, y = torch.randn(128, 784), torch.randint(0, 10, (128,))
    clear = lambda module: lambda: [setattr(parameter, "grad", None) for parameter in module.parameters()]
    measure("train.mlp784_512_10_b128_sgd.memory", lambda: F.cross_entropy(net(x), y), clear(net))
    block, x = Block(), torch.randn(8, 128, 256)
    measure("train.block_d256_manual_fwd_bwd.memory", lambda: block(x).sum(), clear(block))


if __name__ == "__main__":
    main()
