"""ViT-Adapter: outputs and gradients equal a plain implementation; training, sharding, errors."""

import adapter_reference
import pytest
import torch
from mmengine.optim import build_optim_wrapper
from mmengine.registry import MODELS
from ranks import on_ranks
from rejection import rejects
from tiny_models import randomize
from torch import nn

from benchmarks import adapter as adapter_benchmark
from vit_plugin.config import check_channels
from vit_plugin.engine.lora_adapters import Lora
from vit_plugin.engine.sharding import Sharding, parts_to_shard, shard
from vit_plugin.models import ViTAdapter

SIZES = dict(embed_dims=16, num_layers=4, num_heads=2, feedforward_channels=32, patch_size=16)
BACKBONE = dict(arch=SIZES, img_size=64)
WINDOWS = dict(with_cls_token=False, encoder=dict(window=dict(size=3, global_blocks=(1, 3))))
HYBRID = dict(arch=dict(SIZES, patch_size=2, resnet=dict(stage_depths=(1, 1), width=32)))
DINOV3 = dict(
    encoder=dict(reg_token=2),
    pos_embed=dict(
        type='none',
        rotary=dict(form='centred', planes='halves', shift=0.1, jitter=2.0, rescale=2.0),
    ),
)
FROZEN = dict(
    backbone=dict(frozen_stages=4, drop_path_rate=0.5, drop_rate=0.5),
    inject=False,
    add_tokens='each',
)


def adapter(backbone: dict | None = None, **kwargs) -> ViTAdapter:
    attention = dict(num_heads=2, num_points=3)
    return ViTAdapter(
        backbone={**BACKBONE, **(backbone or {})},
        **{**dict(attention=attention, conv_inplane=4, norm_cfg=dict(type='BN')), **kwargs},
    )


def randomized(model: nn.Module) -> nn.Module:
    """Set all parameters to random values, also those that begin at 0; float64 and eval mode."""
    return randomize(model, std=0.2).double().eval()


def reference_maps(
    model: ViTAdapter, image: torch.Tensor, groups: list[tuple[int, int]], **kwargs
) -> list[torch.Tensor]:
    """The maps that adapter_reference computes with the model's weights and transformer blocks.

    Args:
        model: the model.
        image: one image (1, C, H, W).
        groups: the first block of each group, and the one after its last.
        **kwargs: further arguments of the reference.
    """
    backbone = model.backbone
    x, grid, _ = backbone.patch_embed(image)
    rotations = backbone.rope(grid, x)

    def group(start: int, stop: int):
        def run_blocks(x):
            for block, rotation in zip(
                backbone.blocks[start:stop], rotations[start:stop], strict=True
            ):
                x = block(x[None], grid, None, rotation)[0]
            return x

        return run_blocks

    return adapter_reference.adapter(
        dict(model.state_dict(keep_vars=True)),
        image,
        backbone.embed(x, grid)[0],
        grid,
        backbone.patch_embed.stride,
        [group(*ends) for ends in groups],
        heads=2,
        **kwargs,
    )


FOUR_GROUPS = [(0, 1), (1, 2), (2, 3), (3, 4)]
CASES = {  # arguments of the adapter, arguments of the reference, size of the image
    "the authors'": (dict(backbone=WINDOWS), dict(groups=FOUR_GROUPS), (64, 96)),
    'two groups of a hybrid, any size': (
        dict(backbone=HYBRID, interactions=2, attention=dict(num_heads=2, value_ratio=1.0)),
        dict(groups=[(0, 2), (2, 4)]),
        (71, 101),
    ),
    "DINOv3's": (
        dict(backbone=DINOV3, inject=False, add_tokens='each'),
        dict(groups=FOUR_GROUPS, each=True),
        (64, 64),
    ),
    'patches of 14, groups as listed': (
        dict(
            backbone=dict(arch=dict(SIZES, patch_size=14)),
            interactions=(0, 2),
            num_extra_extractors=0,
            cffn_ratio=0.0,
        ),
        dict(groups=[(0, 1), (1, 3)]),
        (70, 84),
    ),
}


@pytest.mark.parametrize('case', CASES)
def test_maps_and_gradients_equal_the_reference(case):
    arguments, reference_arguments, size = CASES[case]
    model = randomized(adapter(**arguments))
    image = torch.randn(1, 3, *size, dtype=torch.float64, requires_grad=True)
    actual = model(image)
    expected = reference_maps(model, image, norm=model.backbone.norm, **reference_arguments)
    weights = [torch.randn_like(x) for x in actual]
    leaves = [image, *model.parameters()]
    gradients = []
    for maps in (actual, expected):
        loss = sum((x * weight).sum() for x, weight in zip(maps, weights, strict=True))
        gradients.append(torch.autograd.grad(loss, leaves))
    for x, y in zip(actual, expected, strict=True):
        torch.testing.assert_close(x[0], y, atol=1e-10, rtol=1e-10)
    assert all(gradient.any() for gradient in gradients[1])
    torch.testing.assert_close(*gradients, atol=1e-10, rtol=1e-10)


VARIANTS = {
    'default': {},
    'windows': dict(backbone=WINDOWS),
    'hybrid': dict(backbone=HYBRID),
    'rotary and registers': dict(backbone=DINOV3),
    'without the finest': dict(out_indices=(1, 2, 3)),
    'added nowhere': dict(add_tokens='none'),
    'added each': dict(add_tokens='each'),
    'frozen': FROZEN,
    'extracted only': dict(inject=False, out_indices=(1, 2, 3)),
    'recomputed': dict(with_cp=True, add_tokens='each'),
    'group norm': dict(norm_cfg=dict(type='GN', num_groups=2)),
    'half frozen': dict(backbone=dict(frozen_stages=2)),
}


@pytest.mark.parametrize('variant', VARIANTS)
def test_every_parameter_learns(variant):
    """DDP fails on trainable parameters without a gradient."""
    model = adapter(**VARIANTS[variant]).train()
    for name, parameter in model.named_parameters():
        assert parameter.requires_grad or name.startswith('backbone.'), name
    maps = model(torch.randn(2, 3, 70, 96))
    assert [tuple(x.shape) for x in maps] == [
        (2, channels, -(-70 // s), 96 // s)
        for channels, s in zip(model.channels, model.strides, strict=True)
    ]
    sum(x.square().sum() for x in maps).backward()
    assert all(
        (parameter.grad is not None) == parameter.requires_grad for parameter in model.parameters()
    )


def test_gradients_are_finite_in_mixed_precision():
    model = adapter(dict(encoder=dict(reg_token=2)), init_values=0.1).train()
    with torch.autocast('cpu', torch.bfloat16):
        maps = model(torch.randn(2, 3, 64, 64))
    sum(x.float().square().sum() for x in maps).backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


def test_frozen_backbone_keeps_no_activations():
    model = adapter(**FROZEN).train()
    needs_grad = []
    model.backbone.norm.register_forward_hook(
        lambda module, args, out: needs_grad.append(out.requires_grad)
    )
    images = torch.randn(2, 3, 64, 64)
    model(images)
    assert needs_grad == [False] * 4
    assert not model.backbone.blocks[3].training
    # Frozen blocks have neither dropout nor drop path.
    torch.testing.assert_close(model.backbone(images), model.eval().backbone(images))


def test_all_blocks_get_the_same_rotations():
    """DINOv3's random changes of positions are drawn once for each batch."""
    model, rotations = adapter(DINOV3, add_tokens='none').train(), []
    for block in model.backbone.blocks:
        block.register_forward_pre_hook(lambda module, args: rotations.append(args[3]))
    model(torch.randn(2, 3, 64, 64))
    assert len(rotations) == 4
    assert all(torch.equal(rotation, rotations[0]) for rotation in rotations)
    assert not torch.equal(rotations[0], model.backbone.eval().rope((4, 4), rotations[0])[0])


@pytest.mark.nightly
def test_adapter_on_a_timm_name_has_its_sizes():
    with torch.device('meta'):
        model = ViTAdapter(
            dict(arch='timm://vit_small_patch16_dinov3'), inject=False, add_tokens='each'
        )
        assert [tuple(x.shape) for x in model(torch.empty(2, 3, 64, 96))] == [
            (2, 384, 64 // s, 96 // s) for s in (4, 8, 16, 32)
        ]
    assert (model.backbone.num_prefix_tokens, model.interactions[0].extractor.attn.num_heads) == (
        5,
        6,
    )


def test_initialized_adapter_does_not_change_the_tokens():
    model, tokens = adapter(add_tokens='none').eval(), []
    model.backbone.norm.register_forward_hook(lambda module, args, out: tokens.append(out))
    images = torch.randn(1, 3, 64, 64)
    model(images)
    torch.testing.assert_close(tokens[-1], model.backbone(images)[0])


def test_layer_decay_and_weight_decay():
    model = nn.ModuleDict(dict(backbone=adapter(), neck=nn.Conv2d(16, 4, 1)))
    wrapper = build_optim_wrapper(
        model,
        dict(
            constructor='vit_plugin.LayerDecayOptimWrapperConstructor',
            paramwise_cfg=dict(layer_decay_rate=0.5),
            optimizer=dict(type='AdamW', lr=1.0, weight_decay=0.1),
        ),
    )
    names = {parameter: name for name, parameter in model.named_parameters()}
    groups = {
        names[parameter]: group
        for group in wrapper.param_groups
        for parameter in group['params']
        if parameter in names  # MMEngine adds a parameter of its own
    }
    assert groups.keys() == set(names.values())
    for name, rate in {
        'backbone.backbone.pos_embed': 1 / 32,  # before four blocks and the last parameters
        'backbone.backbone.blocks.3.mlp.fc1.weight': 1 / 2,
        'backbone.interactions.0.injector.gamma': 1.0,
        'backbone.spm.stem.0.weight': 1.0,
        'neck.weight': 1.0,
    }.items():
        assert groups[name]['lr'] == rate, name
        depth, num_layers = model['backbone'].get_layer_depth(name, 'backbone.')
        assert 0.5 ** (num_layers - 1 - depth) == rate
    undecayed = {name for name, group in groups.items() if not group['weight_decay']}
    assert undecayed == {
        f'backbone.{name}' for name in ('level_embed', 'backbone.pos_embed', 'backbone.cls_token')
    }


def check_sharded_gradients() -> None:
    """Assert that a sharded adapter has the same gradients as an unsharded one."""
    torch.manual_seed(0)
    whole, model = (randomized(adapter(DINOV3, with_cp=True)) for _ in range(2))
    model.load_state_dict(whole.state_dict())
    shard(model, Sharding(), 'cpu')
    images = torch.randn(1, 3, 64, 64, dtype=torch.float64)
    for module in (whole, model):
        sum(x.square().sum() for x in module(images)).backward()
    for (name, parameter), part in zip(whole.named_parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(part.grad.full_tensor(), parameter.grad, msg=name)


@pytest.mark.nightly
def test_sharded_gradients_equal_those_of_one_process(tmp_path):
    model = adapter(DINOV3)
    parts = set(parts_to_shard(model))
    injectors = {interaction.injector for interaction in model.interactions}
    assert parts > {*model.backbone.blocks} | injectors
    on_ranks(2, tmp_path, check_sharded_gradients)


def test_recomputing_reaches_the_backbone():
    assert adapter(with_cp=True).backbone.blocks.with_cp
    assert not adapter(dict(with_cp=False), with_cp=True).backbone.blocks.with_cp


@pytest.mark.parametrize(
    ('cfg', 'words'),
    [
        (
            dict(interactions=3),
            'interactions=3 does not divide the 4 blocks .* one of 1, 2, 4, or list the last block',
        ),
        (dict(interactions=(1, 4)), 'Invalid out_indices 4: this arch has 4 blocks'),
        (
            dict(interactions=2, add_tokens='each'),
            "add_tokens='each' adds the tokens of four groups .* there are 2",
        ),
        (
            dict(backbone=dict(out_indices=(0, 3))),
            r'backbone\.out_indices is what the adapter sets itself',
        ),
        (
            dict(backbone=dict(out_type='featmap')),
            r'backbone\.out_type is what the adapter sets itself',
        ),
        (
            dict(out_indices=(2, 3)),
            r'out_indices=\(2, 3\) must be \(0, 1, 2, 3\), .* or \(1, 2, 3\)',
        ),
        (dict(attention=dict(num_heads=3)), 'num_heads=3 does not divide the width 16'),
        (dict(attention=dict(heads=3)), 'attention takes no heads'),
        (
            dict(backbone=dict(type='SimpleFPN', in_channels=4)),
            r"backbone\.type='SimpleFPN' is not a vit_plugin backbone",
        ),
        (
            dict(backbone=dict(type=torch.nn.Identity)),
            r'backbone\.type=.*Identity.* is not a vit_plugin backbone',
        ),
    ],
)
def test_wrong_arguments_raise(cfg, words):
    with rejects(words):
        adapter(**cfg)


def test_images_with_other_channels_raise():
    with rejects(r'the backbone takes \(B, 3, H, W\)'):
        adapter()(torch.zeros(1, 4, 64, 64))
    assert len(adapter().eval()(torch.zeros(1, 1, 64, 64))) == 4  # gray


def test_channels_are_compared_with_the_neck():
    backbone = dict(
        type='vit_plugin.ViTAdapter',
        out_indices=(1, 2, 3),
        backbone=dict(arch='B/16', init_cfg=dict(type='Pretrained', checkpoint='nowhere.pth')),
    )
    check_channels(dict(backbone=backbone, neck=dict(type='FPN', in_channels=[768] * 3)))
    with rejects(r'model.neck.in_channels=\[768, 384\] .* set it to \[768, 768, 768\]'):
        check_channels(dict(backbone=backbone, neck=dict(type='FPN', in_channels=[768, 384])))


@pytest.mark.parametrize('scope', ['mmpretrain', 'mmdet', 'mmseg'])
@pytest.mark.filterwarnings('ignore')
def test_every_framework_builds_the_adapter(scope):
    from mmengine.registry import init_default_scope

    init_default_scope(scope)
    model = MODELS.build(
        dict(type='vit_plugin.ViTAdapter', backbone=BACKBONE, attention=dict(num_heads=2))
    )
    assert type(model) is ViTAdapter


@pytest.mark.nightly
def test_adapter_compiles_as_one_graph():
    model = randomized(adapter())
    images = torch.randn(1, 3, 64, 96, dtype=torch.float64)
    with torch.no_grad():
        torch.testing.assert_close(torch.compile(model, fullgraph=True)(images), model(images))


@pytest.mark.nightly
@pytest.mark.filterwarnings('ignore')
def test_frozen_and_recomputed_adapters_save_memory():
    """Rows of benchmarks/adapter.py at a small size."""
    pytest.importorskip('mmdet')
    rows = adapter_benchmark.measure(
        SIZES,
        128,
        rounds=0,
        attention=dict(num_heads=2),
        say=lambda line: None,
        only=('adapter', 'adapter, recomputed', 'adapter, frozen'),
    )
    assert '| adapter, frozen |' in adapter_benchmark.table(rows)
    memory = {name: row['training MiB'] for name, row in rows.items()}
    assert memory['adapter, frozen'] < memory['adapter']
    assert memory['adapter, recomputed'] < memory['adapter']


def test_lora_trains_the_adapter_and_its_own_matrices():
    pytest.importorskip('peft')
    model = adapter(interactions=2)
    Lora(targets=('qkv',)).inject(model)
    trainable = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert {name for name in trainable if name.startswith('backbone.')} == {
        f'backbone.blocks.{i}.attn.qkv.lora_{part}.default.weight'
        for i in range(4)
        for part in 'AB'
    }
    assert any(name.startswith('spm.') for name in trainable)


def test_flexible_patches_raise():
    flexi = dict(type='FlexiPatchEmbed', patch_size=8, kernel_size=8, sizes=(4, 8))
    with rejects('ViTAdapter: the patches must have a fixed size'):
        adapter(dict(patch_embed=flexi), interactions=1)
