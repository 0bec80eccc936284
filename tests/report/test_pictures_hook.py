"""Pictures that the hook logs during a run, drawn with the weights that are validated."""

from types import SimpleNamespace

import pytest
import torch
from matplotlib.figure import Figure
from mmengine.hooks import Hook
from rejection import rejects
from torch import nn

from benchmarks.tiny_run import build, tiny_cfg
from vit_plugin.engine import PicturesHook
from vit_plugin.report import pictures_hook
from vit_plugin.report.pictures import pictures

pytestmark = pytest.mark.filterwarnings('ignore')


def test_pictures_and_the_report_are_logged_as_images(tmp_path):
    events = pytest.importorskip('tensorboard.backend.event_processing.event_accumulator')
    pytest.importorskip('tensorboard', reason='tensorboard is not installed')
    cfg = tiny_cfg(
        tmp_path,
        custom_hooks=[
            dict(
                type='vit_plugin.PicturesHook',
                pictures=['features', 'rollout', 'distance', 'posembed'],
                samples=[1],
                interval=2,
            ),
            dict(type='vit_plugin.ReportHook', pictures=False),
        ],
    )
    cfg.visualizer = dict(
        type='Visualizer',
        name=cfg.experiment_name,
        vis_backends=[dict(type='TensorboardVisBackend')],
    )
    build(cfg).train()
    folder = next(tmp_path.rglob('events.out.tfevents*')).parent
    log = events.EventAccumulator(str(folder)).Reload()
    tags = log.Tags()
    assert set(tags['images']) == {
        'features_1',
        'rollout_1',
        'distance',
        'posembed',
        'learning_curve',
        'confusion_matrix',
    }
    # After the first and the third of three epochs.
    assert [event.step for event in log.Images('features_1')] == [4, 12]
    assert 'accuracy/top1' in tags['scalars']


def test_pictures_show_the_validated_weights(tmp_path, monkeypatch):
    validated, drawn = [], []

    def weights_of(model: nn.Module) -> list[torch.Tensor]:
        return [value.clone() for value in model.state_dict().values()]

    class Validated(Hook):
        def after_val_iter(self, runner, batch_idx, data_batch=None, outputs=None):
            if batch_idx == 0:
                validated.append(weights_of(runner.model))

    def draw(model: nn.Module, prepared: object) -> Figure:
        drawn.append(weights_of(model))
        return Figure()

    monkeypatch.setitem(pictures.PER_IMAGE, 'features', draw)
    runner = build(
        tiny_cfg(
            tmp_path,
            custom_hooks=[
                dict(type='EMAHook', momentum=0.3),
                dict(type='vit_plugin.PicturesHook', samples=[0]),
            ],
        )
    )
    runner.register_hook(Validated())
    runner.train()
    assert len(drawn) == len(validated) == 3
    for drawn_weights, validated_weights in zip(drawn, validated, strict=True):
        assert all(map(torch.equal, drawn_weights, validated_weights))


def test_invalid_arguments_raise(tmp_path):
    with rejects("no picture 'attentions'; give some of attention, rollout"):
        PicturesHook(pictures=['attentions'])
    with rejects(r'samples=\[\] leaves nothing to draw'):
        PicturesHook(samples=[])
    PicturesHook(['posembed'], samples=[])
    cfg = tiny_cfg(tmp_path, custom_hooks=[dict(type='vit_plugin.PicturesHook', samples=[10**6])])
    with rejects(r'no sample 1000000, since the validation set has \d+ samples; give others'):
        build(cfg).train()


@pytest.mark.parametrize('number', [2, 5])
def test_by_default_the_first_three_samples_that_exist_are_drawn(monkeypatch, number):
    drawn = []
    monkeypatch.setattr(pictures_hook.PreparedImage, 'from_batch', lambda model, batch: batch[0])
    monkeypatch.setattr(
        pictures_hook, 'log_image', lambda runner, name, figure: drawn.append((name, figure))
    )
    monkeypatch.setitem(pictures.PER_IMAGE, 'features', lambda model, image: image)
    loader = SimpleNamespace(dataset=[*range(number)])
    runner = SimpleNamespace(model=nn.Identity(), val_dataloader=loader)
    PicturesHook().after_val_epoch(runner)
    assert drawn == [(f'features_{i}', i) for i in range(min(3, number))]


def test_missing_sample_raises_on_every_rank(monkeypatch):
    monkeypatch.setattr(pictures_hook, 'is_main_process', lambda: False)
    loader = SimpleNamespace(dataset=[0, 1])
    runner = SimpleNamespace(model=nn.Identity(), val_dataloader=loader)
    with rejects('no sample 2'):
        PicturesHook(samples=[2]).after_val_epoch(runner)
