"""Trains a small language model on the documents of this project, and exports it: `python examples/programs/export_text.py`.

Writes `text.pt2`, a program of one step, and `text.npz` with a prompt and PyTorch's logits. The documents are those of one
commit, so that each run has the same; it takes ten minutes on one core.
"""

import math
import subprocess

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from common import FOLDER, save

COMMIT = "81a2786f"
CHARACTERS, CONTEXT = 128, 256
LAYERS, HEADS, WIDTH = 4, 4, 96
STEPS, BATCH = 1200, 6


def documents() -> str:
    """The documents in English of the commit, in ASCII."""
    git = lambda *words: subprocess.run(["git", *words], check=True, capture_output=True, cwd=FOLDER).stdout.decode()
    names = git("ls-tree", "-r", "--full-tree", "--name-only", COMMIT).split()
    names = [name for name in names if name.startswith("docs/") and name.endswith(".md")] + ["README.md", "ARCHITECTURE.md"]
    text = "\n".join(git("show", f"{COMMIT}:{name}") for name in names)
    return text.translate(str.maketrans({"—": "-", "–": "-", "×": "x", "→": ">", "…": "."})).encode("ascii", "ignore").decode()


def rotate(x, angles):
    """Rotary positions (Su et al. 2021): pairs of components, turned by angles in proportion to the position."""
    first, second = x.chunk(2, dim=-1)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)


class Attention(nn.Module):
    """Attention of new characters to all before them, whose keys and values are in a cache."""

    def __init__(self):
        super().__init__()
        self.project = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        size = (1, HEADS, CONTEXT, WIDTH // HEADS)
        self.register_buffer("keys", torch.zeros(size), persistent=False)
        self.register_buffer("values", torch.zeros(size), persistent=False)

    def forward(self, x, positions, angles):
        batch, length, _ = x.shape
        q, k, v = self.project(x).view(batch, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4).unbind(0)
        q, k = rotate(q, angles), rotate(k, angles)
        if self.training:
            out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            self.keys[:, :, positions] = k
            self.values[:, :, positions] = v
            earlier = torch.arange(CONTEXT) <= positions.unsqueeze(1)
            out = F.scaled_dot_product_attention(q, self.keys, self.values, attn_mask=earlier)
        return self.out(out.transpose(1, 2).reshape(batch, length, WIDTH))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = Attention()
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
        self.before_attention, self.before_mlp = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, x, positions, angles):
        x = x + self.attention(self.before_attention(x), positions, angles)
        return x + self.mlp(self.before_mlp(x))


class LanguageModel(nn.Module):
    """One step: characters of shape `[n, length]`, at positions of shape `[length]`, give the logits of the next ones.

    In evaluation n is 1, and the caches have the keys and values of earlier positions.
    """

    def __init__(self):
        super().__init__()
        self.characters = nn.Embedding(CHARACTERS, WIDTH)
        nn.init.normal_(self.characters.weight, std=0.02)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        pairs = WIDTH // HEADS // 2
        self.register_buffer("frequencies", CONTEXT ** (-torch.arange(pairs) / pairs), persistent=False)

    def forward(self, characters, positions):
        angles = positions.unsqueeze(1) * self.frequencies
        x = self.characters(characters)
        for block in self.blocks:
            x = block(x, positions, angles)
        return F.linear(self.norm(x), self.characters.weight)


def train(model: LanguageModel, text: torch.Tensor):
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, betas=(0.9, 0.95))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=4e-3, total_steps=STEPS, pct_start=0.1)
    for step in range(STEPS):
        starts = torch.randint(len(text) - CONTEXT, (BATCH,)).tolist()
        rows = torch.stack([text[start : start + CONTEXT + 1] for start in starts])
        logits = model(rows[:, :-1], torch.arange(CONTEXT))
        loss = F.cross_entropy(logits.reshape(-1, CHARACTERS), rows[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 100 == 99:
            print(f"step {step + 1}: {loss.item() / math.log(2):.3f} bits a character", flush=True)


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    text = torch.tensor(list(documents().encode()))
    print(f"{len(text)} characters")
    model = LanguageModel()
    print(f"{sum(parameter.numel() for parameter in model.parameters())} parameters")
    train(model, text)
    model.eval()
    prompt = torch.tensor([list(b"A graph is a ")])
    step = (prompt, torch.arange(prompt.shape[1]))
    count = torch.export.Dim("count", min=1, max=CONTEXT)
    program = save("text", model, step, ({1: count}, {0: count}))
    with torch.no_grad():
        first = program(*step)
        second = program(torch.tensor([list(b"f")]), torch.tensor([prompt.shape[1]]))
    inputs = {"prompt": step[0].numpy(), "positions": step[1].numpy()}
    np.savez_compressed(FOLDER / "text.npz", **inputs, first=first.numpy(), second=second.numpy())


if __name__ == "__main__":
    main()
