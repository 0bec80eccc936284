"""Names that stand for splits, and the held-out tenth."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyfolder.readers.splits import hold_out, split_in, split_of


@pytest.mark.parametrize(
    ('name', 'split'),
    [
        ('train', 'train'),
        ('Training', 'train'),
        ('train_set', 'train'),
        ('TrainSet', 'train'),
        ('trainset', 'train'),
        ('train2017', 'train'),
        ('x_train', 'train'),
        ('images_train', 'train'),
        ('TRAIN', 'train'),
        ('traindata', 'train'),
        ('val', 'val'),
        ('valid', 'val'),
        ('Validation', 'val'),
        ('dev', 'val'),
        ('valset', 'val'),
        ('val-images', 'val'),
        ('test', 'test'),
        ('testing', 'test'),
        ('test_set', 'test'),
        ('Test1', 'test'),
        ('evaluation', 'test'),
        ('cat', None),
        ('train station', None),
        ('trains', None),
        ('contest', None),
        ('value', None),
        ('', None),
        ('images', None),
        ('unlabeled_backup', None),
    ],
)
def test_split_of_folder_names(name, split):
    assert split_of(name) == split


@pytest.mark.parametrize(
    ('stem', 'split'),
    [
        ('instances_train2017', 'train'),
        ('person_keypoints_val2017', 'val'),
        ('image_info_test-dev2017', 'test'),
        ('_annotations.coco', None),
        ('result', None),
        ('default', None),
        ('trainval', 'train'),
    ],
)
def test_split_in_file_names(stem, split):
    assert split_in(stem) == split


@given(st.integers(0, 300), st.integers(0, 2**32 - 1))
def test_a_tenth_is_held_out(count, seed):
    held, others = hold_out([*range(count)], np.random.default_rng(seed))
    assert sorted(held + others) == [*range(count)]
    assert len(held) == (max(round(count / 10), 1) if count > 1 else 0)
