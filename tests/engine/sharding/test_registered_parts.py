"""Every registered stem, backbone, neck and head takes the same step on two sharded ranks."""

from rejection import rejects

import vit_plugin.detection  # noqa: F401  isort: skip  before mmdet

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from ranks import on_ranks
from tiny_models import TINY, TINY_SIZES
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from wrong_values import MAP, RIGHT, WORKS, cls_of, tensors

from vit_plugin.engine.faults.explain import explained
from vit_plugin.engine.sharding import Sharding, parts_to_shard, shard
from vit_plugin.engine.sharding.begin import join_alone
from vit_plugin.engine.sharding.shard import check_averages
from vit_plugin.models import VisionTransformer
from vit_plugin.models.stems import Stem

pytestmark = pytest.mark.filterwarnings('ignore')
IMAGES = torch.randn(2, 3, 64, 64)
WHITENED = dict(in_channels=3, channels=(24, 32), whitened=True, with_cp=True)
# Other ways through a part than in `RIGHT`: its name, and the arguments.
MORE = {
    'PooledResNetEmbed, whitened': ('PooledResNetEmbed', WHITENED),
    'ConvEmbed, recomputed': ('ConvEmbed', dict(RIGHT['ConvEmbed'], with_cp=True)),
    'MBConvEmbed, recomputed': ('MBConvEmbed', dict(RIGHT['MBConvEmbed'], with_cp=True)),
    **{f'{name}, masked': (name, RIGHT[name]) for name in ('MAEViT', 'SimMIMViT') if name in RIGHT},
}
CASES = {
    **{
        name: (name.partition(' ')[0], arguments)
        for name, arguments in RIGHT.items()
        if issubclass(cls_of(name), nn.Module)
    },
    **MORE,
}
MASK = torch.zeros(2, 8, 8).index_fill_(1, torch.arange(4), 1.0)
PREDICTIONS = [(torch.randn(2, 4, 4), torch.randn(2, 4, 8, 8))]  # of an EoMT
# Steps of parts that are not in `WORKS` or take another way.
FORWARD: dict[str, Callable[[Any], Any]] = {
    'MAEViT, masked': lambda part: part(IMAGES)[0],
    'SimMIMViT, masked': lambda part: part(IMAGES, mask=MASK),
    'EoMTHead': lambda part: part(PREDICTIONS),
    'EoMTDecodeHead': lambda part: part(PREDICTIONS),
    'TransUNetHead': lambda part: part((torch.randn(2, 8, 8, 8), MAP[..., ::2, ::2])),
}
# `test_distiller.py` trains these on two sharded ranks.
OF_DISTILLATION = {
    'Distiller',
    'GramDistillation',
    'LogitDistillation',
    'MapDistillation',
    'SimilarityDistillation',
    'VectorDistillation',
}
WITHOUT_PARAMETERS = {
    'AugmentingPreprocessor',
    'IoUAwareBCELoss',
    'MultiViewPreprocessor',
    'ScaleShiftInvariantLoss',
    'SiLogLoss',
    'SoftDiceLoss',
}
WITH_AVERAGES = {'DINO'}
QUICK = ('PooledResNetEmbed, whitened', 'MBConvEmbed', 'ConvEmbed')
LEFT_OUT = OF_DISTILLATION | WITHOUT_PARAMETERS | WITH_AVERAGES
TRIED = [name for name in CASES if name not in LEFT_OUT]  # so a new class must take a step


class Host(nn.Module):
    """A part inside a model, as in a framework's. A stem is that of a ViT, others follow one."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name, (kind, arguments) = name, CASES[name]
        if issubclass(cls_of(kind), Stem):
            stem = {k: v for k, v in arguments.items() if k not in ('embed_dims', 'numerics')}
            self.part: nn.Module = VisionTransformer(TINY_SIZES, 64, dict(type=kind, **stem))
        else:
            self.part = cls_of(kind)(**arguments)
        has_parts = isinstance(self.part, VisionTransformer) or hasattr(self.part, 'parts_to_shard')
        self.backbone = None if has_parts else VisionTransformer(TINY, 32)

    def forward(self) -> Tensor:
        kind = CASES[self.name][0]
        work = FORWARD.get(self.name) or WORKS.get(kind) or (lambda part: part(IMAGES))
        outputs = [work(self.part), self.backbone(IMAGES) if self.backbone else []]
        return sum(out.square().mean() for out in tensors(outputs) if out.is_floating_point())


def built(name: str) -> Host:
    torch.manual_seed(0)
    return Host(name).train()


def step(model: nn.Module) -> Tensor:
    """Train a step by the same random numbers in every process. Returns the loss."""
    random.seed(1)
    torch.manual_seed(1)
    loss = model()
    loss.backward()
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    return loss.detach()


def compare(names: list[str]) -> None:
    for name in names:
        plain, sharded, low = built(name), built(name), built(name)
        shard(sharded, Sharding(), 'cpu')
        shard(low, Sharding(param_dtype='bfloat16'), 'cpu')
        try:
            loss = step(plain)
            torch.testing.assert_close(step(sharded), loss, msg=name)
            torch.testing.assert_close(step(low), loss, rtol=2e-2, atol=0, msg=name)
            expected = plain.state_dict()
            for key, value in sharded.state_dict().items():
                found = value.full_tensor() if isinstance(value, DTensor) else value
                torch.testing.assert_close(found, expected[key], msg=f'{name}: {key}')
        except RuntimeError as error:
            raise RuntimeError(f'{name}: {error}') from error


def test_what_is_left_out_cannot_be_sharded_or_has_nothing_to_shard():
    for name in WITHOUT_PARAMETERS & {*RIGHT}:
        assert not [*cls_of(name)(**RIGHT[name]).parameters()], name
    for name in WITH_AVERAGES & {*RIGHT}:
        with rejects('updates the averages'):
            check_averages(cls_of(name)(**RIGHT[name]))


class Stages(Stem):
    """A stem whose layers are in a list, which it does not call."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(patch_size=4, feature_strides=(2,), feature_channels=(8,), **kwargs)
        self.convs = nn.ModuleList([nn.Conv2d(3, 8, 3, 2, 1), nn.Identity()])

    def features(self, images: Tensor) -> tuple[Tensor, ...]:
        return (self.convs[0](images),)


def test_a_part_that_the_forward_does_not_call_is_one_sentence(tiny):
    class Wrong(Stages):
        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.convs = nn.Sequential(*self.convs)

    join_alone('cpu')
    model = shard(VisionTransformer(**dict(tiny, patch_embed=dict(type=Wrong))), Sharding(), 'cpu')
    with pytest.raises(RuntimeError) as error:
        model(IMAGES)
    assert 'name in parts_to_shard() what the forward calls' in explained(error.value)


def test_of_a_list_that_has_no_forward_the_layers_are_the_parts(tiny):
    model = VisionTransformer(**dict(tiny, patch_embed=dict(type=Stages)))
    stem = model.patch_embed
    assert parts_to_shard(model) == [stem.proj, stem.convs[0], *model.blocks]


@pytest.mark.parametrize(
    'names', [QUICK, pytest.param(TRIED, marks=pytest.mark.nightly)], ids=['quick', 'all']
)
def test_a_step_of_two_sharded_ranks_is_that_of_one(tmp_path, names):
    on_ranks(2, tmp_path, compare, list(names))
