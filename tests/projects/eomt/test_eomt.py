"""EoMT equals that of transformers, and its queries and masks work on any backbone.

As a program, it records the outputs of transformers that a test compares with.
"""

from collections.abc import Iterable
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import torch
import torch.distributed as dist
from authors import recorded
from model_states import assert_all_learn
from ranks import on_ranks
from rejection import rejects
from tiny_models import CENTRED, TINY, randomize
from torch import Tensor, nn

from vit_plugin.config import check_channels
from vit_plugin.engine.sharding import Sharding, shard
from vit_plugin.models import EoMT, VisionTransformer, load_weights

# The classes of transformers, for encoders like DINOv2 and DINOv3.
V2, V3 = 'EomtForUniversalSegmentation', 'EomtDinov3ForUniversalSegmentation'
PROBS = ((1.0, 1.0), (0.0, 0.0), (0.0, 1.0))  # probability of a query's mask in each of two blocks
GOLDEN = (8, 2, (32, 48))  # width, heads and image size of the recorded models
FOLDER = Path(__file__).parents[2] / 'golden/eomt'
WIDTHS = {'S': (384, 6), 'B': (768, 12), 'L': (1024, 16)}  # width and heads
SMALL = dict(arch=dict(TINY, num_layers=3), img_size=32)


def randomized(model: nn.Module) -> nn.Module:
    """The model with random weights, in float64 and eval mode."""
    torch.manual_seed(0)
    return randomize(model).double().eval()


def models(name: str, width: int, heads: int, size: tuple[int, int]) -> tuple[nn.Module, EoMT]:
    """A model of transformers, adapted to a rectangle, and ours with its weights."""
    transformers = pytest.importorskip('transformers', minversion='5')
    cls, (h, w) = getattr(transformers, name), (side // 16 for side in size)
    if name == V3:
        rotary = dict(rope_type='default', rope_theta=100.0)
        fields = dict(intermediate_size=2 * width, rope_parameters=rotary)
    else:
        fields = dict(mlp_ratio=2)
    theirs = cls(
        cls.config_class(
            hidden_size=width,
            num_hidden_layers=3,
            num_attention_heads=heads,
            image_size=size[0],
            patch_size=16,
            num_blocks=2,
            num_queries=6,
            num_labels=5,
            **fields,
        )
    )
    theirs.set_attn_implementation('eager')  # its softmax can be replaced
    theirs.grid_size = (h, w)
    if name == V2:
        theirs.embeddings.position_embeddings = nn.Embedding(h * w, width)
        theirs.embeddings.position_ids = torch.arange(h * w)[None]
    theirs, ours = randomized(theirs), backbone(name, width, heads, size)
    load_weights(ours, theirs.state_dict())
    return theirs, ours


def backbone(name: str, width: int, heads: int, size: tuple[int, int]) -> EoMT:
    """Our EoMT with the sizes of a model of transformers."""
    return (
        EoMT(
            num_classes=5,
            num_queries=6,
            num_blocks=2,
            img_size=size,
            numerics='timm',
            arch=dict(
                embed_dims=width,
                num_layers=3,
                num_heads=heads,
                feedforward_channels=2 * width,
                patch_size=16,
            ),
            encoder=dict(
                reg_token=4, layer_scale_init_value=1.0, qkv_bias='qv' if name == V3 else True
            ),
            pos_embed=CENTRED
            if name == V3
            else dict(prefix_rows=False, source_grid=(size[0] // 16, size[1] // 16)),
        )
        .double()
        .eval()
    )


def outputs_of(
    theirs: nn.Module, ours: EoMT, images: Tensor, probs: tuple[float, float]
) -> tuple[Tensor, Tensor]:
    """Class and mask logits of a model of transformers, in float64.

    transformers computes the softmax of its attention in float32, and its rotary positions differ
    from ours by 5e-7. So both are replaced.
    """
    theirs.attn_mask_probs.copy_(torch.tensor(probs))
    if hasattr(theirs, 'rope_embeddings'):
        table = (
            ours.rope(theirs.grid_size, images)[0][ours.num_prefix_tokens :].double().chunk(2, -1)
        )
        theirs.rope_embeddings.forward = lambda pixels: tuple(part.repeat(1, 2) for part in table)
    with (
        mock.patch.object(nn.functional, 'softmax', lambda x, dim, dtype=None: x.softmax(dim)),
        torch.no_grad(),
    ):
        output = theirs(images)
    return output.class_queries_logits, output.masks_queries_logits


def assert_equal(
    ours: EoMT, images: Tensor, probs: tuple[float, float], expected: Iterable[Tensor]
) -> None:
    """Compare the last prediction of an EoMT with expected class and mask logits."""
    ours.queries.set_probs(probs)
    with torch.no_grad():
        predictions = ours(images)
    assert len(predictions) == (3 if any(probs) else 1)
    for x, y in zip(predictions[-1], expected, strict=True):
        torch.testing.assert_close(x, y, rtol=0, atol=1e-10 * y.abs().max().item())


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('size', [(32, 32), (64, 64), (64, 96)])
@pytest.mark.parametrize(
    'width', ['S', *(pytest.param(name, marks=pytest.mark.nightly) for name in 'BL')]
)
@pytest.mark.parametrize('name', [V2, V3])
def test_equals_transformers(name, width, size):
    theirs, ours = models(name, *WIDTHS[width], size)
    images = torch.randn(2, 3, *size, dtype=torch.float64)
    for probs in PROBS:
        assert_equal(ours, images, probs, outputs_of(theirs, ours, images, probs))


@pytest.mark.parametrize('name', [V2, V3])
def test_equals_recorded_outputs(name):
    """Outputs of transformers 5.23, recorded by ``python tests/projects/eomt/test_eomt.py``."""
    arrays = {
        key: torch.from_numpy(value) for key, value in recorded(FOLDER / f'{name}.npz').items()
    }
    ours = backbone(name, *GOLDEN)
    ours.load(
        {
            key.removeprefix('params/'): value
            for key, value in arrays.items()
            if key.startswith('params/')
        }
    )
    for i, probs in enumerate(PROBS):
        assert_equal(
            ours, arrays['images'].double(), probs, (arrays[f'classes{i}'], arrays[f'masks{i}'])
        )


def record(name: str) -> None:
    """Write the golden file of a model of transformers."""
    theirs, ours = models(name, *GOLDEN)
    # The file has float32, so both models get rounded weights.
    weights = {key: value.float() for key, value in theirs.state_dict().items()}
    theirs.load_state_dict(weights)
    images = torch.randn(1, 3, *GOLDEN[2])
    arrays = {f'params/{key}': value for key, value in weights.items()} | {'images': images}
    for i, probs in enumerate(PROBS):
        arrays[f'classes{i}'], arrays[f'masks{i}'] = outputs_of(
            theirs, ours, images.double(), probs
        )
    np.savez_compressed(FOLDER / f'{name}.npz', **arrays)


def random_eomt(**kwargs) -> EoMT:
    """A small EoMT with random weights, in float64 and eval mode."""
    return randomized(
        EoMT(**{**SMALL, 'num_classes': 3, 'num_queries': 4, 'num_blocks': 2, **kwargs})
    )


BACKBONES = {
    'registers': dict(encoder=dict(reg_token=2)),
    'rotary': dict(pos_embed=CENTRED, with_cls_token=False),
    'mixed': dict(pos_embed=dict(rotary=dict(form='mixed'))),
    'relative': dict(pos_embed='relative'),
    'grouped': dict(encoder=dict(num_kv_heads=1)),
    'windows': dict(with_cls_token=False, encoder=dict(window=dict(size=2, global_blocks=(1, 2)))),
    'hybrid': dict(
        arch=dict(SMALL['arch'], patch_size=2, resnet=dict(stage_depths=(1,), width=32))
    ),
}


@pytest.mark.parametrize('name', BACKBONES)
def test_queries_work_on_any_backbone(name):
    """Masks have a quarter of the resolution, and every parameter learns."""
    model = random_eomt(**BACKBONES[name]).train()
    images = torch.randn(2, 3, 32, 48, dtype=torch.float64)
    predictions = model(images)
    assert len(predictions) == 3
    for classes, masks in predictions:
        assert classes.shape == (2, 4, 4)
        assert masks.shape == (2, 4, 32 // 4, 48 // 4)
    sum(part.square().mean() for pair in predictions for part in pair).backward()
    assert_all_learn(model)


def test_masked_patches_do_not_affect_a_query():
    """With a mask of one patch, the classes of a query do not depend on other patches."""
    model = random_eomt(num_blocks=1)
    model.queries.set_probs([1.0])
    # Queries attend only to the first of the 16 patches.
    model.queries.attention_mask = lambda masks, grid, num_tokens, prob: (
        torch.arange(num_tokens) == num_tokens - 16
    ).expand(2, 1, 4, -1)
    images = torch.randn(2, 3, 32, 32, dtype=torch.float64)
    changed = images.clone()
    changed[:, :, 8:] += 1  # all rows of patches but the first
    model.num_plain_blocks = 0  # else blocks without queries would mix the patches
    model.blocks = type(model.blocks)([model.blocks[-1]], [0])
    assert torch.equal(model(images)[-1][0], model(changed)[-1][0])
    model.queries.set_probs([0.0])
    assert not torch.allclose(model(images)[-1][0], model(changed)[-1][0])


def test_queries_are_masked_with_the_given_probability():
    # Negative logits: a masked query sees none of the 16 patches. It always sees 5 other tokens.
    queries, masks = random_eomt().queries, -torch.ones(2, 4, 8, 8).double()
    for prob, unmasked in ((1.0, 0), (0.0, 8)):
        visible = queries.attention_mask(masks, (4, 4), 21, torch.tensor(prob))
        assert visible.shape == (2, 1, 4, 21)
        assert visible[..., :5].all()
        assert visible[..., 5:].all(-1).sum() == unmasked
    torch.manual_seed(0)
    many = masks[:1, :1].expand(50, 40, 8, 8)
    visible = queries.attention_mask(many, (4, 4), 21, torch.tensor(0.3))
    assert visible[..., 5:].all(-1).double().mean() == pytest.approx(0.7, abs=0.05)


def test_recomputed_blocks_have_the_same_masks():
    plain, recomputed = (random_eomt(with_cp=with_cp).train() for with_cp in (False, True))
    grads = []
    for model in (plain, recomputed):
        model.queries.attn_mask_probs.fill_(0.5)
        torch.manual_seed(0)
        sum(
            masks.square().mean() for _, masks in model(torch.ones(1, 3, 32, 32).double())
        ).backward()
        grads.append([parameter.grad for parameter in model.parameters()])
    assert all(
        torch.equal(x, y) if x is not None else y is None for x, y in zip(*grads, strict=True)
    )


def test_plain_backbone_loads_without_queries():
    """The queries keep their initial values. Probabilities of masks are part of a checkpoint."""
    plain = VisionTransformer(**SMALL, out_type='raw')
    model = EoMT(**SMALL, num_classes=3, num_blocks=2)
    report = model.load(plain.state_dict())
    assert report.initialized.keys() == {
        key for key in model.state_dict() if key.startswith('queries.')
    }
    model.queries.set_probs([0.0, 0.0])
    other = EoMT(**SMALL, num_classes=3, num_blocks=2)
    assert len(other.eval()(torch.zeros(1, 3, 32, 32))) == 3
    other.load_state_dict(model.state_dict())
    assert len(other(torch.zeros(1, 3, 32, 32))) == 1
    more_classes = EoMT(**SMALL, num_classes=7, num_blocks=2)
    assert more_classes.load(model.state_dict()).initialized.keys() == {
        'queries.class_head.weight',
        'queries.class_head.bias',
    }


class Loss(nn.Module):
    """A module with the backbone as a child, as a model of the frameworks has it."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = random_eomt().train()
        self.backbone.queries.set_probs([1.0, 0.0])

    def forward(self, images: Tensor) -> Tensor:
        return sum(part.square().mean() for pair in self.backbone(images) for part in pair)


def train_sharded(images: Tensor, expected: dict[str, Tensor]) -> None:
    """Compare gradients of a sharded model with those of one process."""
    model = shard(Loss(), Sharding(), 'cpu')
    model(images.chunk(dist.get_world_size())[dist.get_rank()]).backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad.full_tensor(), expected[name], rtol=0, atol=1e-9)


def test_sharded_gradients_equal_those_of_one_process(tmp_path):
    model, images = Loss(), torch.randn(4, 3, 32, 32, dtype=torch.float64)
    model(images).backward()
    on_ranks(
        2,
        tmp_path,
        train_sharded,
        images,
        {name: parameter.grad for name, parameter in model.named_parameters()},
    )


@pytest.mark.nightly
@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('name', ['registers', 'rotary'])
def test_compiled_and_exported_graphs_predict_the_same(name):
    """The training forward compiles as one graph, and prediction is exported."""
    model, images = random_eomt(**BACKBONES[name]), torch.randn(1, 3, 32, 48, dtype=torch.float64)
    model.queries.set_probs([0.0, 0.0])
    exported = torch.export.export(model, (images,)).module()
    torch.testing.assert_close(exported(images)[-1], model(images)[-1])
    model.train().queries.set_probs([1.0, 1.0])
    compiled = torch.compile(model, backend='eager', fullgraph=True)
    torch.testing.assert_close(compiled(images)[-1], model(images)[-1])


@pytest.mark.parametrize(
    ('kwargs', 'message'),
    [
        (dict(num_blocks=4), 'num_blocks=4 is more than the 3 blocks'),
        (dict(out_indices=(0, 1)), 'out_indices is not an option'),
        (
            dict(with_cls_token=False, encoder=dict(window=dict(size=2, global_blocks=(2,)))),
            'windows hold no queries',
        ),
        (
            dict(patch_embed=dict(type='FlexiPatchEmbed', sizes=(8, 16))),
            'the patches must have a fixed size',
        ),
    ],
)
def test_wrong_arguments_raise(kwargs, message):
    with rejects(message):
        random_eomt(**kwargs)


@pytest.mark.parametrize('name', ['EoMT', 'PMT'])
def test_heads_for_features_raise(name):
    backbone = dict(SMALL, type=f'vit_plugin.{name}', num_classes=3, num_blocks=1)
    check_channels(dict(backbone=backbone, decode_head=dict(num_classes=3)))
    with rejects('returns classes and masks: take an EoMTHead'):
        check_channels(dict(backbone=backbone, decode_head=dict(in_channels=32)))


if __name__ == '__main__':
    for name in (V2, V3):
        record(name)
