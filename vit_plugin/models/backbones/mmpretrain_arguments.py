"""The arguments of MMPretrain's Vision Transformers, and their translation into ours."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from vit_plugin.arguments.fields import (
    Depth,
    Fraction,
    Indices,
    InitConfig,
    NormConfig,
    PositiveInt,
    Rate,
    Size,
    Typed,
)
from vit_plugin.errors import ConfigError

Zero = Annotated[float, Field(ge=0, le=0)]  # other values have no translation


class Sizes(TypedDict):
    """MMPretrain's dict for ``arch``."""

    embed_dims: PositiveInt
    num_layers: Depth
    num_heads: PositiveInt
    feedforward_channels: PositiveInt


class PatchOptions(TypedDict, total=False):
    """Arguments of mmcv's ``PatchEmbed`` that have a translation."""

    in_channels: PositiveInt
    conv_type: Literal['Conv2d', None]
    kernel_size: Size
    stride: Size | None
    padding: Literal['corner', 0]
    dilation: Literal[1]
    bias: bool
    norm_cfg: NormConfig | None


class LayerOptions(TypedDict, total=False):
    """Arguments of MMPretrain's ``TransformerEncoderLayer`` that have a translation."""

    num_heads: PositiveInt
    feedforward_channels: PositiveInt
    layer_scale_init_value: Fraction
    drop_rate: Rate
    attn_drop_rate: Rate
    num_fcs: Literal[2]
    qkv_bias: bool
    ffn_type: Literal['origin', 'swiglu_fused']
    act_cfg: Typed
    norm_cfg: NormConfig


OutType = Literal['raw', 'cls_token', 'featmap', 'avg_featmap']


class CommonOptions(TypedDict, total=False):
    """Arguments that all of MMPretrain's classes here take."""

    img_size: Size
    patch_size: Size
    in_channels: PositiveInt
    out_indices: int | Indices
    drop_path_rate: Rate
    qkv_bias: bool
    norm_cfg: NormConfig
    final_norm: bool
    interpolate_mode: Literal['bicubic', 'bilinear']
    patch_cfg: PatchOptions
    init_cfg: InitConfig


class DistilledOptions(CommonOptions, total=False):
    """Arguments of MMPretrain's ``DistilledVisionTransformer``.

    It ignores ``pre_norm``, which is rejected here.
    """

    out_type: OutType
    drop_rate: Rate
    frozen_stages: Annotated[int, Field(ge=-1)]
    layer_scale_init_value: Fraction
    layer_cfgs: LayerOptions


class ViTOptions(DistilledOptions, total=False):
    """Arguments of MMPretrain's ``VisionTransformer``."""

    with_cls_token: bool
    pre_norm: bool


class MoCoV3Options(ViTOptions, total=False):
    """Arguments of MMPretrain's ``MoCoV3ViT``."""

    stop_grad_conv1: bool
    norm_eval: bool


class DeiT3Options(CommonOptions, total=False):
    """Arguments of MMPretrain's ``DeiT3``. It fails with ``out_type='avg_featmap'``."""

    drop_rate: Rate
    with_cls_token: bool
    use_layer_scale: bool
    out_type: Literal['raw', 'cls_token', 'featmap']
    layer_cfgs: LayerOptions


class EVA02Options(CommonOptions, total=False):
    """Arguments of MMPretrain's ``ViTEVA02``."""

    out_type: OutType
    sub_ln: bool
    attn_drop_rate: Rate
    drop_rate: Zero
    proj_drop_rate: Zero
    with_cls_token: bool
    frozen_stages: Annotated[int, Field(ge=-1)]
    pre_norm: bool


DEFAULTS: dict[str, Any] = dict(
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
# Arguments of the backbone that layer_cfgs can change in the blocks.
OF_BLOCKS = ('layer_scale_init_value', 'attn_drop_rate', 'qkv_bias', 'drop_rate', 'norm_cfg')


def translate(sizes: Sizes, options: Mapping[str, Any]) -> dict[str, Any]:
    """Translate MMPretrain's VisionTransformer arguments into ours.

    They become arguments of :class:`~vit_plugin.models.VisionTransformer`.

    Args:
        sizes: the arch, a dict with MMPretrain's four keys.
        options: the other arguments. ``DEFAULTS`` has those that are not given.

    Raises:
        ConfigError: if a value has no translation. The sentence names the argument.
    """
    given = {**DEFAULTS, **options}
    given['norm_cfg'] = _norm(given['norm_cfg'])
    if given['use_layer_scale']:
        given['layer_scale_init_value'] = 1e-5
    block, indices = _block(given, sizes), given['out_indices']
    sizes = dict(sizes, **{name: block[name] for name in ('num_heads', 'feedforward_channels')})
    act_cfg, gated = dict(block['act_cfg']), block['ffn_type'] == 'swiglu_fused'
    if isinstance(act_cfg['type'], str):
        act_cfg['type'] = act_cfg['type'].rpartition('.')[2]  # 'mmpretrain.QuickGELU'
    # Two thirds, since there is a third matrix, in multiples of 8 (facebookresearch/dinov2
    # `swiglu_ffn.py`).
    if gated:
        sizes['feedforward_channels'] = (int(sizes['feedforward_channels'] * 2 / 3) + 7) // 8 * 8
        act_cfg = dict(type='SiLU')
    last = {-1, sizes['num_layers'] - 1}.intersection(
        [indices] if isinstance(indices, int) else indices
    )
    return dict(
        arch=sizes,
        img_size=given['img_size'],
        patch_embed=_stem(given),
        pos_embed=dict(type='learned', interpolate_mode=f'{given["interpolate_mode"]}_mmpretrain'),
        with_cls_token=given['with_cls_token'],
        encoder=dict(
            {
                name: block[name]
                for name in ('layer_scale_init_value', 'attn_drop_rate', 'qkv_bias')
            },
            gated_mlp=gated,
            mlp_norm=given['sub_ln'],
            pre_norm=given['pre_norm'],
            final_norm=given['final_norm'] and bool(last),
        ),
        numerics=dict(base='timm', norm_cfg=given['norm_cfg'], act_cfg=act_cfg),
        out_indices=indices,
        out_type=given['out_type'],
        drop_rate=given['drop_rate'],
        # 0 freezes nothing there.
        drop_path_rate=given['drop_path_rate'],
        frozen_stages=given['frozen_stages'] or -1,
        init_cfg=given['init_cfg'],
    )


def _norm(cfg: Mapping[str, Any]) -> dict[str, Any]:
    """A ``norm_cfg`` with MMPretrain's default eps."""
    cfg = {'eps': 1e-5, **cfg}
    if not cfg.pop('requires_grad', True):
        raise ConfigError(
            'norm_cfg: requires_grad=False has no translation; freeze blocks with frozen_stages.'
        )
    return cfg


def _block(given: Mapping[str, Any], sizes: Sizes) -> dict[str, Any]:
    """The arguments of the blocks: the backbone's, changed by ``layer_cfgs``."""
    block = {
        **{name: given[name] for name in OF_BLOCKS},
        'ffn_type': 'origin',
        'act_cfg': dict(type='GELU'),
        **sizes,
        **given['layer_cfgs'],
    }
    block['norm_cfg'] = _norm(block['norm_cfg'])
    for name in ('drop_rate', 'norm_cfg'):
        if block[name] != given[name]:
            raise ConfigError(
                f'layer_cfgs: {name} must be the same everywhere in this backbone, and it is '
                f'{given[name]} and {block[name]}.'
            )
    return block


def _stem(given: Mapping[str, Any]) -> dict[str, Any]:
    """mmcv's ``PatchEmbed`` as our stem. CLIP's, with a norm before the blocks, has no bias."""
    cfg = {
        'kernel_size': given['patch_size'],
        'padding': 'corner',
        'in_channels': given['in_channels'],
        'bias': not given['pre_norm'],
        'norm_cfg': None,
        **given['patch_cfg'],
    }
    sides = {
        side
        for name in ('kernel_size', 'stride')
        for size in [cfg.get(name, given['patch_size'])]
        for side in ([size] if isinstance(size, int) else size or ())
    }
    if len(sides) != 1:
        raise ConfigError(
            f'patch_size={given["patch_size"]} and patch_cfg={dict(given["patch_cfg"])}: '
            'kernel_size and stride must be one number, since the patches are squares side by '
            'side.'
        )
    return dict(
        type='PatchEmbed',
        patch_size=sides.pop(),
        in_channels=cfg['in_channels'],
        bias=cfg['bias'],
        padding='same' if cfg['padding'] == 'corner' else 'valid',
        norm_cfg=cfg['norm_cfg'] and _norm(cfg['norm_cfg']),
    )
