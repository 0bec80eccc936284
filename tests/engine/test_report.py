import json
from pathlib import Path

import pytest

from vit_plugin.engine import Runner


@pytest.mark.filterwarnings('ignore')
def test_a_run_leaves_its_record_and_a_resumed_one_goes_on_with_it(digits_config):
    cfg = digits_config
    folder = Path(cfg.work_dir)
    Runner.from_cfg(cfg).train()
    record = json.loads((folder / 'metrics.json').read_text())
    assert record['epochs'] == 3
    assert [epoch for epoch, _ in record['history']['accuracy/top1']] == [1, 2, 3]
    matrix = record['confusion_matrix']
    assert sum(map(sum, matrix)) == 30
    right = sum(matrix[i][i] for i in range(10))
    assert record['last']['accuracy/top1'] == pytest.approx(100 * right / 30)
    assert record['max']['accuracy/top1'] >= record['last']['accuracy/top1']
    for picture in ('learning_curve.png', 'confusion_matrix.png'):
        assert (folder / picture).stat().st_size > 5000

    cfg.merge_from_dict({'train_cfg.max_epochs': 4, 'resume': True, 'experiment_name': 'resumed'})
    Runner.from_cfg(cfg).train()
    resumed = json.loads((folder / 'metrics.json').read_text())
    assert resumed['history']['accuracy/top1'][:3] == record['history']['accuracy/top1']
    assert [epoch for epoch, _ in resumed['history']['accuracy/top1']] == [1, 2, 3, 4]
    assert resumed['seconds'] > record['seconds']
    assert [step for step, _ in resumed['clock']] == [step for step, _ in resumed['history']['accuracy/top1']]
    assert resumed['clock'][:2] == record['clock'][:2]  # the checkpoint is from before the third

    cfg.experiment_name = 'finished'
    Runner.from_cfg(cfg).train()  # there is nothing left to train
    finished = json.loads((folder / 'metrics.json').read_text())
    assert all(finished[name] == resumed[name] for name in ('history', 'confusion_matrix', 'epochs', 'iterations'))


@pytest.mark.filterwarnings('ignore')
def test_a_run_by_iterations(digits_config):
    cfg = digits_config
    cfg.train_dataloader.sampler.type = 'InfiniteSampler'
    cfg.param_scheduler = None
    cfg.train_cfg = dict(by_epoch=False, max_iters=6, val_interval=2)
    cfg.log_processor = dict(by_epoch=False)
    cfg.default_hooks.checkpoint.by_epoch = False
    Runner.from_cfg(cfg).train()
    record = json.loads(Path(cfg.work_dir, 'metrics.json').read_text())
    assert [step for step, _ in record['history']['accuracy/top1']] == [2, 4, 6]
