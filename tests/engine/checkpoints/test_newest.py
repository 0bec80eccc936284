"""The checkpoint that a run resumes from."""

import os
import time
from pathlib import Path

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from vit_plugin.engine.checkpoints.folder import write_folder
from vit_plugin.engine.checkpoints.newest import newest_checkpoint
from vit_plugin.weights.reading.plain import split

pytestmark = pytest.mark.filterwarnings('ignore')


def saved(folder: Path, *epochs: int) -> None:
    folder.mkdir(exist_ok=True)
    for epoch in epochs:
        torch.save(dict(a=torch.zeros(3)), folder / f'epoch_{epoch}.pth')


def test_an_earlier_runs_checkpoints_are_left_alone(tmp_path):
    """A fresh run in the folder of a longer one: its marker counts, unless a later file was written
    after it.
    """
    saved(tmp_path, 4, 5, 90)
    (tmp_path / 'last_checkpoint').write_text(str(tmp_path / 'epoch_5.pth'))
    written_in_order(
        *(tmp_path / f'epoch_{epoch}.pth' for epoch in (90, 4, 5)), tmp_path / 'last_checkpoint'
    )
    assert newest_checkpoint(tmp_path) == str(tmp_path / 'epoch_5.pth')
    saved(tmp_path, 6)
    assert newest_checkpoint(tmp_path) == str(tmp_path / 'epoch_6.pth')


def written_in_order(*paths: Path) -> None:
    """Give the files, and the manifests of folders, times one second apart."""
    now = time.time()
    for i, path in enumerate(paths, -len(paths)):
        path = path / 'manifest.json' if path.is_dir() else path
        if path.exists():
            os.utime(path, (now + i, now + i))


def at(path: Path, iteration: int) -> Path:
    """A checkpoint at an iteration: a file, or a folder if the name has no suffix."""
    state = dict(meta=dict(epoch=0, iter=iteration), state_dict=dict(a=torch.zeros(3)))
    if path.suffix:
        torch.save(state, path)
    else:
        write_folder(path, *split(state), None)
    return path


@pytest.mark.parametrize(
    'names',
    [
        ('epoch_1.pth', 'iter_6.pth', 'epoch_2.pth', 'iter_11.pth'),
        ('epoch_1', 'iter_6', 'epoch_2', 'iter_11'),
        ('epoch_1.pth', 'iter_6', 'epoch_2.pth', 'iter_11'),
    ],
)
@pytest.mark.parametrize('marked', [0, 1, 2, 3, None])
def test_the_last_one_written_is_taken(tmp_path, names, marked):
    """Of epochs and iterations, files and folders. What is damaged is passed over."""
    paths = [at(tmp_path / name, 5 * i) for i, name in enumerate(names)]
    if marked is not None:
        (tmp_path / 'last_checkpoint').write_text(str(paths[marked]))
    written_in_order(
        *paths[: (marked or 0) + 1], tmp_path / 'last_checkpoint', *paths[(marked or 0) + 1 :]
    )
    for i in (3, 2, 1):
        assert newest_checkpoint(tmp_path) == str(paths[i])
        torn = paths[i] if paths[i].is_file() else paths[i] / 'run.json'
        then = torn.stat().st_mtime_ns
        torn.write_bytes(torn.read_bytes()[:-1000])
        os.utime(torn, ns=(then, then))
    assert newest_checkpoint(tmp_path) == str(paths[0])


def test_later_checkpoints_of_an_earlier_run_are_left_alone(tmp_path):
    """The marker is newer than they are."""
    paths = [
        at(tmp_path / name, i)
        for i, name in enumerate(('iter_90', 'epoch_20.pth', 'iter_6', 'epoch_2'))
    ]
    (tmp_path / 'last_checkpoint').write_text(str(paths[-1]))
    written_in_order(*paths, tmp_path / 'last_checkpoint')
    assert newest_checkpoint(tmp_path) == str(tmp_path / 'epoch_2')
    (tmp_path / 'epoch_2/run.json').write_text('{}')
    assert newest_checkpoint(tmp_path) == str(tmp_path / 'iter_6')


def test_folders_of_other_programs_are_not_taken(tmp_path):
    (tmp_path / 'epoch_3').mkdir()
    (tmp_path / 'epoch_3/mp_rank_00_model_states.pt').write_bytes(b'content')
    assert newest_checkpoint(tmp_path) is None
    at(tmp_path / 'epoch_1.pth', 5)
    (tmp_path / 'last_checkpoint').write_text(str(tmp_path / 'epoch_3'))
    assert newest_checkpoint(tmp_path) == str(tmp_path / 'epoch_1.pth')


def test_markers_of_other_places(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    saved(tmp_path / 'elsewhere', 3)
    work_dir = tmp_path / 'work'
    work_dir.mkdir()
    for text, expected in (
        ('elsewhere/epoch_3.pth', 'elsewhere/epoch_3.pth'),
        ('s3://bucket/epoch_3.pth', 's3://bucket/epoch_3.pth'),
    ):
        (work_dir / 'last_checkpoint').write_text(text)
        assert newest_checkpoint(work_dir) == expected


@settings(max_examples=30)
@given(st.binary(max_size=60) | st.text('/._\0a', max_size=6).map(str.encode))
@example(b'/')
@example(b'..')
@example(b'/\x01')
@example(b'/tmp/' + b'a' * 300)
def test_any_marker_will_do(tmp_path_factory, content):
    folder = tmp_path_factory.mktemp('work')
    for epoch in (9, 10):
        torch.save(dict(a=torch.zeros(3)), folder / f'epoch_{epoch}.pth')
    (folder / 'last_checkpoint').write_bytes(content)
    assert newest_checkpoint(folder) == str(folder / 'epoch_10.pth')
