"""A command's answer is its first line, whatever the frameworks print at their import."""

import subprocess
import sys
from pathlib import Path

import pytest
from extras import needs_mmdet, needs_mmseg
from image_folders import (
    write_coco,
    write_depth,
    write_digits,
    write_flat,
    write_masks,
    write_panoptic,
)

ROOT = Path(__file__).parents[2]


def first_line(folder: Path, *words: str) -> str:
    """The first line on both outputs, in a process that has imported nothing yet."""
    done = subprocess.run(
        [sys.executable, '-m', 'vit_plugin', 'train', '--data', 'in', '--check', *words],
        cwd=folder,
        env={'PYTHONPATH': str(ROOT), 'PATH': '', 'HOME': str(folder), 'OMP_NUM_THREADS': '1'},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.stdout.partition('\n')[0]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ('task', 'write'),
    [
        ('classification', write_digits),
        ('pretraining', lambda folder: write_flat(folder, 8)),
        pytest.param('detection', write_coco, marks=needs_mmdet),
        pytest.param(
            'instance', lambda folder: write_coco(folder, polygons=True), marks=needs_mmdet
        ),
        pytest.param('segmentation', write_masks, marks=needs_mmseg),
        pytest.param(
            'segmentation', lambda folder: write_coco(folder, polygons=True), marks=needs_mmseg
        ),
        pytest.param('depth', write_depth, marks=needs_mmseg),
        pytest.param('panoptic', write_panoptic, marks=needs_mmdet),
    ],
)
@pytest.mark.parametrize('is_rejected', [False, True])
def test_the_first_line_is_the_answer(tmp_path, task, write, is_rejected):
    write(tmp_path / 'in')
    if is_rejected:
        for file in sorted((tmp_path / 'in').rglob('*.*')):
            file.write_bytes(b'')
    answers = ('Error: ',) if is_rejected else ('in: ', 'Error: --task panoptic needs panopticapi')
    assert first_line(tmp_path, '--task', task).startswith(answers)
