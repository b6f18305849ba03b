"""Trains a classifier of drawn shapes and exports it: `python examples/programs/export_shapes.py`.

The images are drawn here: circles, squares, triangles and crosses of any colour, size and rotation, on noise. Writes
`shapes.pt2`, and `shapes.npz` with a test set and PyTorch's logits. It takes two minutes.
"""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from common import FOLDER, save

KINDS, SIZE = 4, 32
STEPS, BATCH, TESTS = 600, 64, 100


def draw(random: np.random.Generator, kind: int) -> np.ndarray:
    """An image of `[3, 32, 32]` bytes."""
    radius, angle = random.uniform(7, 12), random.uniform(0, 2 * np.pi)
    at = random.uniform(radius, SIZE - radius, 2)
    y, x = np.mgrid[:SIZE, :SIZE] + 0.5
    u = ((x - at[0]) * np.cos(angle) + (y - at[1]) * np.sin(angle)) / radius
    v = ((y - at[1]) * np.cos(angle) - (x - at[0]) * np.sin(angle)) / radius
    inside = [
        np.hypot(u, v) < 0.9,
        np.maximum(abs(u), abs(v)) < 0.8,
        np.maximum(-v - 0.5, np.maximum(v / 2 + 0.87 * u, v / 2 - 0.87 * u) - 0.5) < 0,
        np.minimum(np.maximum(abs(u) / 0.95, abs(v) / 0.3), np.maximum(abs(v) / 0.95, abs(u) / 0.3)) < 1,
    ][kind]
    front, back = random.uniform(0, 255, (2, 3, 1, 1))
    # Colours that can be told apart.
    back += 110 * np.where(back > front, 1, -1)
    image = np.where(inside, front, back) + random.normal(0, 30, (3, SIZE, SIZE))
    return image.clip(0, 255).astype(np.uint8)


def images(random: np.random.Generator, count: int):
    """Images and the numbers of their shapes."""
    kinds = random.integers(KINDS, size=count)
    return torch.tensor(np.stack([draw(random, kind) for kind in kinds])), torch.tensor(kinds)


class Unit(nn.Sequential):
    """A convolution with batch normalisation."""

    def __init__(self, inputs, outputs, stride=1):
        convolution = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        super().__init__(convolution, nn.BatchNorm2d(outputs), nn.ReLU())


class Residual(nn.Module):
    """Two convolutions, to whose result the input is added."""

    def __init__(self, channels):
        super().__init__()
        self.units = nn.Sequential(Unit(channels, channels), Unit(channels, channels))

    def forward(self, x):
        return x + self.units(x)


class Shapes(nn.Module):
    """Logits of the four shapes, of images `[n, 3, 32, 32]` of bytes."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            Unit(3, 16, stride=2), Residual(16), Unit(16, 32, stride=2), Residual(32), Unit(32, 64, stride=2), Residual(64)
        )
        self.head = nn.Linear(64, KINDS)

    def forward(self, images):
        x = self.body(images / 127.5 - 1)
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    random = np.random.default_rng(1)
    model = Shapes()
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=4e-3, total_steps=STEPS)
    for step in range(STEPS):
        batch, kinds = images(random, BATCH)
        loss = F.cross_entropy(model(batch), kinds)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 100 == 99:
            print(f"step {step + 1}: loss {loss.item():.3f}", flush=True)
    tests, kinds = images(random, TESTS)
    program = save("shapes", model, (tests[:2].clone(),), ({0: torch.export.Dim.DYNAMIC},))
    with torch.no_grad():
        logits = program(tests)
    print(f"{int((logits.argmax(1) == kinds).sum())} of {TESTS} are right")
    best = logits.topk(2).values
    print(f"the largest logit is {float((best[:, 0] - best[:, 1]).min()):.2g} or more above the next")
    np.savez_compressed(FOLDER / "shapes.npz", images=tests.numpy(), labels=kinds.numpy(), logits=logits.numpy())


if __name__ == "__main__":
    main()
