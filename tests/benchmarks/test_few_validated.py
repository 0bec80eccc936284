"""The parts of a draw, and what is kept of a training."""

import torch
from torch import nn

from benchmarks import few_validated
from benchmarks.few_validated import KINDS, divide, scores


def test_a_draw_divides_all_images():
    labels = torch.arange(3).repeat_interleave(30)
    parts = divide(labels, 0.1, seed=0)
    assert [len(part) for part in parts] == [54, 6, 30]
    assert sorted(torch.cat(parts).tolist()) == list(range(90))
    assert labels[parts.val].tolist() == [0, 0, 1, 1, 2, 2]


class Pixels(nn.Linear):
    """A linear classifier of 8 x 8 pixels."""

    def __init__(self) -> None:
        super().__init__(64, 3)
        self.head = nn.Identity()

    def extract_feat(self, images):
        return self(images.flatten(1))


def test_each_kind_of_weights_gets_a_score(monkeypatch):
    monkeypatch.setattr(few_validated, 'EPOCHS', 3)
    monkeypatch.setattr(few_validated, 'RATE', 0.1)
    monkeypatch.setattr(few_validated, 'classifier', Pixels)
    labels = torch.arange(3).repeat_interleave(30)
    images = torch.zeros(90, 1, 8, 8)
    images[torch.arange(90), 0, :, 3] = 2.0 * (labels[:, None] - 1)
    found = scores(images, labels, 0.1, seed=0)
    assert len(found) == len(KINDS)
    assert found[2] > 60
