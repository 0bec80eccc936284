"""A checkpoint of another run is refused in a sentence that says what differs."""

import re

import pytest
import torch
from campaigns.tiny_run import build, tiny_cfg

from vit_plugin.errors import ConfigError

pytestmark = pytest.mark.filterwarnings('ignore')


@pytest.fixture(scope='module')
def saved(tmp_path_factory):
    """A checkpoint of the tiny run, at its beginning."""
    folder = tmp_path_factory.mktemp('saved')
    runner = build(tiny_cfg(folder, custom_hooks=[]))
    runner.optim_wrapper = runner.build_optim_wrapper(runner.optim_wrapper)
    runner.param_schedulers = runner.build_param_scheduler(runner.param_schedulers)
    runner.save_checkpoint(str(folder), 'epoch_1.pth', meta=dict(epoch=1, iter=4))
    return folder / 'epoch_1.pth'


@pytest.mark.parametrize(('options', 'words'), [
    ({'model.backbone.arch.num_layers': 3}, 'it has no backbone.blocks.2.*, which the model has'),
    ({'model.backbone.arch.num_layers': 1}, 'it has backbone.blocks.1.*, which the model has not'),
    ({'model.backbone.arch.feedforward_channels': 48}, r'is of the shape \(64, 32\), and the model.s \(48, 32\)'),
    ({'optim_wrapper.optimizer': dict(type='SGD', lr=0.1)}, 'its optimizer is AdamW, and this config.s SGD'),
    ({'optim_wrapper.paramwise_cfg': dict(norm_decay_mult=0.)}, 'other groups of parameters'),
    ({'train_dataloader.batch_size': 8}, '16 samples in an iteration, and this one takes 8 .*batch_size=16 with these'),
])
def test_another_run_is_told(tmp_path, saved, options, words):
    runner = build(tiny_cfg(tmp_path, custom_hooks=[], **options))
    with pytest.raises(ConfigError, match=f'{re.escape(str(saved))}.*{words}.*load_from=FILE'):
        runner.resume(str(saved))


def test_the_same_run_goes_on(tmp_path, saved):
    runner = build(tiny_cfg(tmp_path, custom_hooks=[]))
    runner.resume(str(saved))
    assert (runner.epoch, runner.iter) == (1, 4)


def test_a_checkpoint_of_mmengine(tmp_path, saved):
    """It has no names, so only the kind of the optimizer is seen."""
    checkpoint = torch.load(saved, weights_only=False)
    del checkpoint['meta']['run']
    torch.save(checkpoint, tmp_path / 'theirs.pth')
    build(tiny_cfg(tmp_path / 'a', custom_hooks=[])).resume(str(tmp_path / 'theirs.pth'))
    other = build(tiny_cfg(tmp_path / 'b', custom_hooks=[], **{
        'optim_wrapper.optimizer': dict(type='SGD', lr=0.1, momentum=0.9)}))
    with pytest.raises(ConfigError, match='its optimizer has no momentum, which SGD has'):
        other.resume(str(tmp_path / 'theirs.pth'))
    assert not other.resuming


def test_a_run_of_one_cycle_goes_on(tmp_path):
    cycle = dict(type='OneCycleLR', eta_max=1e-3, by_epoch=True, convert_to_iter_based=True)
    cfg = tiny_cfg(tmp_path, custom_hooks=[], param_scheduler=[cycle])
    build(cfg).train()
    again = build(tiny_cfg(tmp_path, custom_hooks=[], param_scheduler=[cycle]))
    again.resume(str(tmp_path / 'epoch_1.pth'))  # MMEngine's state of this schedule has a function in it
    assert again.epoch == 1
