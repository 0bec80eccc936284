"""LoRA adapters of peft, an optional package: training, resuming, merging, settings."""

import pytest
import torch
from mmengine.model import StochasticWeightAverage
from mmengine.registry import MODELS, DefaultScope
from rejection import rejects
from tiny_models import TINY
from torch import nn

from benchmarks.exactness import train
from benchmarks.tiny_run import MODEL, build, differences, final_checkpoint, tiny_cfg
from vit_plugin.engine.lora_adapters import Lora
from vit_plugin.models import VisionTransformer
from vit_plugin.models.loading import load_trained
from vit_plugin.passes import optimize, restore
from vit_plugin.weights.opening import Checkpoint, open_checkpoint

pytest.importorskip('peft')
pytestmark = pytest.mark.filterwarnings('ignore')
LORA = dict(r=2, alpha=4.0, dropout=0.1)
PLAIN = {'custom_hooks': []}  # without averages of the weights


def classifier() -> nn.Module:
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        return MODELS.build(MODEL)


@pytest.fixture(scope='module')
def runs(tmp_path_factory):
    """A folder of two runs: ``base``, and ``lora``, which trains adapters on its weights."""
    folder = tmp_path_factory.mktemp('runs')
    train(tiny_cfg(folder / 'base', **PLAIN))
    train(
        tiny_cfg(
            folder / 'lora', lora=LORA, load_from=str(final_checkpoint(folder / 'base')), **PLAIN
        )
    )
    return folder


def test_only_adapters_and_head_are_trained(runs):
    before, after = (
        torch.load(final_checkpoint(runs / name), weights_only=False) for name in ('base', 'lora')
    )
    learned = {
        name
        for name, value in after['state_dict'].items()
        if not torch.equal(
            value, before['state_dict'].get(name.replace('.base_layer.', '.'), torch.zeros(0))
        )
    }
    assert {name.partition('.')[0] for name in learned if '.lora_' not in name} == {'head'}
    layers = 2 * 4  # two blocks with qkv, proj, fc1 and fc2
    assert sum('.lora_B.' in name for name in learned) == layers
    # Two matrices for each layer, and the weight and bias of the head.
    assert len(after['optimizer']['state']) == 2 * layers + 2
    assert after['meta']['lora'] == dict(LORA, targets=None)


def test_adapters_in_begin_from_are_loaded_if_there_is_nothing_to_resume(runs, tmp_path):
    path = final_checkpoint(runs / 'lora')
    runner = build(tiny_cfg(tmp_path, resume=True, begin_from=str(path), lora=LORA, **PLAIN))
    runner.load_or_resume()
    saved = torch.load(path, weights_only=False)['state_dict']
    assert all(torch.equal(value, saved[name]) for name, value in runner.model.state_dict().items())


def test_resumed_run_ends_as_an_uninterrupted_one(runs, tmp_path):
    options = dict(PLAIN, lora=LORA, begin_from=str(final_checkpoint(runs / 'base')))
    train(tiny_cfg(tmp_path, resume=True, **options), 6)
    train(tiny_cfg(tmp_path, resume=True, **options))
    assert differences(final_checkpoint(runs / 'lora'), final_checkpoint(tmp_path)) == []


def test_merged_weights_are_the_same_model(runs):
    path = str(final_checkpoint(runs / 'lora'))
    content = torch.load(path, weights_only=False)
    content['state_dict'] = {
        name: value.double() if value.is_floating_point() else value
        for name, value in content['state_dict'].items()
    }
    adapted, merged = classifier(), classifier().double().eval()
    Lora(**LORA).inject(adapted)
    adapted.double().eval().load_state_dict(content['state_dict'])
    merged.load_state_dict(Checkpoint('x.pth', content).weights)
    images = torch.randn(4, 1, 8, 8, dtype=torch.double)
    torch.testing.assert_close(adapted(images)[0], merged(images)[0], rtol=0, atol=1e-12)
    loaded = classifier().eval()
    load_trained(loaded, open_checkpoint(path))  # as infer.py does
    torch.testing.assert_close(
        loaded(images.float())[0].double(), merged(images)[0], rtol=0, atol=1e-5
    )


def test_passes_keep_the_outputs_of_an_adapted_model(runs):
    model = classifier()
    Lora(**LORA).inject(model)
    model.load_state_dict(
        torch.load(final_checkpoint(runs / 'lora'), weights_only=False)['state_dict']
    )
    images = torch.randn(4, 1, 8, 8)
    with torch.no_grad():
        expected = model.eval()(images)[0]
        optimize(model)
        torch.testing.assert_close(model(images)[0], expected, rtol=1e-5, atol=1e-5)
        restore(model)


def test_the_checkpoint_is_tested_with_and_without_adapters(runs, tmp_path):
    scores = []
    for lora in (dict(lora=LORA), {}):
        cfg = tiny_cfg(tmp_path, load_from=str(final_checkpoint(runs / 'lora')), **PLAIN, **lora)
        cfg.update(
            test_dataloader=cfg.val_dataloader, test_cfg=dict(), test_evaluator=cfg.val_evaluator
        )
        runner = build(cfg)
        scores.append(runner.test())
        assert any('.lora_A.' in name for name in runner.model.state_dict()) == bool(lora)
    assert scores[0] == scores[1]


def test_adapters_train_in_frozen_stages_with_their_depths():
    backbone = VisionTransformer(TINY, img_size=32, frozen_stages=1)
    Lora().inject(backbone)
    trainable = {name for name, parameter in backbone.named_parameters() if parameter.requires_grad}
    assert trainable
    assert all('.lora_' in name for name in trainable)
    assert {backbone.get_layer_depth(name)[0] for name in trainable} == {1, 2}


class WithCopy(nn.Module):
    """A model with ``copy_again``, which records the names of trainable parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = VisionTransformer(TINY, img_size=32)
        self.average = StochasticWeightAverage(nn.Linear(2, 2))
        self.copied: list[str] = []

    def copy_again(self) -> None:
        self.copied = [
            name for name, parameter in self.named_parameters() if parameter.requires_grad
        ]


def test_inject_calls_copy_again():
    model = WithCopy()
    Lora(r=2).inject(model)
    assert len(model.copied) == 2 * 4 * 2
    assert all('.lora_' in name for name in model.copied)


@pytest.mark.parametrize(
    ('lora', 'sentence'),
    [
        (
            dict(targets=('q',)),
            "targets=.'q'. are not linear layers of the blocks, which are fc1, fc2, proj, qkv",
        ),
        (dict(rank=3), 'takes no rank'),
        (3, 'must be a dict, such as lora=dict'),
    ],
)
def test_wrong_settings_raise(lora, sentence, tmp_path):
    with rejects(sentence):
        build(tiny_cfg(tmp_path, lora=lora))


def test_incompatible_settings_raise(runs, tmp_path):
    for options, sentence in (
        (dict(lora={}, sharding={}), 'lora and sharding do not go together'),
        (
            {'lora': {}, 'model.backbone.frozen_stages': 'all'},
            'has no trainable vit_plugin.VisionTransformer',
        ),
    ):
        with rejects(sentence):
            build(tiny_cfg(tmp_path, **options))
    for lora in (dict(LORA, r=4), dict(LORA, alpha=8.0)):
        with rejects('differs from the checkpoint, whose adapters were trained with'):
            train(
                tiny_cfg(
                    tmp_path, lora=lora, load_from=str(final_checkpoint(runs / 'lora')), **PLAIN
                )
            )
