"""The backbone's behavior, including what MMPretrain's tests of its VisionTransformer check."""

import math

import pytest
import torch
from model_states import assert_all_learn
from rejection import rejects
from torch.utils.flop_counter import FlopCounterMode

from vit_plugin.models import VisionTransformer

SIZES = dict(embed_dims=32, num_heads=2, feedforward_channels=64)


def test_stochastic_depth_grows_linearly():
    model = VisionTransformer(dict(SIZES, num_layers=12), drop_path_rate=0.1)
    rates = [getattr(block.drop_path, 'drop_prob', 0.0) for block in model.blocks]
    assert rates == pytest.approx([i * 0.1 / 11 for i in range(12)])


@pytest.mark.parametrize(
    ('change', 'words'),
    [
        (dict(out_indices={1: 1}), 'out_indices={1: 1} must be a valid integer or be a list'),
        (dict(out_indices=[0, 2]), 'Invalid out_indices 2: this arch has 2 blocks, -2 to 1'),
        (dict(out_indices=-3), 'Invalid out_indices -3'),
        (dict(out_indices=[]), r'out_indices=\[\] must be a valid integer or have at least 1 item'),
        (dict(with_cls_token=False), "with_cls_token must be True .*'avg_featmap'"),
        (dict(pos_embed='rotary'), "pos_embed='rotary' must be 'none', 'learned'"),
        (dict(numerics='jax'), "numerics='jax' must be 'authors', 'timm' or 'transunet'"),
        (dict(frozen_stages=3), 'frozen_stages=3 is out of range'),
        (dict(img_size=6), 'smaller than one patch of 8 x 8'),
        (dict(arch='B'), "write 'B/16' for 'B'"),
        (
            dict(patch_embed=dict(embed_dims=64)),
            'embed_dims=64 differs from the width of the blocks, 32; leave it out',
        ),
        (
            dict(init_cfg=dict(type='Constant', layer=['Linear', 'LayerNrm'], val=1)),
            "init_cfg: layer='LayerNrm' is not one of its layers; did you mean LayerNorm?",
        ),
    ],
)
def test_invalid_arguments_raise_at_build_time(tiny, change, words):
    with rejects(words):
        VisionTransformer(**dict(tiny, **change))


def test_images_smaller_than_a_patch_raise(tiny):
    with rejects('4 x 32 pixels is smaller than one patch of 8 x 8'):
        VisionTransformer(**tiny)(torch.randn(1, 3, 4, 32))


@pytest.mark.parametrize('config', ['tiny', 'tiny_hybrid'])
def test_out_types_agree_with_the_raw_tokens(config, request):
    model = VisionTransformer(**request.getfixturevalue(config)).eval()
    images, outs = torch.randn(2, 3, 32, 48), {}
    with torch.no_grad():
        for out_type in ('raw', 'cls_token', 'featmap', 'avg_featmap'):
            model.out_type = out_type
            (outs[out_type],) = model(images)
    grid, raw = model.patch_embed.grid((32, 48)), outs['raw']
    assert raw.shape == (2, 1 + grid[0] * grid[1], 32)
    torch.testing.assert_close(outs['cls_token'], raw[:, 0])
    torch.testing.assert_close(outs['featmap'], raw[:, 1:].mT.unflatten(2, grid))
    torch.testing.assert_close(outs['avg_featmap'], raw[:, 1:].mean(1))
    assert all(outs[name].is_contiguous() for name in outs.keys() - {'cls_token'})


@pytest.mark.parametrize('indices', [[-3, -1], (1, 3), (3, 1), [1, -1]])
def test_out_indices_count_from_either_end_and_all_are_normed(indices):
    arch = dict(SIZES, num_layers=4, patch_size=8)
    model = VisionTransformer(arch, 32, out_indices=indices, out_type='raw').eval()
    assert model.out_indices == (1, 3)
    with torch.no_grad():
        outs = model(torch.randn(1, 3, 32, 32))
    assert len(outs) == 2
    for out in outs:  # a fresh LayerNorm leaves mean 0 and variance 1
        torch.testing.assert_close(out.mean(-1), torch.zeros(1, 17), atol=1e-5, rtol=0)
        torch.testing.assert_close(out.var(-1, correction=0), torch.ones(1, 17), atol=1e-3, rtol=0)


def test_blocks_after_the_last_output_are_not_built_and_all_others_learn():
    model = VisionTransformer(dict(SIZES, num_layers=4, patch_size=8), 32, out_indices=1)
    assert len(model.blocks) == 2
    model(torch.randn(1, 3, 32, 32))[0].sum().backward()
    assert_all_learn(model)


def test_an_earlier_output_is_the_same_whether_or_not_later_blocks_run():
    arch = dict(SIZES, num_layers=3, patch_size=8)
    full, cut = (
        VisionTransformer(arch, 32, out_indices=indices, out_type='raw').eval()
        for indices in ((1, 2), 1)
    )
    cut.load_state_dict(full.state_dict(), strict=False)
    images = torch.randn(1, 3, 32, 32)
    with torch.no_grad():
        torch.testing.assert_close(full(images)[0], cut(images)[0], rtol=0, atol=0)


@pytest.mark.parametrize('size', [(32, 32), (40, 40), (33, 70), (8, 64)])
@pytest.mark.parametrize('config', ['tiny', 'tiny_hybrid'])
def test_images_of_any_size_are_padded_to_whole_patches(config, size, request):
    model = VisionTransformer(**request.getfixturevalue(config), out_type='featmap').eval()
    with torch.no_grad():
        (out,) = model(torch.randn(1, 3, *size))
    assert out.shape[2:] == tuple(math.ceil(side / 8) for side in size)


def test_initialization_has_the_authors_distributions():
    model = VisionTransformer('R26+S/32')
    assert model.cls_token.abs().max() == 0
    assert model.pos_embed.std().item() == pytest.approx(0.02, rel=0.05)
    block = model.blocks[0]
    for weight in (*block.attn.qkv.weight.chunk(3), block.attn.proj.weight, block.mlp.fc1.weight):
        fan = sum(weight.shape)
        assert weight.std().item() == pytest.approx((2 / fan) ** 0.5, rel=0.05)  # xavier_uniform
        assert weight.abs().max().item() <= (6 / fan) ** 0.5
    assert block.attn.qkv.bias.abs().max() == 0
    assert 0 < block.mlp.fc1.bias.abs().max() < 1e-5
    # lecun_normal.
    assert model.patch_embed.proj.weight.std().item() == pytest.approx(2048**-0.5, rel=0.05)
    unit = model.patch_embed.backbone.stages[0].blocks[0]
    assert unit.norm3.weight.abs().max() == 0
    assert unit.conv2.weight.std().item() == pytest.approx((9 * 64) ** -0.5, rel=0.05)


def test_registers_and_distillation_token_start_different(tiny):
    model = VisionTransformer(**tiny, encoder=dict(reg_token=4, dist_token=1), pos_embed='none')
    assert model.num_prefix_tokens == 6  # the class token and these five
    assert torch.cdist(model.reg_token[0], model.reg_token[0]).fill_diagonal_(1).min() > 0
    assert model.dist_token.std() > 0


def test_meta_model_is_initialized_after_to_empty(tiny_hybrid):
    with torch.device('meta'):
        model = VisionTransformer(**tiny_hybrid, encoder=dict(layer_scale_init_value=0.5))
    model.to_empty(device='cpu')
    for parameter in model.parameters():
        torch.nn.init.constant_(parameter, torch.nan)
    model.apply(
        lambda module: module.reset_parameters() if hasattr(module, 'reset_parameters') else None
    )
    assert not any(parameter.isnan().any() for parameter in model.parameters())
    assert model.patch_embed.backbone.stages[0].blocks[0].norm3.weight.abs().max() == 0


@pytest.mark.parametrize(
    ('patch_embed', 'stride'),
    [
        (dict(act_cfg=dict(type='ReLU')), 32),
        (dict(type='PatchEmbed', act_cfg=dict(type='ReLU')), 32),
        (dict(type='PatchEmbed', patch_size=8), 8),
        (dict(type='ResNetEmbed', stage_depths=(1,)), 4),
    ],
)
def test_stem_of_the_arch_is_changed_or_replaced(patch_embed, stride):
    with torch.device('meta'):
        assert VisionTransformer('B/32', patch_embed=patch_embed).patch_embed.stride == stride


def test_train_returns_the_model_and_frozen_parts_stay_frozen(tiny):
    model = VisionTransformer(**tiny, frozen_stages=1, drop_rate=0.5)
    assert model.eval() is model
    assert model.train() is model
    assert not model.patch_embed.training
    assert not model.drop_after_pos.training
    assert [block.mlp.drop.training for block in model.blocks] == [False, True]
    frozen = {name for name, parameter in model.named_parameters() if not parameter.requires_grad}
    assert {
        'cls_token',
        'pos_embed',
        'patch_embed.proj.weight',
        'blocks.0.attn.qkv.weight',
    } <= frozen
    assert not any(name.startswith(('blocks.1', 'norm')) for name in frozen)


@pytest.mark.parametrize(('frozen_stages', 'trained'), [(-1, 'all'), (0, 'blocks'), (2, 'nothing')])
def test_frozen_stages_freeze_embeddings_and_blocks(tiny, frozen_stages, trained):
    model = VisionTransformer(**tiny, frozen_stages=frozen_stages)
    learning = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    all_names = {name for name, _ in model.named_parameters()}
    expected = {
        'all': all_names,
        'nothing': set(),
        'blocks': {name for name in all_names if name.startswith(('blocks', 'norm'))},
    }
    assert learning == expected[trained]


@pytest.mark.parametrize('with_cp', [True, 'selective'])
@pytest.mark.parametrize('config', ['tiny', 'tiny_hybrid'])
def test_activation_checkpointing_changes_no_gradient(config, with_cp, request):
    cfg = request.getfixturevalue(config)
    plain, saving = VisionTransformer(**cfg), VisionTransformer(**cfg, with_cp=with_cp)
    saving.load_state_dict(plain.state_dict())
    images, flops = torch.randn(2, 3, 32, 32), []
    for model in (plain, saving):
        with FlopCounterMode(display=False) as counter:
            model(images)[0].square().sum().backward()
        flops.append(counter.get_total_flops())
    if with_cp == 'selective':  # keeps the results of matrix products, and recomputes the others
        assert flops[1] == flops[0]
    else:
        assert flops[1] != flops[0]
    for (name, ours), theirs in zip(plain.named_parameters(), saving.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad, msg=name)


def test_layer_depth_of_a_pure_vit_equals_mmpretrains(tiny):
    model = VisionTransformer(**tiny)
    depths = {
        name: model.get_layer_depth(f'backbone.{name}', 'backbone.')
        for name, _ in model.named_parameters()
    }
    assert {depth for _, depth in depths.values()} == {4}
    for name, (depth, _) in depths.items():
        if name.startswith('blocks'):
            assert depth == int(name.split('.')[1]) + 1, name
        elif name.startswith('norm'):
            assert depth == 3, name
        else:
            assert depth == 0, name
    assert model.get_layer_depth('head.layers.head.weight', 'backbone.') == (3, 4)


def test_dropout_is_off_in_eval_and_on_in_training(tiny):
    model = VisionTransformer(
        **tiny, drop_rate=0.3, drop_path_rate=0.3, encoder=dict(attn_drop_rate=0.3)
    )
    images = torch.randn(2, 3, 32, 32)
    assert not torch.equal(model.train()(images)[0], model(images)[0])
    assert torch.equal(model.eval()(images)[0], model(images)[0])


@pytest.mark.parametrize(
    'pos_embed',
    [
        'none',
        'learned',
        'learned_2d',
        'sincos2d',
        'relative',
        dict(type='none', relative='bias'),
        dict(type='none', relative='shared_bias'),
        dict(type='sincos2d', spread=False),
        dict(type='learned', interpolate_mode='bicubic'),
    ],
)
@pytest.mark.parametrize('with_cls_token', [True, False])
def test_every_position_embedding_trains_and_resizes(tiny, pos_embed, with_cls_token):
    model = VisionTransformer(
        **tiny, pos_embed=pos_embed, with_cls_token=with_cls_token, out_type='raw'
    )
    for size in ((32, 32), (40, 24)):
        model(torch.randn(2, 3, *size))[0].square().sum().backward()
    assert_all_learn(model)


def test_position_embedding_none_is_blind_to_order(tiny):
    images = torch.randn(1, 3, 32, 32)
    shifted = images.roll(8, dims=-1)  # by one patch
    outs = {}
    for pos_embed in ('none', 'learned', 'learned_2d', 'sincos2d', 'relative'):
        model = VisionTransformer(**tiny, pos_embed=pos_embed).eval()
        for block in model.blocks:
            if pos_embed == 'relative':  # its tables start at zero
                torch.nn.init.normal_(block.attn.rel_pos_h)
                torch.nn.init.normal_(block.attn.rel_pos_w)
        with torch.no_grad():
            outs[pos_embed] = (model(images)[0] - model(shifted)[0]).abs().max().item()
    assert outs.pop('none') < 1e-5
    # With 'relative' the class token depends on the order only through the outputs of the patches.
    assert all(difference > 1e-4 for difference in outs.values()), outs


@pytest.mark.filterwarnings('ignore')
def test_double_precision_and_bfloat16_keep_outputs_close(tiny_hybrid):
    model = VisionTransformer(**tiny_hybrid).eval()
    images = torch.randn(1, 3, 32, 32)
    with torch.no_grad():
        (reference,) = model(images)
        with torch.autocast('cpu', torch.bfloat16):
            torch.testing.assert_close(model(images)[0].float(), reference, atol=0.1, rtol=0.1)
        torch.testing.assert_close(
            model.double()(images.double())[0].float(), reference, atol=1e-4, rtol=1e-4
        )


def test_pyramid_of_a_hybrid_is_its_cnn_and_the_transformer(tiny_hybrid):
    model = VisionTransformer(**tiny_hybrid, out_type='pyramid').eval()
    assert (model.strides, model.channels) == ((4, 8), (128, 32))
    images = torch.randn(1, 3, 40, 52)
    outs = model(images)
    assert [tuple(out.shape) for out in outs] == [
        (1, channels, math.ceil(40 / stride), math.ceil(52 / stride))
        for channels, stride in zip(model.channels, model.strides, strict=True)
    ]
    assert all(out.is_contiguous() for out in outs)
    torch.testing.assert_close(outs[0], model.patch_embed(images)[2][0])
    model.out_type = 'featmap'
    torch.testing.assert_close(outs[1:], model(images))
    assert (model.strides, model.channels) == ((8,), (32,))


def test_pyramid_with_the_class_token_behind_each_patch(tiny_hybrid):
    model = VisionTransformer(**tiny_hybrid, out_type='pyramid_cls').eval()
    assert model.channels == (128, 64)
    images = torch.randn(2, 3, 40, 48)
    (fine, tokens) = model(images)
    model.out_type = 'pyramid'
    pyramid = model(images)
    model.out_type = 'cls_token'
    (class_token,) = model(images)
    torch.testing.assert_close((fine, tokens[:, :32]), pyramid)
    torch.testing.assert_close(tokens[:, 32:], class_token[..., None, None].expand(2, 32, 5, 6))


@pytest.mark.parametrize(
    ('arch', 'strides', 'channels'),
    [
        ('R50+B/16', (4, 8, 16), (256, 512, 768)),
        ('R26+S/32', (4, 8, 16, 32), (256, 512, 1024, 384)),
        ('R+Ti/16', (4, 32), (64, 192)),
        ('B/16', (16,), (768,)),
    ],
)
def test_strides_and_channels_of_a_pyramid(arch, strides, channels):
    with torch.device('meta'):
        model = VisionTransformer(arch, out_type='pyramid')
    assert (model.strides, model.channels) == (strides, channels)


def test_strides_and_channels_of_several_maps(tiny):
    model = VisionTransformer(**tiny, out_type='featmap', out_indices=(0, 1))
    assert (model.strides, model.channels) == ((8, 8), (32, 32))


@pytest.mark.parametrize(
    ('window', 'words'),
    [
        (dict(global_blocks=(0,)), 'window needs size'),
        (dict(size=0), 'window.size=0 must be'),
        (dict(size=2, global_blocks=(2,)), 'blocks -2 to 1'),
        (dict(size=2, shift=1), 'window takes no shift'),
    ],
)
def test_invalid_windows_raise(tiny, window, words):
    with rejects(words):
        VisionTransformer(
            **tiny, with_cls_token=False, out_type='featmap', encoder=dict(window=window)
        )


def test_windows_with_a_class_token_raise(tiny):
    with rejects('set with_cls_token=False'):
        VisionTransformer(**tiny, encoder=dict(window=dict(size=2)))


@pytest.mark.parametrize('with_cp', [False, True])
@pytest.mark.parametrize('pos_embed', ['learned', 'relative'])
def test_the_class_token_alone_equals_that_of_all_tokens(tiny, with_cp, pos_embed):
    """Where only the class token is the output, the last block does not compute the patches."""
    alone = VisionTransformer(**tiny, pos_embed=pos_embed, with_cp=with_cp)
    among = VisionTransformer(**tiny, pos_embed=pos_embed, with_cp=with_cp, out_type='raw')
    among.load_state_dict(alone.state_dict())
    images = torch.randn(2, 3, 32, 32)
    outs = alone(images)[0], among(images)[0][:, 0]
    torch.testing.assert_close(*outs)
    direction = torch.randn(2, 32)
    for out in outs:
        (out * direction).sum().backward()
    for ours, theirs in zip(alone.parameters(), among.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad, atol=1e-5, rtol=1e-4)


def test_the_last_block_does_not_compute_the_patches(tiny):
    flops = []
    for out_type in ('cls_token', 'raw'):
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            VisionTransformer(**tiny, out_type=out_type).eval()(torch.randn(1, 3, 32, 32))
        flops.append(counter.get_total_flops())
    # The projections and MLPs of 16 patches, with 2 FLOPs per multiply-add. torch 2.14 also leaves
    # the queries out.
    saved = 16 * 2 * (32 * 32 + 2 * 32 * 64)
    assert flops[1] - flops[0] >= saved


@pytest.mark.parametrize('pos_embed', ['learned', 'sincos2d'])
def test_the_residual_stream_is_float32_under_autocast(tiny, pos_embed):
    model = VisionTransformer(**tiny, pos_embed=pos_embed)
    dtypes = []
    for block in model.blocks:
        block.register_forward_hook(lambda block, args, out: dtypes.append(out.dtype))
    with torch.autocast('cpu', torch.bfloat16):
        model(torch.randn(1, 3, 32, 32))
    assert dtypes == [torch.float32] * 2
    assert (
        model.bfloat16()(torch.randn(1, 3, 32, 32, dtype=torch.bfloat16))[0].dtype == torch.bfloat16
    )


def test_a_model_without_blocks_outputs_the_normed_stem():
    model = VisionTransformer(
        dict(SIZES, num_layers=0, patch_size=8),
        32,
        with_cls_token=False,
        pos_embed='none',
        out_type='avg_featmap',
    ).eval()
    images = torch.randn(2, 3, 32, 32)
    torch.testing.assert_close(model(images)[0], model.norm(model.patch_embed(images)[0]).mean(1))
    with rejects('Invalid out_indices 0'):
        VisionTransformer(dict(SIZES, num_layers=0, patch_size=8), 32, out_indices=0)


def test_a_detail_of_the_numerics_keeps_the_others_of_a_timm_name():
    with torch.device('meta'):
        model = VisionTransformer('timm://test_vit', numerics=dict(norm_cfg=dict(eps=1e-4)))
    assert model.numerics.norm_cfg == dict(type='LN', eps=1e-4)
    assert model.numerics.act_cfg['approximate'] == 'none'
