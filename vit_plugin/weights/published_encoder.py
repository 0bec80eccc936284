"""Convert a third-party encoder's config, checked against its weights, to our backbone's.

Each field of the config is read, compared with the weights or required to have a supported value,
since unread fields are an error, see :class:`~vit_plugin.weights.foreign_config.ForeignConfig`.
"""

import math
from collections.abc import Sequence
from typing import Any

from vit_plugin.arguments.fields import Eps, Positive, PositiveInt, Section, Size
from vit_plugin.errors import ConfigError

from .foreign_config import ForeignConfig
from .published import Published
from .reading.lazy import Weights
from .traits import is_gated, num_registers

PREFIX_ROWS = (0, 1, 2)  # possible numbers of prefix rows in a position table, without registers
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
# Whether queries, keys and values have a bias -> our `qkv_bias`.
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
    size_field: str = 'image_size',
    has_square_table: bool = True,
) -> Section:
    """``arch``, ``img_size``, ``numerics`` and ``encoder`` of a :class:`VisionTransformer`.

    For a hybrid, ``img_size`` counts elements of the CNN's last map, so the caller multiplies it by
    the stride of that map. Without a config and a position table it is 0, and the caller sets it.

    Args:
        published: the weights.
        config: the config of the encoder, whose fields are read. None: the file has no config, and
            a DINOv2 encoder with heads of 64 channels is assumed.
        size_field: the field with the image size of the position table.
        has_square_table: whether the encoder's own code makes a square table even for images that
            are not square.

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
    grid = (math.isqrt(rows or 0),) * 2  # rounded down, without the few prefix rows
    if config is not None:
        _check_sizes_and_biases(config, arch, options)
        if is_plain:
            config.check_agreement(num_channels=channels)
            config.require('num_channels', 3)
            if height_width(config.get('patch_size', Size)) != (height, patch):
                # The sizes differ; this raises the message for it.
                config.check_agreement(patch_size=patch if height == patch else [height, patch])
        arch['num_heads'] = _heads(config, width)
        act_cfg, eps = _activation(config), config.get('layer_norm_eps', Eps)
        patch_size = (height, patch) if is_plain else height_width(config.get('patch_size', Size))
        prefix_rows = (*PREFIX_ROWS, 1 + options['reg_token'])
        grid = _grid(config, size_field, patch_size, rows, has_square_table, prefix_rows)
    if is_plain and (channels != 3 or height != patch):
        raise ConfigError(
            f'its images have {channels} channels, and its patches {height} x {patch} pixels; give '
            'a model of square patches of RGB images'
        )
    # Everything else is as in timm's models.
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
        reg_token=num_registers(ours),
    )


def shown_fields(arch: Section, options: Section) -> Section:
    """Fields of transformers' configs whose values the weights of an encoder show.

    Args:
        arch: sizes of the encoder, as a dict.
        options: see :func:`options_of_weights`.
    """
    separate_biases = {qkv_bias: biases for biases, qkv_bias in QKV_BIASES.items()}
    return dict(
        hidden_size=arch['embed_dims'],
        num_hidden_layers=arch['num_layers'],
        intermediate_size=arch['feedforward_channels'],
        num_register_tokens=options['reg_token'],
        n_cls_tokens=1 + options['reg_token'],  # a field that counts registers, too
        use_swiglu_ffn=options['gated_mlp'],
        use_gated_mlp=options['gated_mlp'],
        qkv_bias=bool(options['qkv_bias']),
        **dict(zip(SEPARATE_BIASES, separate_biases[options['qkv_bias']], strict=True)),
        **dict.fromkeys(LAYER_BIASES, options['proj_bias']),
    )


def _check_sizes_and_biases(config: ForeignConfig, arch: Section, options: Section) -> None:
    """Raise a ``ConfigError`` for a size or a bias that the weights or our blocks do not have."""
    width, hidden, gated = arch['embed_dims'], arch['feedforward_channels'], options['gated_mlp']
    # First the biases that our blocks do not have, for which the message can say so. `content` is
    # read directly, so that the fields count as read only by `check_agreement`.
    biases = tuple(map(config.content.get, SEPARATE_BIASES))
    if all(map(config.sets, SEPARATE_BIASES)) and biases not in QKV_BIASES:
        why = 'of which ours has all, none, or all but the keys'
        raise config.unsupported(*SEPARATE_BIASES, why=why)
    if all(map(config.sets, LAYER_BIASES)) and len({*map(config.content.get, LAYER_BIASES)}) > 1:
        raise config.unsupported(*LAYER_BIASES, why='of which ours has both or none')
    config.check_agreement(**shown_fields(arch, options))
    if config.may_have('mlp_ratio'):
        ratio = config.get('mlp_ratio', Positive)
        # A default that differs says nothing: the weights decide.
        if hidden != hidden_channels(width, ratio, gated) and config.sets('mlp_ratio'):
            raise config.unsupported('mlp_ratio', why=f'where its MLPs have {hidden} channels')


def hidden_channels(width: int, ratio: float, gated: bool) -> int:
    """Hidden channels of DINOv2's MLP: with SwiGLU two thirds, rounded up to a multiple of 8."""
    return -(-int(int(width * ratio) * 2 / 3) // 8) * 8 if gated else int(width * ratio)


def _heads(config: ForeignConfig, width: int) -> int:
    """The number of heads, which must divide the width."""
    heads = config.get('num_attention_heads', PositiveInt)
    if width % heads:
        raise config.unsupported('num_attention_heads', why=f'which must divide {width} channels')
    return heads


def _activation(config: ForeignConfig) -> Section:
    """The ``act_cfg`` of the MLPs."""
    if config.may_have('use_swiglu_ffn') and config['use_swiglu_ffn']:
        config.ignore('hidden_act')  # DINOv2's SwiGLU always uses SiLU
        return ACT_CFGS['silu']
    if (name := config['hidden_act']) not in ACT_CFGS:
        raise config.unsupported('hidden_act')
    return ACT_CFGS[name]


def _grid(
    config: ForeignConfig,
    size_field: str,
    patch: tuple[int, int],
    rows: int | None,
    has_square_table: bool,
    prefix_rows: Sequence[int],
) -> tuple[int, int]:
    """Rows and columns of the position table, which must fit the image size in the config.

    Args:
        config: the config.
        size_field: its field with the image size.
        patch: height and width of a patch.
        rows: rows of the table. None without one: the grid is that of the image.
        has_square_table: see :func:`encoder_section`.
        prefix_rows: possible numbers of rows for tokens before the patches.

    Raises:
        ConfigError: if the table is for another image size. One that the config only has by default
            may differ.
    """
    sides = zip(height_width(config.get(size_field, Size)), patch, strict=True)
    height, width = (side // length for side, length in sides)
    if rows is None:
        return height, width
    # The table has the size of the image in the config.
    root = math.isqrt(height * width)
    if rows - height * width in prefix_rows and (root**2 == height * width or not has_square_table):
        return (root, root) if has_square_table else (height, width)
    # That size is only a default, so the table decides.
    root = math.isqrt(rows)
    if rows - root**2 in prefix_rows and not config.sets(size_field):
        return root, root
    raise config.unsupported(
        size_field,
        why=f'which are {height} x {width} patches, where its position table has {rows} rows'
        + (' of a square' if has_square_table else ''),
    )


def height_width(size: Any) -> tuple[int, int]:
    """Height and width, of one number for both or of a sequence."""
    return (size, size) if isinstance(size, int) else tuple(size)
