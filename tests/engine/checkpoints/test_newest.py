"""The checkpoint that a run resumes from."""

import os
import time
from pathlib import Path

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rejection import rejects

from vit_plugin.engine.checkpoints.folder import write_folder
from vit_plugin.engine.checkpoints.newest import newest_checkpoint
from vit_plugin.weights.reading.plain import split_tensors

pytestmark = pytest.mark.filterwarnings('ignore')


def save_weights(folder: Path, *epochs: int) -> None:
    """Write checkpoints with weights only, so without a position and the start of a run."""
    folder.mkdir(exist_ok=True)
    for epoch in epochs:
        torch.save(dict(a=torch.zeros(3)), folder / f'epoch_{epoch}.pth')


def test_checkpoints_of_an_earlier_run_are_ignored(tmp_path):
    """In the folder of a longer run, a new run resumes from its own last checkpoint."""
    for epoch in (3, 4, 90):
        save_at(tmp_path / f'epoch_{epoch}.pth', epoch, began='20260101_000000')
    save_at(tmp_path / 'epoch_5.pth', 5)
    (tmp_path / 'last_checkpoint').write_text(str(tmp_path / 'epoch_5.pth'))
    assert newest_checkpoint(tmp_path) == str(tmp_path / 'epoch_5.pth')
    save_at(tmp_path / 'epoch_6.pth', 6)
    assert newest_checkpoint(tmp_path) == str(tmp_path / 'epoch_6.pth')
    (tmp_path / 'last_checkpoint').unlink()  # without it, the run that began last counts
    assert newest_checkpoint(tmp_path) == str(tmp_path / 'epoch_6.pth')


def set_times_in_order(*paths: Path) -> None:
    """Give the files, and the manifests of folders, times one second apart."""
    now = time.time()
    for i, path in enumerate(paths, -len(paths)):
        path = path / 'manifest.json' if path.is_dir() else path
        if path.exists():
            os.utime(path, (now + i, now + i))


def save_at(path: Path, iteration: int, began: str = '20260102_000000') -> Path:
    """Save a checkpoint of an iteration: as a file, or as a folder if the name has no suffix."""
    state = dict(
        meta=dict(epoch=0, iter=iteration),
        state_dict=dict(a=torch.zeros(3)),
        message_hub=dict(runtime_info=dict(began=began)),
    )
    if path.suffix:
        torch.save(state, path)
    else:
        write_folder(path, *split_tensors(state), None)
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
def test_latest_readable_checkpoint_is_taken(tmp_path, names, marked):
    """Checkpoints of epochs and iterations, as files and folders; damaged ones are passed over."""
    paths = [save_at(tmp_path / name, 5 * i) for i, name in enumerate(names)]
    if marked is not None:
        (tmp_path / 'last_checkpoint').write_text(str(paths[marked]))
    set_times_in_order(
        *paths[: (marked or 0) + 1], tmp_path / 'last_checkpoint', *paths[(marked or 0) + 1 :]
    )
    for i in (3, 2, 1):
        assert newest_checkpoint(tmp_path) == str(paths[i])
        damaged = paths[i] if paths[i].is_file() else paths[i] / 'run.json'
        modified = damaged.stat().st_mtime_ns
        damaged.write_bytes(damaged.read_bytes()[:-1000])
        os.utime(damaged, ns=(modified, modified))
    assert newest_checkpoint(tmp_path) == str(paths[0])


@pytest.mark.parametrize('marked', [True, False])
def test_modification_times_do_not_matter(tmp_path, marked):
    """After a copy in another order, or with a clock that was set back."""
    names = 'iter_1.pth', 'epoch_9', 'iter_7'
    paths = [save_at(tmp_path / name, 5 * i) for i, name in enumerate(names)]
    if marked:
        (tmp_path / 'last_checkpoint').write_text(str(paths[-1]))
    set_times_in_order(tmp_path / 'last_checkpoint', *reversed(paths))
    assert newest_checkpoint(tmp_path) == str(paths[-1])


def test_runs_without_a_start_time_are_told_apart_by_their_seed(tmp_path):
    """As in checkpoints of MMEngine's own runner, and of our earlier versions."""
    for epoch, seed in ((1, 3), (2, 3), (90, 5)):
        torch.save(dict(meta=dict(iter=epoch, seed=seed)), tmp_path / f'epoch_{epoch}.pth')
    (tmp_path / 'last_checkpoint').write_text('epoch_1.pth')
    assert newest_checkpoint(tmp_path) == str(tmp_path / 'epoch_2.pth')


def test_folders_of_other_programs_are_ignored(tmp_path):
    (tmp_path / 'epoch_3').mkdir()
    (tmp_path / 'epoch_3/mp_rank_00_model_states.pt').write_bytes(b'content')
    assert newest_checkpoint(tmp_path) is None
    save_at(tmp_path / 'epoch_1.pth', 5)
    (tmp_path / 'last_checkpoint').write_text(str(tmp_path / 'epoch_3'))
    assert newest_checkpoint(tmp_path) == str(tmp_path / 'epoch_1.pth')


@pytest.mark.parametrize(
    'text',
    [
        '{}/epoch_3.pth',
        'elsewhere/epoch_3.pth',
        'http://x/epoch_3.pth',
        'C:\\runs\\epoch_3.pth',
    ],
)
def test_marker_is_resolved_within_its_own_folder(tmp_path, monkeypatch, text):
    """Its folder may have been moved or copied, while the original continues to train."""
    monkeypatch.chdir(tmp_path)
    save_weights(tmp_path / 'elsewhere', 3)
    work_dir = tmp_path / 'work'
    work_dir.mkdir()
    (work_dir / 'last_checkpoint').write_text(text.format(tmp_path / 'elsewhere'))
    with rejects('which is not there in .*work'):
        newest_checkpoint(work_dir)
    save_weights(work_dir, 2)
    assert newest_checkpoint(work_dir) == str(work_dir / 'epoch_2.pth')
    save_weights(work_dir, 3)
    assert newest_checkpoint(work_dir) == str(work_dir / 'epoch_3.pth')


def test_checkpoints_may_be_in_a_configured_folder(tmp_path):
    save_weights(tmp_path / 'disk', 3)
    (tmp_path / 'last_checkpoint').write_text(str(tmp_path / 'disk/epoch_3.pth'))
    assert newest_checkpoint(tmp_path, tmp_path / 'disk') == str(tmp_path / 'disk/epoch_3.pth')
    bucket = 's3://bucket/run'
    assert newest_checkpoint(tmp_path, bucket) is None
    (tmp_path / 'last_checkpoint').write_text(f'{bucket}/epoch_3.pth')
    assert newest_checkpoint(tmp_path, bucket) == f'{bucket}/epoch_3.pth'


@settings(max_examples=30)
@given(st.binary(max_size=60) | st.text('/._\0a', max_size=6).map(str.encode))
@example(b'/')
@example(b'..')
@example(b'/\x01')
@example(b'/tmp/' + b'a' * 300)
def test_any_content_of_the_marker_is_tolerated(tmp_path_factory, content):
    folder = tmp_path_factory.mktemp('work')
    for epoch in (9, 10):
        torch.save(dict(a=torch.zeros(3)), folder / f'epoch_{epoch}.pth')
    (folder / 'last_checkpoint').write_bytes(content)
    assert newest_checkpoint(folder) == str(folder / 'epoch_10.pth')
