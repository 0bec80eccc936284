"""The annealing of EoMT's masks during a run, also after resuming."""

import pytest
import torch
from mmengine.registry import MODELS
from rejection import rejects
from torch import Tensor, nn

from benchmarks.exactness import compare, stop_and_resume, train
from benchmarks.tiny_run import MODEL, tiny_cfg
from vit_plugin.engine import MaskAnnealingHook


def test_blocks_are_annealed_one_after_the_other():
    """The authors' run on DINOv2 has 39,120 steps and anneals each of 4 blocks in 6,520 of them."""
    hook = MaskAnnealingHook()
    assert hook.probs(4, 0.0) == hook.probs(4, 1 / 6) == [1.0] * 4
    assert hook.probs(4, 0.25) == [pytest.approx(0.5**0.9), 1.0, 1.0, 1.0]
    assert hook.probs(4, 0.5)[:2] == [0.0, pytest.approx(0.0, abs=1e-9)]
    assert hook.probs(4, 5 / 6) == hook.probs(4, 1.0) == [pytest.approx(0.0)] * 4
    assert MaskAnnealingHook((0.0,), (0.5,), power=1.0).probs(1, 0.125) == [0.75]


@pytest.mark.parametrize(('begin', 'end'), [((0.0,), None), ((0.5,), (0.5,)), ((0.0, 0.1), (1.0,))])
def test_wrong_fractions_raise(begin, end):
    with rejects('must have one fraction for each block'):
        MaskAnnealingHook(begin, end)


@MODELS.register_module()
class MeanOfPredictions(nn.Module):
    """Averages the predictions of an EoMT to a vector for each image, for a classifier's head.

    So the tiny run, which trains a classifier, can train an EoMT.
    """

    def forward(self, predictions: tuple) -> tuple[Tensor]:
        return (
            sum(classes.mean(1) + masks.mean((1, 2, 3))[:, None] for classes, masks in predictions),
        )


OPTIONS = dict(
    model=dict(
        MODEL,
        neck=dict(type='MeanOfPredictions'),
        head=dict(MODEL['head'], in_channels=6),
        backbone=dict(
            {name: value for name, value in MODEL['backbone'].items() if name != 'out_type'},
            type='vit_plugin.EoMT',
            num_classes=5,
            num_queries=4,
            num_blocks=2,
        ),
    ),
    custom_hooks=[
        dict(type='vit_plugin.EMAHook', momentum=0.3),
        dict(type='vit_plugin.MaskAnnealingHook'),
        dict(type='vit_plugin.ReportHook'),
    ],
)


@pytest.mark.filterwarnings('ignore')
@pytest.mark.nightly
def test_resumed_run_ends_as_an_uninterrupted_one(tmp_path):
    """Both runs mask the same queries at random. After the run, none is masked."""
    runner = train(tiny_cfg(tmp_path / 'complete', **OPTIONS))
    stop_and_resume(tmp_path / 'stopped', 6, 'epoch', **OPTIONS)
    assert compare(tmp_path / 'complete', tmp_path / 'stopped') == []
    saved = torch.load(tmp_path / 'stopped/epoch_3.pth', weights_only=False)
    assert saved['state_dict']['backbone.queries.attn_mask_probs'].tolist() == [0.0, 0.0]
    assert len(runner.model.backbone.eval()(torch.zeros(1, 1, 8, 8))) == 1


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize(
    ('hook', 'model', 'message'),
    [
        ({}, MODEL, 'the model has no queries with masks'),
        (dict(begin=[0.0], end=[1.0]), OPTIONS['model'], 'begin has 1 fractions for 2 blocks'),
    ],
)
def test_incompatible_models_raise(tmp_path, hook, model, message):
    with rejects(message):
        train(
            tiny_cfg(
                tmp_path,
                model=model,
                custom_hooks=[dict(hook, type='vit_plugin.MaskAnnealingHook')],
            )
        )
