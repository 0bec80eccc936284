"""Going on with a run: from the newest checkpoint that is whole, and without running what one holds."""

import os
from pathlib import Path

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from vit_plugin.engine.checkpoints.folder import write_folder
from vit_plugin.engine.checkpoints.newest import newest_checkpoint
from vit_plugin.weights.plain import split

pytestmark = pytest.mark.filterwarnings('ignore')


def saved(folder: Path, *epochs: int) -> None:
    folder.mkdir(exist_ok=True)
    for epoch in epochs:
        torch.save(dict(a=torch.zeros(3)), folder / f'epoch_{epoch}.pth')


def test_an_earlier_runs_checkpoints_are_left_alone(tmp_path):
    """A fresh run in the folder of a longer one: its marker counts, unless a later file was written after it."""
    saved(tmp_path, 4, 5, 90)
    (tmp_path / 'last_checkpoint').write_text(str(tmp_path / 'epoch_5.pth'))
    assert newest_checkpoint(tmp_path) == str(tmp_path / 'epoch_5.pth')
    saved(tmp_path, 6)
    later = (tmp_path / 'last_checkpoint').stat().st_mtime_ns + 10**9
    os.utime(tmp_path / 'epoch_6.pth', ns=(later, later))
    assert newest_checkpoint(tmp_path) == str(tmp_path / 'epoch_6.pth')


def at(path: Path, iteration: int) -> Path:
    """A checkpoint at an iteration: a file, or a folder if the name has no suffix."""
    state = dict(meta=dict(epoch=0, iter=iteration), state_dict=dict(a=torch.zeros(3)))
    if path.suffix:
        torch.save(state, path)
    else:
        write_folder(path, *split(state), None)
    return path


@pytest.mark.parametrize('names', [('epoch_1.pth', 'iter_6.pth', 'epoch_2.pth', 'iter_11.pth'),
                                   ('epoch_1', 'iter_6', 'epoch_2', 'iter_11'),
                                   ('epoch_1.pth', 'iter_6', 'epoch_2.pth', 'iter_11')])
@pytest.mark.parametrize('marked', [0, 1, 2, 3, None])
def test_epochs_and_iterations_files_and_folders_have_one_order(tmp_path, names, marked):
    """An epoch has 5 iterations. What is damaged is passed over, and what was saved after the marker is taken."""
    paths = []
    for i, (name, iteration) in enumerate(zip(names, (5, 6, 10, 11), strict=True)):
        paths.append(at(tmp_path / name, iteration))
        if i == marked:
            (tmp_path / 'last_checkpoint').write_text(str(paths[-1]))
    for i in (3, 2, 1):
        assert newest_checkpoint(tmp_path) == str(paths[i])
        torn = paths[i] if paths[i].is_file() else paths[i] / 'run.json'
        torn.write_bytes(torn.read_bytes()[:-1000])
    assert newest_checkpoint(tmp_path) == str(paths[0])


def test_later_checkpoints_of_an_earlier_run_are_left_alone(tmp_path):
    """Of either name: the marker is newer than they are."""
    for name, iteration in (('iter_90', 90), ('epoch_20.pth', 100), ('iter_6', 6), ('epoch_2', 10)):
        at(tmp_path / name, iteration)
    (tmp_path / 'last_checkpoint').write_text(str(tmp_path / 'epoch_2'))
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
    for text, expected in (('elsewhere/epoch_3.pth', 'elsewhere/epoch_3.pth'),
                           ('s3://bucket/epoch_3.pth', 's3://bucket/epoch_3.pth')):
        (work_dir / 'last_checkpoint').write_text(text)
        assert newest_checkpoint(work_dir) == expected


@settings(max_examples=30, deadline=None)
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
