"""A short form of `benchmarks/parity.py`: distributed training equals a single process."""

import math

import pytest
import torch

from benchmarks.parity import LIMIT, ROWS, largest_difference, rows_on, train

SHORT_ROWS = ['plain', 'frozen blocks', 'all of it']

pytestmark = pytest.mark.filterwarnings('ignore')


def check_rows(ranks: int, names: list[str], steps: int) -> None:
    expected = {name: train(ROWS[name], steps, sharded=False) for name in names}
    for name, (difference, tensor) in rows_on(ranks, names, steps, expected).items():
        assert difference < LIMIT, (name, tensor)


def test_a_nan_counts_as_an_infinite_difference():
    expected = dict(losses=torch.zeros(2), weight=torch.ones(2))
    found = dict(losses=torch.ones(2), weight=torch.tensor([1.0, math.nan]))
    assert largest_difference(found, expected) == (math.inf, 'weight')
    assert largest_difference(dict(found, weight=torch.ones(2)), expected) == (1.0, 'losses')


@pytest.mark.nightly
def test_two_ranks_train_as_one_process():
    check_rows(2, SHORT_ROWS, 4)


@pytest.mark.nightly
@pytest.mark.parametrize('ranks', [2, 4])
def test_every_row_trains_as_one_process(ranks):
    check_rows(ranks, list(ROWS), 5)
