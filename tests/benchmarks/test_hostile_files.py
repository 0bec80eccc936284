"""What the campaign of hostile files counts as a mark, and some of its files at a fast door."""

import pytest

from benchmarks import hostile_kinds as kinds
from benchmarks.hostile_files import BYTES, DOORS, SECONDS, Outcome, attempt, marks_of

RIGHT = Outcome(1, 3.0, 1 << 20, "Error: 'x.yaml' has more than 3 lines.\n", False)
HARMLESS = Outcome(1, 2.0, 1 << 20, "Error: 'x.yaml' is empty.\n", False)


@pytest.mark.parametrize(
    ('other', 'mark'),
    [
        (dict(status=-9), 'status -9'),
        (dict(seconds=SECONDS + 3.1), 'too slow'),
        (dict(bytes=BYTES + 1), 'too large'),
        (dict(ran=True), 'code was run'),
        (dict(output='Error: it is wrong.'), 'x.yaml is not named'),
        (dict(output="Traceback (most recent call last):\n'x.yaml'"), 'a traceback'),
    ],
)
def test_marks(other, mark):
    assert marks_of(RIGHT, 'x.yaml', HARMLESS) == []
    assert marks_of(RIGHT._replace(**other), 'x.yaml', HARMLESS) == [mark]


def test_a_file_may_be_read_and_takes_what_reading_takes():
    read = RIGHT._replace(status=0, output='cat 0.9')
    assert marks_of(read, 'x.yaml', HARMLESS) == []
    much = read._replace(seconds=40.0, bytes=2 * BYTES)
    assert marks_of(much, 'x.yaml', HARMLESS) == ['too slow', 'too large']
    assert marks_of(much, 'x.yaml', read._replace(seconds=31.0, bytes=2 * BYTES)) == []


def test_kinds_write_the_file_that_they_name(tmp_path):
    """The small ones, which the suite has time for."""
    small = [*kinds.CONFIGS.items(), *kinds.NAMES.items()]
    for i, (what, kind) in enumerate(small):
        if 'MB' not in what and 'million' not in what:
            folder = tmp_path / str(i)
            folder.mkdir()
            assert list(folder.rglob(kind(folder))), what


@pytest.mark.nightly
@pytest.mark.parametrize('door', ['GRAPHS', 'IMAGES', 'FOLDERS'])
def test_fast_doors_leave_no_mark(door):
    pytest.importorskip('onnx')
    pytest.importorskip('onnxruntime')
    pytest.importorskip('h5py')
    harmless = attempt(DOORS[door], DOORS[door].harmless)[0]
    for what, kind in DOORS[door].files.items():
        assert not marks_of(*attempt(DOORS[door], kind), harmless), what
