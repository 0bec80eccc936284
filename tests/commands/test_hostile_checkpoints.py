"""No tool runs code in a checkpoint, whatever the config."""

from pathlib import Path

import pytest
import torch
from mmengine.config import Config

pytestmark = pytest.mark.filterwarnings('ignore')


class Canary:
    """Creates a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple:
        return Path.touch, (self.path,)


@pytest.mark.parametrize('resume', [True, False])
@pytest.mark.parametrize('runner_type', ['vit_plugin.Runner', None])
def test_configs_without_our_types_run_no_code(
    tmp_path, monkeypatch, run_command, resume, runner_type
):
    """In ``train`` and ``test``, with MMEngine's runner and ours."""
    canary = tmp_path / 'canary'
    torch.save(dict(state_dict={}, meta=Canary(canary)), tmp_path / 'hostile.pth')
    dataset = dict(type='FakeData', num_classes=3)
    loader = dict(
        batch_size=2,
        num_workers=0,
        dataset=dataset,
        sampler=dict(type='DefaultSampler', shuffle=False),
    )
    cfg = Config(
        dict(
            default_scope='mmpretrain',
            custom_imports=dict(imports=['fake_data']),
            model=dict(
                type='ImageClassifier',
                backbone=dict(type='ResNet', depth=18, out_indices=(3,)),
                neck=dict(type='GlobalAveragePooling'),
                head=dict(type='LinearClsHead', num_classes=3, in_channels=512),
            ),
            train_dataloader=loader,
            test_dataloader=loader,
            test_evaluator=dict(type='Accuracy'),
            test_cfg=dict(),
            train_cfg=dict(by_epoch=True, max_epochs=1),
            optim_wrapper=dict(optimizer=dict(type='SGD', lr=0.1)),
            **(dict(runner_type=runner_type) if runner_type else {}),
        )
    )
    cfg.dump(tmp_path / 'stock.py')
    monkeypatch.syspath_prepend(Path(__file__).parent)
    hostile = tmp_path / 'hostile.pth'
    train = ['--resume', hostile] if resume else ['--cfg-options', f'load_from={hostile}']
    for arguments in (
        ['test', tmp_path / 'stock.py', tmp_path / 'hostile.pth'],
        ['train', tmp_path / 'stock.py', *train],
    ):
        done = run_command(*arguments, '--work-dir', tmp_path / 'work')
        assert done.returncode == 1
        assert "hostile.pth' is damaged, or holds more than tensors" in done.stderr.splitlines()[-1]
        assert not canary.exists()
    torch.load(tmp_path / 'hostile.pth', weights_only=False)
    assert canary.exists()  # the file is hostile indeed
