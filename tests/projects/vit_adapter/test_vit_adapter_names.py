"""Checkpoints of ViT-Adapter's authors, of DINOv3 and of this package load, each by its names."""

import pytest
import torch
from mmengine.runner import load_checkpoint
from model_states import assert_same_state
from rejection import rejects
from torch import Tensor, nn

from vit_plugin.models import SimpleFPN, VisionTransformer, ViTAdapter, load_weights
from vit_plugin.weights import export, recognize

WIDTH, PRIOR_WIDTH = 32, 4
ARCH = dict(embed_dims=WIDTH, num_layers=4, num_heads=2, feedforward_channels=64, patch_size=16)


def adapter(backbone: dict | None = None, **kwargs) -> ViTAdapter:
    return ViTAdapter(
        **{
            **dict(
                backbone=dict(
                    arch=ARCH,
                    img_size=64,
                    numerics='timm',
                    with_cls_token=False,
                    **(backbone or {}),
                ),
                attention=dict(num_heads=2),
                conv_inplane=PRIOR_WIDTH,
                norm_cfg=dict(type='BN'),
            ),
            **kwargs,
        }
    ).eval()


def batch_norm(name: str, channels: int) -> dict[str, tuple[int, ...]]:
    return dict.fromkeys(
        (f'{name}.weight', f'{name}.bias', f'{name}.running_mean', f'{name}.running_var'),
        (channels,),
    ) | {f'{name}.num_batches_tracked': ()}


def layer(name: str, *shape: int, bias: bool = True) -> dict[str, tuple[int, ...]]:
    return {f'{name}.weight': shape} | ({f'{name}.bias': shape[:1]} if bias else {})


def attention_shapes(name: str, maps: int) -> dict[str, tuple[int, ...]]:
    """The attention and its norms, which injectors and extractors share.

    It has two heads, four points in each of ``maps``, and values of half the width.
    """
    samples = 2 * maps * 4
    return (
        layer(f'{name}.query_norm', WIDTH)
        | layer(f'{name}.feat_norm', WIDTH)
        | layer(f'{name}.attn.sampling_offsets', 2 * samples, WIDTH)
        | layer(f'{name}.attn.attention_weights', samples, WIDTH)
        | layer(f'{name}.attn.value_proj', WIDTH // 2, WIDTH)
        | layer(f'{name}.attn.output_proj', WIDTH, WIDTH // 2)
    )


def adapter_shapes(injectors: bool) -> dict[str, tuple[int, ...]]:
    """Names and shapes, from the authors' ``adapter_modules.py`` and ``dinov3_adapter.py``."""
    result: dict[str, tuple[int, ...]] = {'level_embed': (3, WIDTH)}
    for i, channels in ((0, 3), (3, PRIOR_WIDTH), (6, PRIOR_WIDTH)):
        result |= layer(f'spm.stem.{i}', PRIOR_WIDTH, channels, 3, 3, bias=False) | batch_norm(
            f'spm.stem.{i + 1}', PRIOR_WIDTH
        )
    for k, (before, after) in {2: (1, 2), 3: (2, 4), 4: (4, 4)}.items():
        result |= layer(
            f'spm.conv{k}.0', after * PRIOR_WIDTH, before * PRIOR_WIDTH, 3, 3, bias=False
        )
        result |= batch_norm(f'spm.conv{k}.1', after * PRIOR_WIDTH)
    for k, width in {1: 1, 2: 2, 3: 4, 4: 4}.items():
        result |= layer(f'spm.fc{k}', WIDTH, width * PRIOR_WIDTH, 1, 1) | batch_norm(
            f'norm{k}', WIDTH
        )
    for i in range(4):
        if injectors:
            result |= attention_shapes(f'interactions.{i}.injector', 3) | {
                f'interactions.{i}.injector.gamma': (WIDTH,)
            }
        for name in (
            'extractor',
            *(('extra_extractors.0', 'extra_extractors.1') if i == 3 else ()),
        ):
            name = f'interactions.{i}.{name}'
            hidden = WIDTH // 4
            result |= (
                attention_shapes(name, 1)
                | layer(f'{name}.ffn_norm', WIDTH)
                | layer(f'{name}.ffn.fc1', hidden, WIDTH)
                | layer(f'{name}.ffn.dwconv.dwconv', hidden, 1, 3, 3)
                | layer(f'{name}.ffn.fc2', WIDTH, hidden)
            )
    return result | layer('up', WIDTH, WIDTH, 2, 2)


def backbone_shapes() -> dict[str, tuple[int, ...]]:
    """Names and shapes of the authors' transformer (``base/vit.py``).

    It has LayerScale, and a position for a class token that it lacks.
    """
    result = {'pos_embed': (1, 17, WIDTH)} | layer('patch_embed.proj', WIDTH, 3, 16, 16)
    for i in range(4):
        result |= {f'blocks.{i}.gamma{k}': (WIDTH,) for k in (1, 2)}
        for name, *shape in (
            ('norm1', WIDTH),
            ('norm2', WIDTH),
            ('attn.qkv', 3 * WIDTH, WIDTH),
            ('attn.proj', WIDTH, WIDTH),
            ('mlp.fc1', 64, WIDTH),
            ('mlp.fc2', WIDTH, 64),
        ):
            result |= layer(f'blocks.{i}.{name}', *shape)
    return result


def random_weights(shape_of: dict[str, tuple[int, ...]], prefix: str = '') -> dict[str, Tensor]:
    return {
        f'{prefix}{name}': torch.tensor(7) if name.endswith('tracked') else torch.rand(shape) + 0.5
        for name, shape in shape_of.items()
    }


LAYER_SCALE = dict(encoder=dict(layer_scale_init_value=1.0))


def by_authors_names(model: ViTAdapter) -> dict[str, Tensor]:
    """The adapter's tensors by the authors' names; without positions, which are adapted."""
    return {
        name.removeprefix('backbone.')
        .replace('ls1.gamma', 'gamma1')
        .replace('ls2.gamma', 'gamma2'): value
        for name, value in model.state_dict().items()
        if 'pos' not in name
    }


def assert_loaded(model: ViTAdapter, weights: dict[str, Tensor], prefix: str = '') -> None:
    loaded = by_authors_names(model)
    assert loaded.keys() == {
        name.removeprefix(prefix) for name in weights if 'pos_embed' not in name and prefix in name
    }
    for name, value in loaded.items():
        assert torch.equal(value, weights[prefix + name]), name
    torch.testing.assert_close(model.backbone.pos_embed, weights[f'{prefix}pos_embed'][:, 1:])


@pytest.mark.parametrize('prefix', ['', 'backbone.'])
def test_checkpoint_of_the_authors_loads(prefix):
    """The file has the adapter alone, or a detector with the prefix ``backbone.``."""
    weights = random_weights(backbone_shapes() | adapter_shapes(True), prefix)
    model = adapter(LAYER_SCALE)
    detector = nn.ModuleDict(dict(backbone=model, rpn_head=nn.Conv2d(2, 2, 1)))
    report = load_weights(
        detector if prefix else model, weights | ({'rpn_head.x': torch.ones(1)} if prefix else {})
    )
    assert report.format == 'vit_adapter'
    assert report.adapted == {
        'pos_embed': 'the rows of the tokens before the patches are left out, as the model has '
        'no such tokens'
    }
    assert set(report.initialized) == ({'rpn_head.weight', 'rpn_head.bias'} if prefix else set())
    assert_loaded(model, weights, prefix)


def test_detector_of_the_authors_loads_with_load_from(tmp_path):
    """MMEngine's ``load_from`` calls ``load_state_dict``."""
    weights = random_weights(backbone_shapes() | adapter_shapes(True), 'backbone.')
    torch.save(dict(state_dict=weights), tmp_path / 'theirs.pth')
    model = nn.ModuleDict(dict(backbone=adapter(LAYER_SCALE)))
    load_checkpoint(model, str(tmp_path / 'theirs.pth'))
    assert_loaded(model['backbone'], weights, 'backbone.')


def test_dinov3_file_without_backbone_keeps_the_backbone(tmp_path):
    """The adapter is loaded from it, and the backbone keeps the weights that it loaded before."""
    weights = random_weights(adapter_shapes(False), 'segmentation_model.0.') | {
        'segmentation_model.1.predictor.x': torch.ones(2)
    }
    torch.save(weights, tmp_path / 'head.pth')
    plain = VisionTransformer(
        arch=ARCH, img_size=64, with_cls_token=False, out_type='raw', numerics='timm'
    )
    torch.save(plain.state_dict(), tmp_path / 'vit.pth')
    pretrained = [
        dict(type='Pretrained', checkpoint=str(tmp_path / name)) for name in ('vit.pth', 'head.pth')
    ]
    model = adapter(
        dict(init_cfg=pretrained[0]), inject=False, add_tokens='each', init_cfg=pretrained[1]
    )
    model.init_weights()
    assert_same_state(plain, model.backbone)
    for name, value in model.state_dict().items():
        if not name.startswith('backbone.'):
            assert torch.equal(value, weights[f'segmentation_model.0.{name}']), name
    report = load_weights(model, weights)
    assert set(report.initialized.values()) == {
        f'the checkpoint has no {part}' for part in ('blocks', 'norm', 'patch_embed', 'pos_embed')
    }
    assert report.ignored == {
        'segmentation_model.1.predictor.x': 'belongs to the segmentation head'
    }


def test_plain_backbone_loads_into_an_adapter():
    """The report says that other parts keep their initialization."""
    plain = VisionTransformer(
        arch=ARCH,
        img_size=64,
        with_cls_token=False,
        encoder=dict(final_norm=False),
        out_type='raw',
        numerics='timm',
    )
    model = adapter()
    report = load_weights(
        nn.ModuleDict(dict(backbone=model, neck=SimpleFPN(WIDTH, 8))), plain.state_dict()
    )
    assert {
        text for name, text in report.initialized.items() if name.startswith('interactions')
    } == {'the checkpoint has no interactions'}
    assert_same_state(plain, model.backbone)


@pytest.mark.parametrize('prefix', ['', 'backbone.'])
def test_exported_weights_are_read_back(prefix):
    model, other = (adapter(LAYER_SCALE, interactions=1, num_extra_extractors=1) for _ in range(2))
    state = {prefix + name: value for name, value in model.state_dict().items()}
    recognized = recognize(state)
    assert recognized.format.name == 'vit_adapter'
    exported, unexported, _ = export(recognized, 'vit_adapter', 2)
    assert not unexported
    assert exported.keys() == model.state_dict().keys()
    load_weights(other, exported)
    assert_same_state(other, model)


def test_plain_backbone_loads_from_a_trained_adapter():
    """Only the transformer inside of the adapter is used."""
    source = adapter()
    plain = VisionTransformer(
        arch=ARCH,
        img_size=64,
        with_cls_token=False,
        encoder=dict(final_norm=False),
        out_type='raw',
        numerics='timm',
    )
    load_weights(plain, {f'backbone.{name}': value for name, value in source.state_dict().items()})
    assert torch.equal(plain.blocks[3].mlp.fc1.weight, source.backbone.blocks[3].mlp.fc1.weight)


def test_checkpoints_that_do_not_fit_raise():
    weights = random_weights(backbone_shapes() | adapter_shapes(True))
    with rejects(r'lacks .*interactions\.3\.extra_extractors\.2'):
        load_weights(adapter(LAYER_SCALE, num_extra_extractors=3), weights)
    with rejects(r'blocks\.0\.ls1\.gamma|gamma1.*layer_scale_init_value'):
        load_weights(adapter(), weights)
    beit = {f'blocks.{i}.attn.relative_position_bias_table': torch.ones(732, 2) for i in range(4)}
    with rejects(r'blocks\.0\.attn\.relative_position_bias_table.*no argument creates it'):
        load_weights(adapter(LAYER_SCALE), weights | beit)
    del weights['blocks.1.mlp.fc1.weight']
    with rejects(r'lacks blocks\.1\.mlp\.fc1\.weight'):
        load_weights(adapter(LAYER_SCALE), weights)
