"""The comparison of blocks, with half a second of training for each model."""

import numpy as np
import pytest

from benchmarks.blocks import CELL, CLASSES, SIZE, Scans, models, train


@pytest.mark.parametrize('task', CLASSES)
def test_labels_follow_from_the_digits(task):
    scans, rng = Scans(task, validation=False), np.random.default_rng(0)
    for _ in range(20):
        digits, label = scans.draw(rng)
        counts = np.bincount(digits, minlength=10)
        expected = dict(count=counts[4], same=counts.max() - 1, odd=int(np.argmax(counts == 1)))
        assert label == expected[task] < CLASSES[task]


def test_scans_fill_whole_cells_and_are_not_shared_with_validation():
    training, validation = Scans('odd', validation=False), Scans('odd', validation=True)
    for trained, held_out in zip(training.by_digit, validation.by_digit, strict=True):
        assert not {scan.tobytes() for scan in trained} & {scan.tobytes() for scan in held_out}
    image, _ = training.image(np.random.default_rng(0))
    cells = image.reshape(SIZE // CELL, CELL, SIZE // CELL, CELL).swapaxes(1, 2)
    known = {scan.tobytes() for scans in training.by_digit for scan in scans}
    # An image of task 'odd' has three scans.
    assert sum(cell.tobytes() in known for row in cells for cell in row) == 3


def test_models_learn_in_equal_time():
    chosen = {name: models()[name] for name in ('the CNN alone', '2 blocks')}
    trainings = train('same', chosen, 0.5, seed=0)
    for training in trainings.values():
        assert training.seconds >= 0.5
        assert training.steps > 0
        images, labels = Scans('same', validation=True).batch(np.random.default_rng(0), 8)
        assert 0 <= training.top1(images, labels) <= 100


@pytest.mark.nightly
@pytest.mark.filterwarnings('ignore')
def test_two_blocks_learn_to_count():
    training = train('count', {'2 blocks': models()['2 blocks']}, 30, seed=0)['2 blocks']
    # Guessing among the five counts gives 20 %.
    assert training.top1(*Scans('count', validation=True).batch(np.random.default_rng(0), 200)) > 40
