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

from vit_plugin.engine.faults.explain import explain_error
from vit_plugin.engine.sharding import Sharding, parts_to_shard, shard
from vit_plugin.engine.sharding.begin import ensure_process_group
from vit_plugin.engine.sharding.shard import check_averages
from vit_plugin.models import VisionTransformer
from vit_plugin.models.stems import Stem

pytestmark = pytest.mark.filterwarnings('ignore')
IMAGES = torch.randn(2, 3, 64, 64)
WHITENED = dict(in_channels=3, channels=(24, 32), whitened=True, with_cp=True)
# `RIGHT` has arguments that construct each registered class, and `WORKS` a forward for it. Here are
# parts with other arguments or inputs.
VARIANTS = {
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
    **VARIANTS,
}
MASK = torch.zeros(2, 8, 8).index_fill_(1, torch.arange(4), 1.0)  # the upper half is masked
# The states of queries of each layer of a DETR's decoder, and their reference points.
QUERIES = torch.randn(2, 2, 4, 32)
REFERENCES = torch.rand(2, 4, 2)
PREDICTIONS = [(torch.randn(2, 4, 4), torch.randn(2, 4, 8, 8))]  # of an EoMT
# Forwards of parts that are not in `WORKS`, or of a variant.
FORWARD: dict[str, Callable[[Any], Any]] = {
    'MAEViT, masked': lambda part: part(IMAGES)[0],
    'SimMIMViT, masked': lambda part: part(IMAGES, mask=MASK),
    'EoMTHead': lambda part: part(PREDICTIONS),
    'EoMTDecodeHead': lambda part: part(PREDICTIONS),
    'PublishedDETRHead': lambda part: part(QUERIES),
    'PublishedConditionalDETRHead': lambda part: part(QUERIES, REFERENCES),
    'PublishedDeformableDETRHead': lambda part: part(QUERIES, [REFERENCES, REFERENCES]),
    'TransUNetHead': lambda part: part((torch.randn(2, 8, 8, 8), MAP[..., ::2, ::2])),
}
# `test_distiller.py` trains these on two sharded ranks.
DISTILLATION = {
    'Distiller',
    'GramDistillation',
    'LogitDistillation',
    'MapDistillation',
    'SimilarityDistillation',
    'VectorDistillation',
}
# Nothing to shard.
NO_PARAMETERS = {
    'AugmentingPreprocessor',
    'BandsPreprocessor',
    'IoUAwareBCELoss',
    'MatchabilityAwareLoss',
    'MultiViewPreprocessor',
    'OverlapVarifocalLoss',
    'ScaleShiftInvariantLoss',
    'SiLogLoss',
    'SoftDiceLoss',
}
WITH_AVERAGES = {'DINO', 'DINOv3'}  # sharding rejects a model that averages its own weights
QUICK = ('PooledResNetEmbed, whitened', 'MBConvEmbed', 'ConvEmbed')
LEFT_OUT = DISTILLATION | NO_PARAMETERS | WITH_AVERAGES
# Since `RIGHT` has every registered class, a new one is included without an entry here.
TRIED = [name for name in CASES if name not in LEFT_OUT]


class Host(nn.Module):
    """A model with the part. A stem is built into a ViT, and a part without ``parts_to_shard`` gets
    a ViT next to it.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name, (class_name, arguments) = name, CASES[name]
        if issubclass(cls_of(class_name), Stem):
            stem = {k: v for k, v in arguments.items() if k not in ('embed_dims', 'numerics')}
            self.part: nn.Module = VisionTransformer(TINY_SIZES, 64, dict(type=class_name, **stem))
        else:
            self.part = cls_of(class_name)(**arguments)
        has_parts = isinstance(self.part, VisionTransformer) or hasattr(self.part, 'parts_to_shard')
        self.backbone = None if has_parts else VisionTransformer(TINY, 32)

    def forward(self) -> Tensor:
        class_name = CASES[self.name][0]
        run_part = FORWARD.get(self.name) or WORKS.get(class_name) or (lambda part: part(IMAGES))
        outputs = [run_part(self.part), self.backbone(IMAGES) if self.backbone else []]
        return sum(out.square().mean() for out in tensors(outputs) if out.is_floating_point())


def build(name: str) -> Host:
    """A host with the same weights in every call."""
    torch.manual_seed(0)
    return Host(name).train()


def step(model: nn.Module) -> Tensor:
    """Train a step with the same random numbers in every process, and return the loss."""
    random.seed(1)
    torch.manual_seed(1)
    loss = model()
    loss.backward()
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    return loss.detach()


def compare(names: list[str]) -> None:
    """Compare steps of sharded models with those of plain ones, in float32 and bfloat16."""
    for name in names:
        plain, sharded, in_bfloat16 = build(name), build(name), build(name)
        shard(sharded, Sharding(), 'cpu')
        shard(in_bfloat16, Sharding(param_dtype='bfloat16'), 'cpu')
        try:
            loss = step(plain)
            torch.testing.assert_close(step(sharded), loss, msg=name)
            torch.testing.assert_close(step(in_bfloat16), loss, rtol=2e-2, atol=0, msg=name)
            expected = plain.state_dict()
            for key, value in sharded.state_dict().items():
                full = value.full_tensor() if isinstance(value, DTensor) else value
                torch.testing.assert_close(full, expected[key], msg=f'{name}: {key}')
        except RuntimeError as error:
            raise RuntimeError(f'{name}: {error}') from error


def test_left_out_classes_have_no_parameters_or_raise():
    for name in NO_PARAMETERS & {*RIGHT}:
        assert not [*cls_of(name)(**RIGHT[name]).parameters()], name
    for name in WITH_AVERAGES & {*RIGHT}:
        with rejects('updates the averages'):
            check_averages(cls_of(name)(**RIGHT[name]))


class Stages(Stem):
    """A stem with its layers in a ModuleList, which has no forward."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(patch_size=4, feature_strides=(2,), feature_channels=(8,), **kwargs)
        self.convs = nn.ModuleList([nn.Conv2d(3, 8, 3, 2, 1), nn.Identity()])

    def features(self, images: Tensor) -> tuple[Tensor, ...]:
        return (self.convs[0](images),)


def test_part_that_the_forward_does_not_call_raises(tiny):
    class Wrong(Stages):
        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.convs = nn.Sequential(*self.convs)

    ensure_process_group('cpu')
    model = shard(VisionTransformer(**dict(tiny, patch_embed=dict(type=Wrong))), Sharding(), 'cpu')
    with pytest.raises(RuntimeError) as error:
        model(IMAGES)
    assert 'name in parts_to_shard() what the forward calls' in explain_error(error.value)


def test_layers_of_a_module_list_are_parts(tiny):
    model = VisionTransformer(**dict(tiny, patch_embed=dict(type=Stages)))
    stem = model.patch_embed
    assert parts_to_shard(model) == [stem.proj, stem.convs[0], *model.blocks]


@pytest.mark.parametrize(
    'names', [QUICK, pytest.param(TRIED, marks=pytest.mark.nightly)], ids=['quick', 'all']
)
def test_step_of_two_sharded_ranks_equals_that_of_one(tmp_path, names):
    on_ranks(2, tmp_path, compare, list(names))
