"""What counts as a mark in the campaign of hostile files, and some of its files."""

import pytest

from benchmarks import hostile_kinds as kinds
from benchmarks.hostile_files import BYTES, DOORS, SECONDS, Outcome, attempt, marks_of

# An outcome without a mark, and the outcome of a harmless file to compare it with.
RIGHT = Outcome(1, 3.0, 1 << 20, "Error: 'x.yaml' has more than 3 lines.\n", False)
HARMLESS = Outcome(1, 2.0, 1 << 20, "Error: 'x.yaml' is empty.\n", False)


@pytest.mark.parametrize(
    ('change', 'mark'),
    [
        (dict(status=-9), 'status -9'),
        (dict(seconds=SECONDS + 3.1), 'too slow'),
        (dict(bytes=BYTES + 1), 'too large'),
        (dict(ran=True), 'code was run'),
        (dict(output='Error: it is wrong.'), 'x.yaml is not named'),
        (dict(output="Traceback (most recent call last):\n'x.yaml'"), 'a traceback'),
    ],
)
def test_unwanted_outcomes_are_marks(change, mark):
    assert marks_of(RIGHT, 'x.yaml', HARMLESS) == []
    assert marks_of(RIGHT._replace(**change), 'x.yaml', HARMLESS) == [mark]


def test_files_that_are_read_may_take_as_much_as_harmless_ones():
    read = RIGHT._replace(status=0, output='cat 0.9')
    assert marks_of(read, 'x.yaml', HARMLESS) == []
    costly = read._replace(seconds=40.0, bytes=2 * BYTES)
    assert marks_of(costly, 'x.yaml', HARMLESS) == ['too slow', 'too large']
    assert marks_of(costly, 'x.yaml', read._replace(seconds=31.0, bytes=2 * BYTES)) == []


def test_kinds_write_the_file_that_they_name(tmp_path):
    """Without the large files, which take too long."""
    for i, (name, kind) in enumerate([*kinds.CONFIGS.items(), *kinds.NAMES.items()]):
        if 'MB' not in name and 'million' not in name:
            folder = tmp_path / str(i)
            folder.mkdir()
            assert list(folder.rglob(kind(folder))), name


@pytest.mark.nightly
@pytest.mark.parametrize('door', ['GRAPHS', 'IMAGES', 'FOLDERS'])
def test_fast_doors_leave_no_mark(door):
    pytest.importorskip('onnx')
    pytest.importorskip('onnxruntime')
    pytest.importorskip('h5py')
    harmless = attempt(DOORS[door], DOORS[door].harmless)[0]
    for name, kind in DOORS[door].files.items():
        assert not marks_of(*attempt(DOORS[door], kind), harmless), name
