"""Trains a classifier of handwritten digits and exports it: `python examples/programs/export_digits.py`.

The digits are those of `examples/data`; the last fifth of them is for testing. Writes `digits.pt2`, and `digits.npz` with the
test set and PyTorch's logits. It takes a minute.
"""

import gzip

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from common import FOLDER, save

EPOCHS, BATCH = 30, 32


class Digits(nn.Module):
    """Logits of the ten digits, of images of 8 x 8 pixels with brightnesses from 0 to 16."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.linear = nn.Linear(32 * 4 * 4, 10)

    def forward(self, images):
        x = images.unsqueeze(1) / 16
        x = F.max_pool2d(F.relu(self.conv2(F.relu(self.conv1(x)))), 2)
        return self.linear(F.dropout(x.flatten(1), 0.2, self.training))


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    table = np.loadtxt(gzip.open(FOLDER.parent / "data/digits.csv.gz"), delimiter=",", dtype=np.uint8)
    images, labels = torch.tensor(table[:, :64].reshape(-1, 8, 8)), torch.tensor(table[:, 64]).long()
    count = len(images) * 4 // 5
    model = Digits()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(EPOCHS):
        for batch in torch.randperm(count).split(BATCH):
            loss = F.cross_entropy(model(images[batch]), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    images, labels = images[count:], labels[count:]
    program = save("digits", model, (images[:2].clone(),), ({0: torch.export.Dim.DYNAMIC},))
    with torch.no_grad():
        logits = program(images)
    print(f"{int((logits.argmax(1) == labels).sum())} of {len(labels)} are right")
    best = logits.topk(2).values
    print(f"the largest logit is {float((best[:, 0] - best[:, 1]).min()):.2g} or more above the next")
    np.savez_compressed(FOLDER / "digits.npz", images=images.numpy(), labels=labels.numpy(), logits=logits.numpy())


if __name__ == "__main__":
    main()
