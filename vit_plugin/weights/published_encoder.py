"""Convert a third-party encoder's config, checked against its weights, to our backbone's."""

import math
from collections.abc import Sequence
from typing import Any

from vit_plugin.arguments.fields import Eps, Positive, PositiveInt, Section, Size
from vit_plugin.errors import ConfigError

from .foreign_config import ForeignConfig
from .published import Published
from .reading.lazy import Weights
from .traits import is_gated

ROWS = (0, 1, 2)  # possible numbers of prefix rows in a position table, without registers
DINOV2_HEAD_DIMS = 64  # channels of a head of DINOv2, for files without a config
# transformers' names of activations (`ACT2CLS`) -> ours.
ACT_CFGS: dict[str, Section] = {
    'gelu': dict(approximate='none'),
    'gelu_python': dict(approximate='none'),
    'gelu_new': dict(approximate='tanh'),
    'gelu_pytorch_tanh': dict(approximate='tanh'),
    'hardswish': dict(type='Hardswish'),
    'leaky_relu': dict(type='LeakyReLU'),
    'linear': dict(type='Identity'),
    'mish': dict(type='Mish'),
    'quick_gelu': dict(type='QuickGELU'),
    'relu': dict(type='ReLU'),
    'silu': dict(type='SiLU'),
    'swish': dict(type='SiLU'),
    'tanh': dict(type='Tanh'),
}
# A bias of queries, of keys, of values -> our `qkv_bias`.
QKV_BIASES: dict[tuple[bool, ...], Any] = {
    (True, True, True): True,
    (True, False, True): 'qv',
    (False, False, False): False,
}
SEPARATE_BIASES = ('query_bias', 'key_bias', 'value_bias')  # fields of DINOv3's configs
LAYER_BIASES = ('proj_bias', 'mlp_bias')


def encoder_section(
    published: Published,
    config: ForeignConfig | None = None,
    table_size: str = 'image_size',
    square: bool = True,
) -> Section:
    """``arch``, ``img_size``, ``numerics`` and ``encoder`` of a :class:`VisionTransformer`.

    Args:
        published: the weights.
        config: the config of the encoder, whose fields are read. None: the file has no config, and
            a DINOv2 encoder with heads of 64 channels is assumed.
        table_size: the field with the image size of the position table.
        square: whether the encoder's own code treats every table as a square.

    Raises:
        ConfigError: if the config contradicts the weights, or if our backbone does not compute the
            same.
    """
    width, channels, height, patch = published.shape('patch_embed.proj.weight')
    is_plain = not published.count('patch_embed.backbone.')  # without a CNN before the blocks
    arch = dict(
        embed_dims=width,
        num_layers=published.count('blocks.'),
        num_heads=width // DINOV2_HEAD_DIMS,
        feedforward_channels=published.shape('blocks.0.mlp.fc2.weight')[1],
        patch_size=patch,
    )
    options = options_of_weights(published.ours)
    act_cfg, eps = ACT_CFGS['silu' if options['gated_mlp'] else 'gelu'], 1e-6
    rows = published.shape('pos_embed')[1] if 'pos_embed' in published.ours else None
    grid = (math.isqrt(rows or 0),) * 2
    if config is not None:
        _compare(config, arch, options)
        if is_plain:
            config.agree(num_channels=channels)
            config.only('num_channels', 3)
            if _pair(config.get('patch_size', Size)) != (height, patch):
                config.agree(patch_size=patch if height == patch else [height, patch])
        arch['num_heads'] = _heads(config, width)
        act_cfg, eps = _activation(config), config.get('layer_norm_eps', Eps)
        patch_size = (height, patch) if is_plain else _pair(config.get('patch_size', Size))
        extra = (*ROWS, 1 + options['reg_token'])
        grid = _grid(config, table_size, patch_size, rows, square, extra)
    if is_plain and (channels != 3 or height != patch):
        raise ConfigError(
            f'its images have {channels} channels, and its patches {height} x {patch} pixels; give '
            'a model of square patches of RGB images'
        )
    numerics = dict(base='timm', act_cfg=act_cfg, norm_cfg=dict(eps=eps))
    sides = [patch * side for side in grid]
    size: Any = sides[0] if sides[0] == sides[1] else sides
    return dict(arch=arch, img_size=size, numerics=numerics, encoder=options)


def options_of_weights(ours: Weights) -> Section:
    """The encoder options that its weights show, by our names."""
    bias = 'blocks.0.attn.qkv.'
    return dict(
        qkv_bias=True if f'{bias}bias' in ours else 'qv' if f'{bias}q_bias' in ours else False,
        proj_bias='blocks.0.attn.proj.bias' in ours,
        layer_scale_init_value=1.0 if 'blocks.0.ls1.gamma' in ours else 0.0,
        gated_mlp=is_gated(ours),
        reg_token=ours['reg_token'].shape[1] if 'reg_token' in ours else 0,
    )


def shown_fields(arch: Section, options: Section) -> Section:
    """Fields of transformers' configs whose values the weights of an encoder show.

    Args:
        arch: sizes of the encoder, as a dict.
        options: see :func:`options_of_weights`.
    """
    known = {qkv_bias: biases for biases, qkv_bias in QKV_BIASES.items()}
    return dict(
        hidden_size=arch['embed_dims'],
        num_hidden_layers=arch['num_layers'],
        intermediate_size=arch['feedforward_channels'],
        num_register_tokens=options['reg_token'],
        n_cls_tokens=1 + options['reg_token'],
        use_swiglu_ffn=options['gated_mlp'],
        use_gated_mlp=options['gated_mlp'],
        qkv_bias=bool(options['qkv_bias']),
        **dict(zip(SEPARATE_BIASES, known[options['qkv_bias']], strict=True)),
        **dict.fromkeys(LAYER_BIASES, options['proj_bias']),
    )


def dinov3_rotary(config: ForeignConfig, field: str = 'rope_theta') -> Section:
    """DINOv3's positions, whose wavelengths this field of the config scales."""
    base = float(config.get(field, Positive))
    return dict(type='none', rotary=dict(form='centred', planes='halves', temperature=base))


def _compare(config: ForeignConfig, arch: Section, options: Section) -> None:
    """Raise a ``ConfigError`` for a size or a bias that the weights or our blocks do not have."""
    width, hidden, gated = arch['embed_dims'], arch['feedforward_channels'], options['gated_mlp']
    given = tuple(map(config.content.get, SEPARATE_BIASES))
    if all(map(config.gives, SEPARATE_BIASES)) and given not in QKV_BIASES:
        why = 'of which ours has all, none, or all but the keys'
        raise config.refuse(*SEPARATE_BIASES, why=why)
    if all(map(config.gives, LAYER_BIASES)) and len({*map(config.content.get, LAYER_BIASES)}) > 1:
        raise config.refuse(*LAYER_BIASES, why='of which ours has both or none')
    config.agree(**shown_fields(arch, options))
    if config.may_have('mlp_ratio'):
        ratio = config.get('mlp_ratio', Positive)
        if hidden != hidden_channels(width, ratio, gated) and config.gives('mlp_ratio'):
            raise config.refuse('mlp_ratio', why=f'where its MLPs have {hidden} channels')


def hidden_channels(width: int, ratio: float, gated: bool) -> int:
    """Channels of DINOv2's MLP: with SwiGLU two thirds, rounded up to a multiple of 8."""
    return -(-int(int(width * ratio) * 2 / 3) // 8) * 8 if gated else int(width * ratio)


def _heads(config: ForeignConfig, width: int) -> int:
    heads = config.get('num_attention_heads', PositiveInt)
    if width % heads:
        raise config.refuse('num_attention_heads', why=f'which must divide {width} channels')
    return heads


def _activation(config: ForeignConfig) -> Section:
    if config.may_have('use_swiglu_ffn') and config['use_swiglu_ffn']:
        config.ignore('hidden_act')  # DINOv2's SwiGLU always uses SiLU
        return ACT_CFGS['silu']
    if (name := config['hidden_act']) not in ACT_CFGS:
        raise config.refuse('hidden_act')
    return ACT_CFGS[name]


def _grid(
    config: ForeignConfig,
    name: str,
    patch: tuple[int, int],
    rows: int | None,
    square: bool,
    extra: Sequence[int],
) -> tuple[int, int]:
    """Rows and columns of the patches of an image of the size in a field.

    If ``square``, the position table is a square even for images that are not. ``extra``: allowed
    numbers of additional rows.
    """
    sides = zip(_pair(config.get(name, Size)), patch, strict=True)
    height, width = (side // length for side, length in sides)
    if rows is None:
        return height, width
    root = math.isqrt(height * width)
    if rows - height * width in extra and (root**2 == height * width or not square):
        return (root, root) if square else (height, width)
    root = math.isqrt(rows)
    if rows - root**2 in extra and not config.gives(name):
        return root, root
    raise config.refuse(
        name,
        why=f'which are {height} x {width} patches, where its position table has {rows} rows'
        + (' of a square' if square else ''),
    )


def _pair(size: Any) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else tuple(size)
