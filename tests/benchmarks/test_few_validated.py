"""The splits of a draw, and the scores of the weights that are kept."""

import torch
from torch import nn

from benchmarks import few_validated
from benchmarks.few_validated import WEIGHT_SETS, draw_split, scores


def test_a_draw_splits_all_images():
    labels = torch.arange(3).repeat_interleave(30)
    split = draw_split(labels, 0.1, seed=0)
    assert [len(part) for part in split] == [54, 6, 30]
    assert sorted(torch.cat(split).tolist()) == list(range(90))
    assert labels[split.val].tolist() == [0, 0, 1, 1, 2, 2]


class Pixels(nn.Linear):
    """A linear classifier of 8 x 8 pixels, which learns in 3 epochs."""

    def __init__(self) -> None:
        super().__init__(64, 3)
        self.head = nn.Identity()

    def extract_feat(self, images):
        return self(images.flatten(1))


def test_each_set_of_weights_gets_a_score(monkeypatch):
    monkeypatch.setattr(few_validated, 'EPOCHS', 3)
    monkeypatch.setattr(few_validated, 'RATE', 0.1)
    monkeypatch.setattr(few_validated, 'classifier', Pixels)
    labels = torch.arange(3).repeat_interleave(30)
    images = torch.zeros(90, 1, 8, 8)
    # The value of a column, -2, 0 or 2, shows the class.
    images[torch.arange(90), 0, :, 3] = 2.0 * (labels[:, None] - 1)
    percents = scores(images, labels, 0.1, seed=0)
    assert len(percents) == len(WEIGHT_SETS)
    assert percents[2] > 60  # the last weights; guessing gives 33
