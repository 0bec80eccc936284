"""The checkpoint that is chosen from the folder of a run."""

from pathlib import Path

import pytest
import torch
from rejection import rejects

from vit_plugin.engine.checkpoints.chosen import choose_checkpoint

BEST = 'best_accuracy_top1_epoch_'


def save(folder: Path, name: str, iteration: int, began: str = 'now', **info: str) -> None:
    """Write a checkpoint of a run that began at a time; hooks have recorded ``info``."""
    torch.save(
        dict(
            meta=dict(iter=iteration),
            state_dict=dict(a=torch.zeros(3)),
            message_hub=dict(runtime_info=dict(info, began=began)),
        ),
        folder / name,
    )


@pytest.fixture
def folder(tmp_path) -> Path:
    """The folder of a run of three epochs without a best checkpoint."""
    for epoch in (1, 2, 3):
        save(tmp_path, f'epoch_{epoch}.pth', epoch)
    (tmp_path / 'last_checkpoint').write_text('/elsewhere/epoch_3.pth')
    return tmp_path


def chosen(folder: Path, which: str | None = None) -> str:
    """The name of the chosen file, which the message must contain."""
    path, message = choose_checkpoint(folder, which)
    assert Path(path).parent == folder
    assert Path(path).name in message
    return Path(path).name


def test_best_is_chosen_before_last(folder):
    assert chosen(folder) == chosen(folder, 'last') == 'epoch_3.pth'
    with rejects(r'has no readable best checkpoint; .* give --checkpoint last'):
        chosen(folder, 'best')
    save(folder, f'{BEST}2.pth', 2)
    assert chosen(folder) == chosen(folder, 'best') == f'{BEST}2.pth'
    assert chosen(folder, 'last') == 'epoch_3.pth'


@pytest.mark.parametrize('name', ['epoch_1.pth', '{}/epoch_1.pth'])
def test_file_is_chosen_by_name_or_path(folder, name):
    assert chosen(folder, name.format(folder)) == 'epoch_1.pth'


def test_file_of_another_folder_raises(folder):
    (folder / 'other').mkdir()
    save(folder / 'other', 'epoch_9.pth', 9)
    for name in ('epoch_9.pth', str(folder / 'other/epoch_9.pth'), 'other/epoch_9.pth', '..'):
        with rejects(r'no such checkpoint, but epoch_1\.pth, epoch_2\.pth'):
            chosen(folder, name)


def test_latest_best_of_a_metric_is_chosen(folder):
    """If a run is killed before it deletes the previous best, the later one is better."""
    for epoch in (1, 2, 10):
        save(folder, f'{BEST}{epoch}.pth', epoch)
    assert chosen(folder) == f'{BEST}10.pth'
    (folder / f'{BEST}10.pth').write_bytes(b'PK torn')
    assert chosen(folder) == f'{BEST}2.pth'


def test_best_of_the_first_metric_is_chosen(folder):
    """The first metric of ``save_best``; the message names the file of the other."""
    names = dict(best_ckpt_z='/elsewhere/best_z_epoch_1.pth', best_ckpt_a='x/best_a_epoch_2.pth')
    save(folder, 'best_z_epoch_1.pth', 1)
    save(folder, 'best_a_epoch_2.pth', 2, **names)
    path, message = choose_checkpoint(folder)
    assert Path(path).name == 'best_z_epoch_1.pth'
    assert 'best_a_epoch_2.pth' in message


def test_best_of_an_earlier_run_is_ignored(folder):
    """Unless the run resumed from it, so its last checkpoint names this best."""
    save(folder, f'{BEST}90.pth', 90, began='before')
    assert chosen(folder) == 'epoch_3.pth'
    save(folder, 'epoch_3.pth', 3, best_ckpt=f'/elsewhere/{BEST}90.pth')
    assert chosen(folder) == f'{BEST}90.pth'


def test_folder_without_checkpoints_raises(tmp_path):
    with rejects('no checkpoints of a run, perhaps because the run ended'):
        choose_checkpoint(tmp_path)


def test_folder_with_only_an_adapter_raises(tmp_path):
    (tmp_path / 'adapter_config.json').write_text('{}')
    with rejects('has only the adapter of another model .*merge_and_unload'):
        choose_checkpoint(tmp_path)
