"""Ranks with different configs, data or checkpoints raise on all ranks."""

import os
from pathlib import Path

import pytest
import torch
from mmengine.dist import get_rank
from ranks import on_ranks
from rejection import rejects

from benchmarks.tiny_run import build, tiny_cfg
from vit_plugin.engine import same_ranks
from vit_plugin.engine.same_ranks import (
    RANK_SPECIFIC_SETTINGS,
    check_same,
    collect_checkpoint_facts,
    collect_config_facts,
    collect_data_facts,
)

# A setting of rank 1, its value there, and the error that both ranks raise, if any.
DIFFERENT = {
    'train_dataloader.batch_size': (
        8,
        r'train_dataloader.batch_size: 16 \(rank 0\) or 8 \(rank 1\)',
    ),
    'optim_wrapper.optimizer.foreach': (
        True,
        r'optimizer.foreach: nothing \(rank 0\) or True \(rank 1\)',
    ),
    'val_dataloader.num_workers': (1, None),
    'work_dir': ('elsewhere', None),
}


def start(folder: str, name: str, value: object, words: str | None) -> None:
    """Build a runner whose config differs on rank 1, which raises unless ``words`` is None."""
    cfg = tiny_cfg(folder, launcher='pytorch')
    if get_rank():
        cfg.merge_from_dict({name: value})
    if words is None:
        build(cfg)
        return
    with rejects(f'The processes of this run differ in .*{words}; start all'):
        build(cfg)


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('name', DIFFERENT)
def test_different_settings_of_ranks_raise(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('LOCAL_RANK', '0')
    on_ranks(2, tmp_path, start, str(tmp_path / 'run'), name, *DIFFERENT[name])


def test_message_shows_where_long_values_differ(monkeypatch):
    values = [f'{"class, " * 100}{name}' for name in ('cat', 'dog')]
    facts = [dict(name=value) for value in values]
    monkeypatch.setattr(same_ranks, 'get_world_size', lambda: 2)
    monkeypatch.setattr(
        same_ranks, 'all_gather_object', lambda fact: facts if fact in facts else values
    )
    with rejects(r'differ in name: .*class, cat \(rank 0\) or .*class, dog \(rank 1\); start'):
        check_same(facts[0])


class Data(list):
    """A data set with a root."""

    def __init__(self, root: str, labels: list[int], classes: str = 'ab') -> None:
        self.data_root, self.metainfo = root, dict(classes=tuple(classes))
        super().__init__(labels)

    def get_data_info(self, index: int) -> dict:
        return dict(img_path=f'{self.data_root}/here_{index}.jpg', gt_label=self[index])


def test_facts_depend_on_content_and_not_on_paths():
    facts = collect_data_facts(Data('/here', [0, 1, 2]), 'it')
    for root in ('/there', 'here', 'img'):
        assert facts == collect_data_facts(Data(root, [0, 1, 2]), 'it')
    for changed in (
        Data('/here', [0, 1, 1]),
        Data('/here', [0, 1]),
        Data('/here', [0, 1, 2], 'ac'),
    ):
        assert facts != collect_data_facts(changed, 'it')
    settings = dict(
        a=[dict(b=1), ()], f=collect_data_facts, **dict.fromkeys(RANK_SPECIFIC_SETTINGS, 1)
    )
    assert collect_config_facts(settings) == {
        'a.0.b': '1',
        'a.1': '()',
        'f': '<function collect_data_facts>',
    }


def test_checkpoints_are_compared_by_size_and_content(tmp_path):
    def fact(name: str, **weights: float) -> str:
        path = tmp_path / name
        torch.save({key: torch.full((99_999,), value) for key, value in weights.items()}, path)
        return collect_checkpoint_facts(str(path))[f'the checkpoint {str(path)!r}']

    first = fact('a.pth', x=1.0, y=2.0)
    assert first == fact('a.pth', x=1.0, y=2.0)
    assert first != fact('a.pth', x=1.5, y=2.0)
    missing = str(tmp_path / 'none.pth')
    assert collect_checkpoint_facts(missing) == {
        f'the checkpoint {missing!r}': 'No such file or directory'
    }
    assert collect_checkpoint_facts('https://there.org/a.pth') == {}


def resume_without_shared_disk(folder: Path) -> None:
    """Resume where rank 1 has no checkpoint of the run, as on a machine with another disk."""
    os.chdir(folder / f'machine_{get_rank()}')
    file = 'run/epoch_3.pth'  # relative, so the ranks have different files
    runner = build(tiny_cfg('run', launcher='pytorch', load_from=file, resume=True))
    words = r"'run/epoch_3.pth': \d+ bytes, \w+ \(rank 0\) or No such file .*; put the same file"
    with rejects(words):
        runner.train()


@pytest.mark.filterwarnings('ignore')
def test_checkpoint_missing_on_one_rank_raises(tmp_path, monkeypatch):
    monkeypatch.setenv('LOCAL_RANK', '0')
    for rank in (0, 1):
        (tmp_path / f'machine_{rank}').mkdir()
    build(tiny_cfg(tmp_path / 'machine_0/run', **{'train_cfg.val_interval': 9})).train()
    on_ranks(2, tmp_path, resume_without_shared_disk, tmp_path)
