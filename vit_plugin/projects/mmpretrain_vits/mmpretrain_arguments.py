"""Translate the arguments of MMPretrain's Vision Transformers into those of our backbone."""

from collections.abc import Mapping, Sequence
from typing import Any

from vit_plugin.arguments.fields import Section
from vit_plugin.errors import ConfigError

from .mmpretrain_options import ArchSizes

MMPRETRAIN_DEFAULTS: Section = dict(
    img_size=224,
    patch_size=16,
    in_channels=3,
    out_indices=-1,
    drop_rate=0.0,
    attn_drop_rate=0.0,
    drop_path_rate=0.0,
    qkv_bias=True,
    norm_cfg=dict(type='LN', eps=1e-6),
    final_norm=True,
    out_type='cls_token',
    with_cls_token=True,
    frozen_stages=-1,
    interpolate_mode='bicubic',
    layer_scale_init_value=0.0,
    patch_cfg={},
    layer_cfgs={},
    pre_norm=False,
    sub_ln=False,
    use_layer_scale=False,
    init_cfg=None,
)
# Arguments with the same name and meaning in our backbone.
UNCHANGED_ARGUMENTS = (
    'img_size',
    'with_cls_token',
    'out_indices',
    'out_type',
    'drop_rate',
    'drop_path_rate',
    'init_cfg',
)
# Arguments of the backbone that layer_cfgs can override. The first ones become our `encoder`.
ENCODER_ARGUMENTS = ('layer_scale_init_value', 'attn_drop_rate', 'qkv_bias')
BLOCK_ARGUMENTS = (*ENCODER_ARGUMENTS, 'drop_rate', 'norm_cfg')


def translate(sizes: ArchSizes, options: Mapping[str, Any]) -> Section:
    """Translate MMPretrain's VisionTransformer arguments into ours.

    The result is for :class:`~vit_plugin.models.VisionTransformer`.

    Args:
        sizes: the arch, a dict with MMPretrain's four keys.
        options: the other arguments. Missing ones default to ``MMPRETRAIN_DEFAULTS``.

    Raises:
        ConfigError: if a value has no translation. The message names the argument.
    """
    arguments = {**MMPRETRAIN_DEFAULTS, **options}
    arguments['norm_cfg'] = _norm_cfg(arguments['norm_cfg'])
    if arguments['use_layer_scale']:
        arguments['layer_scale_init_value'] = 1e-5
    block = _block_arguments(arguments, sizes)
    is_gated = block['ffn_type'] == 'swiglu_fused'
    indices = arguments['out_indices']
    indices = [indices] if isinstance(indices, int) else indices
    # MMPretrain norms only the output of the last block, so without it a norm would have no use.
    has_last = any(index in (-1, sizes['num_layers'] - 1) for index in indices)
    return dict(
        {name: arguments[name] for name in UNCHANGED_ARGUMENTS},
        arch={name: block[name] for name in sizes} | {'feedforward_channels': _mlp_width(block)},
        patch_embed=_stem(arguments),
        pos_embed=dict(
            type='learned', interpolate_mode=f'{arguments["interpolate_mode"]}_mmpretrain'
        ),
        encoder=dict(
            {name: block[name] for name in ENCODER_ARGUMENTS},
            gated_mlp=is_gated,
            mlp_norm=arguments['sub_ln'],
            pre_norm=arguments['pre_norm'],
            final_norm=arguments['final_norm'] and has_last,
        ),
        numerics=dict(base='timm', norm_cfg=arguments['norm_cfg'], act_cfg=_activation(block)),
        frozen_stages=arguments['frozen_stages'] or -1,  # 0 freezes nothing in MMPretrain
    )


def _norm_cfg(cfg: Mapping[str, Any]) -> Section:
    """A ``norm_cfg`` with mmcv's default eps.

    Raises:
        ConfigError: for ``requires_grad=False``.
    """
    cfg = {'eps': 1e-5, **cfg}
    if not cfg.pop('requires_grad', True):
        raise ConfigError(
            'norm_cfg: requires_grad=False has no counterpart; freeze blocks with frozen_stages.'
        )
    return cfg


def _block_arguments(arguments: Mapping[str, Any], sizes: ArchSizes) -> Section:
    """The arguments of the blocks: the backbone's, changed by ``layer_cfgs``.

    Raises:
        ConfigError: if ``layer_cfgs`` changes an argument that our backbone has only once.
    """
    block = {
        **{name: arguments[name] for name in BLOCK_ARGUMENTS},
        'ffn_type': 'origin',
        'act_cfg': dict(type='GELU'),
        **sizes,
        **arguments['layer_cfgs'],
    }
    block['norm_cfg'] = _norm_cfg(block['norm_cfg'])
    for name in ('drop_rate', 'norm_cfg'):
        if block[name] != arguments[name]:
            raise ConfigError(
                f'layer_cfgs: {name} must be the same everywhere in this backbone, but it is '
                f'{arguments[name]} and {block[name]}.'
            )
    return block


def _mlp_width(block: Mapping[str, Any]) -> int:
    """The width of the MLP.

    With a gate there is a third matrix, so the width is two thirds, rounded up to a multiple of 8
    (facebookresearch/dinov2 ``swiglu_ffn.py``).
    """
    width = block['feedforward_channels']
    return width if block['ffn_type'] == 'origin' else (int(width * 2 / 3) + 7) // 8 * 8


def _activation(block: Mapping[str, Any]) -> Section:
    """Our config of the activation. A scope, as in ``'mmpretrain.QuickGELU'``, is left out."""
    if block['ffn_type'] == 'swiglu_fused':
        return dict(type='SiLU')
    act_type = block['act_cfg']['type']
    return {
        **block['act_cfg'],
        'type': act_type.rpartition('.')[2] if isinstance(act_type, str) else act_type,
    }


def _stem(arguments: Mapping[str, Any]) -> Section:
    """Our config of the stem for mmcv's ``PatchEmbed``.

    With ``pre_norm``, as in CLIP, it has no bias by default.
    """
    cfg = {
        'kernel_size': arguments['patch_size'],
        'stride': arguments['patch_size'],
        'padding': 'corner',
        'in_channels': arguments['in_channels'],
        'bias': not arguments['pre_norm'],
        'norm_cfg': None,
        **arguments['patch_cfg'],
    }
    sides = {*_sides(cfg['kernel_size']), *_sides(cfg['stride'])}
    if len(sides) != 1:
        raise ConfigError(
            f'patch_size={arguments["patch_size"]} and patch_cfg={dict(arguments["patch_cfg"])}: '
            'kernel_size and stride must be one number, since patches are adjacent squares.'
        )
    return dict(
        type='PatchEmbed',
        patch_size=sides.pop(),
        in_channels=cfg['in_channels'],
        bias=cfg['bias'],
        padding='same' if cfg['padding'] == 'corner' else 'valid',
        norm_cfg=cfg['norm_cfg'] and _norm_cfg(cfg['norm_cfg']),
    )


def _sides(size: int | Sequence[int] | None) -> Sequence[int]:
    """The sides of a size; none for None, which means mmcv's default."""
    return [size] if isinstance(size, int) else size or ()
