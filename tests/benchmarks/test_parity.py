"""A short form of `benchmarks/parity.py`: distributed training equals a single process."""

import pytest

from benchmarks.parity import LIMIT, ROWS, rows_on, train

SHORT_ROWS = ['plain', 'frozen blocks', 'all of it']

pytestmark = pytest.mark.filterwarnings('ignore')


def check_rows(ranks: int, names: list[str], steps: int) -> None:
    expected = {name: train(ROWS[name], steps, sharded=False) for name in names}
    for name, (difference, tensor) in rows_on(ranks, names, steps, expected).items():
        assert difference < LIMIT, (name, tensor)


@pytest.mark.nightly
def test_two_ranks_train_as_one_process():
    check_rows(2, SHORT_ROWS, 4)


@pytest.mark.nightly
@pytest.mark.parametrize('ranks', [2, 4])
def test_every_row_trains_as_one_process(ranks):
    check_rows(ranks, list(ROWS), 5)
