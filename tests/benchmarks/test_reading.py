"""The folders that the campaign times are read as they were written."""

from collections import Counter
from itertools import chain

import pytest

import anyfolder
from benchmarks.labeled_folders import LARGE


@pytest.mark.parametrize('name', LARGE)
def test_a_large_folder_is_read_as_it_was_written(tmp_path, name):
    large = LARGE[name]
    truth = large.write(tmp_path, 80)
    data = anyfolder.read(str(tmp_path), task=large.task)
    images = [*chain.from_iterable(data.splits.values())]
    assert len(images) == truth.images
    assert {*data.classes} <= {*truth.classes}
    if truth.counts:
        assert Counter(label for image in images for label in image.labels) == truth.counts
    else:
        assert sum(len(image.objects) for image in images) == truth.boxes.total()
