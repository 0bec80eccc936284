"""The campaign of `benchmarks/parity.py`, in short."""

import pytest

from benchmarks.parity import LIMIT, ROWS, rows_on, train

SHORT = ['plain', 'frozen blocks', 'all of it']

pytestmark = pytest.mark.filterwarnings('ignore')


def check(ranks: int, names: list[str], steps: int) -> None:
    expected = {name: train(ROWS[name], steps, sharded=False) for name in names}
    for name, (size, what) in rows_on(ranks, names, steps, expected).items():
        assert size < LIMIT, (name, what)


@pytest.mark.nightly
def test_two_ranks_train_as_one_process():
    check(2, SHORT, 4)


@pytest.mark.nightly
@pytest.mark.parametrize('ranks', [2, 4])
def test_every_row(ranks):
    check(ranks, list(ROWS), 5)
