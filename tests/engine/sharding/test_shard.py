"""Sharding of models: their parts, training, and loading of full tensors."""

from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from ranks import on_ranks
from rejection import rejects
from torch import Tensor, nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor

from vit_plugin.engine.sharding import Sharding, parts_to_shard, shard
from vit_plugin.engine.sharding.shard import padded_size
from vit_plugin.measure.planning.traced_step import pretended_ranks
from vit_plugin.models import VisionTransformer
from vit_plugin.models.loading.hooks import shard_like


class Classifier(nn.Module):
    """A backbone and a linear head: a root that is not the backbone."""

    def __init__(self, **backbone: object) -> None:
        super().__init__()
        self.backbone = VisionTransformer(**backbone)
        self.head = nn.Linear(32, 4)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.backbone(images)[0])


def test_parts_are_the_stem_and_the_blocks(tiny, tiny_hybrid):
    pure, hybrid = Classifier(**tiny), Classifier(**tiny_hybrid)
    assert parts_to_shard(pure) == [pure.backbone.patch_embed.proj, *pure.backbone.blocks]
    stem = hybrid.backbone.patch_embed
    assert {*parts_to_shard(hybrid)} == {stem.backbone, stem.proj, *hybrid.backbone.blocks}


@pytest.mark.parametrize(
    ('build', 'message'),
    [
        (
            lambda tiny: shard(Classifier(**tiny), Sharding(group=4), 'cpu'),
            'group=4 does not divide the 6 ranks; choose one of 1, 2, 3, 6.',
        ),
        (
            lambda tiny: shard(nn.Linear(2, 2), Sharding(), 'cpu'),
            r'no part of Linear has parts_to_shard\(\)',
        ),
        (lambda tiny: Sharding(group='nod'), "group='nod' must be .*; did you mean 'node'"),
        (lambda tiny: Sharding(param_dtype='float16'), 'param_dtype'),
        (lambda tiny: Sharding(dtype='bfloat16'), 'takes no dtype'),
    ],
)
def test_wrong_settings_raise(tiny, build, message):
    with pretended_ranks(6), rejects(message):
        build(tiny)


def test_scalar_parameter_raises(tiny):
    model = Classifier(**tiny)
    model.scale = nn.Parameter(torch.tensor(1.0))
    with pretended_ranks(2), rejects("'scale', which is a scalar"):
        shard(model, Sharding(), 'cpu')


def test_large_padding_raises():
    with torch.device('meta'):
        model = VisionTransformer('g/14')
    for ranks in (2, 8, 64, 128):
        for name, parameter in model.named_parameters():
            assert padded_size(parameter.shape, ranks) <= 2 * parameter.numel(), (name, ranks)
    with (
        pretended_ranks(1024),
        rejects(r"'pos_embed', \(1, 257, 1408\).* group=128\.$"),
    ):
        shard(model, Sharding(), 'cpu')
    with pretended_ranks(1024):
        shard(model, Sharding(group=128), 'cpu')
        assert model.pos_embed.to_local().shape == (1, 257, 11)


def train(model: nn.Module, batches: list[Tensor]) -> list[Tensor]:
    """Train, and return the loss, averaged over the ranks, and the gradient norm of each step."""
    optimizer, scalars = torch.optim.AdamW(model.parameters(), lr=1e-2, eps=1e-4), []
    for images in batches:
        loss = model(images).square().mean()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        optimizer.zero_grad()
        loss, norm = loss.detach(), norm.full_tensor() if isinstance(norm, DTensor) else norm
        if dist.is_initialized():
            dist.all_reduce(loss.div_(dist.get_world_size()))
        scalars.append(torch.stack((loss, norm)))
    return scalars


def train_sharded(config: dict, expected: list[Tensor], weights: dict[str, Tensor]) -> None:
    """Train on a part of each batch, and compare with losses and weights of a plain run."""
    torch.manual_seed(0)
    model = Classifier(**config).double()
    batches = [torch.randn(4, 3, 32, 32).double() for _ in range(3)]
    shard(model, Sharding(), 'cpu')
    parts = [images.chunk(dist.get_world_size())[dist.get_rank()] for images in batches]
    for sharded, plain in zip(train(model, parts), expected, strict=True):
        torch.testing.assert_close(sharded, plain, rtol=0, atol=1e-10)
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(
            parameter.full_tensor().detach(), weights[name], rtol=0, atol=1e-10
        )


@pytest.mark.parametrize('frozen_stages', [pytest.param(-1, marks=pytest.mark.nightly), 1])
def test_two_ranks_train_as_one(tmp_path: Path, tiny, frozen_stages):
    config = dict(tiny, frozen_stages=frozen_stages)
    torch.manual_seed(0)
    model = Classifier(**config).double()
    expected = train(model, [torch.randn(4, 3, 32, 32).double() for _ in range(3)])
    on_ranks(2, tmp_path, train_sharded, config, expected, model.state_dict())


def test_full_tensors_load_into_any_module(tiny):
    """The head is a module of torch, without our hooks for loading."""
    torch.manual_seed(1)
    weights = Classifier(**tiny).state_dict()
    with pretended_ranks(2, rank=1):
        model = shard(Classifier(**tiny), Sharding(), 'cpu')
        model.load_state_dict(weights)
        for name, parameter in model.named_parameters():
            expected = weights[name].chunk(2, parameter.placements[0].dim)[1]
            assert torch.equal(parameter.to_local(), expected), name


def test_shard_like_copies_only_the_part_of_this_rank():
    with pretended_ranks(4, rank=2):
        # Ranks 0 to 2 have two of the six rows each, and rank 3 has none.
        model = nn.Linear(3, 6)
        target = next(fully_shard(model, mesh=Sharding().mesh('cpu')).parameters())
        for whole in (torch.arange(18.0).view(6, 3), torch.arange(18).double().view(6, 3)):
            part = shard_like(whole, target).to_local()
            assert part.tolist() == whole[4:].tolist()
            assert part.dtype == torch.float32
            assert part.untyped_storage().nbytes() == 4 * part.numel()
    with pretended_ranks(5, rank=3):
        target = next(fully_shard(nn.Linear(3, 6), mesh=Sharding().mesh('cpu')).parameters())
        assert shard_like(whole, target).to_local().shape == (0, 3)


def step_with_scaler(overflows: bool) -> None:
    """Step with a scaled loss, whose gradient overflows on rank 0 if asked."""
    torch.manual_seed(0)
    model = fully_shard(nn.Linear(4, 4, bias=False), mesh=Sharding().mesh('cpu'))
    optimizer, scaler = (
        torch.optim.SGD(model.parameters(), lr=1.0),
        torch.amp.GradScaler('cpu', init_scale=8.0),
    )
    before = model.weight.to_local().clone()
    scaler.scale(model(torch.ones(2, 4)).sum()).backward()
    if overflows and dist.get_rank() == 0:
        model.weight.grad.to_local()[0, 0] = float('inf')
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == (4.0 if overflows else 8.0)
    expected = before if overflows else before - 2
    torch.testing.assert_close(model.weight.to_local(), expected)


@pytest.mark.filterwarnings('ignore:FSDP2-wrapped module:UserWarning')
@pytest.mark.parametrize('overflows', [True, False])
def test_overflow_on_one_rank_skips_the_step_on_all(tmp_path, overflows):
    on_ranks(2, tmp_path, step_with_scaler, overflows)
