"""The config of an encoder, and the encoder that it describes."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

from torch import nn
from typing_extensions import Required, TypedDict

from vit_plugin.arch import Arch
from vit_plugin.errors import ConfigError
from vit_plugin.fields import Count, Fraction, PositiveInt, Rate

from .attention import Attention, Grid
from .block import BLOCKS, BlockName
from .differential import DifferentialAttention
from .encoder import Encoder, MergingEncoder
from .mlp import GatedMlp, Mlp
from .numerics import Numerics
from .outputs import FinalNorm
from .qkv import QkvBias
from .relative_position import RelativeAttention
from .rotary_attention import RotaryAttention, RotaryWindowAttention
from .window import RelativeWindowAttention, WindowAttention


class WindowCfg(TypedDict, total=False):
    """Attention within windows (arXiv:2203.16527). It allows no tokens before the patches.

    Attributes:
        size: side of the windows in patches.
        global_blocks: the blocks with global attention.
    """
    size: Required[PositiveInt]
    global_blocks: Sequence[int]


class EncoderCfg(TypedDict, total=False):
    """Differences from the paper's encoder. A list gives one value for each block.

    Attributes:
        dist_token: number of distillation tokens after the class token, as in DeiT.
        reg_token: number of registers after the class token, as in DINOv2.
        pre_norm: whether there is a norm before the first block, as in CLIP. Default: False.
        final_norm: whether every output is normed. ``'apart'`` norms the tokens before the patches by a norm of their
            own, see :class:`~vit_plugin.models.layers.outputs.NormsApart`. Default: True.
        window: attention within windows.
        num_merged: number of tokens that each block merges, see
            :class:`~vit_plugin.models.layers.encoder.MergingEncoder`.
        block: ``'pre_norm'``, ``'post_norm'``, ``'parallel'`` or ``'branched'``, the rows of
            :data:`~vit_plugin.models.layers.block.BLOCKS`. Default: ``'pre_norm'``.
        differential: whether attention is the difference of two attentions. Default: False.
        qkv_bias, num_kv_heads, attn_drop_rate: see :class:`~vit_plugin.models.layers.attention.Attention`.
        qk_norm: whether to norm queries and keys in each head. Default: False.
        attn_norm: whether to norm the attended values before their projection. Default: False.
        mlp_norm: whether the MLP norms its hidden values, or ``'input'`` for its input. Default: False.
        proj_bias: whether attention's output projection and the MLP have biases. Default: True.
        layer_scale_init_value: initial value of LayerScale. 0, the default, means no LayerScale.
        mlp_layer_scale: whether the MLP has a LayerScale too. Default: True.
        gated_mlp: whether the MLP is a :class:`~vit_plugin.models.layers.mlp.GatedMlp`. Default: False.
    """
    dist_token: Count
    reg_token: Count
    pre_norm: bool
    final_norm: FinalNorm
    window: WindowCfg | None
    num_merged: Count | Sequence[Count]
    block: BlockName
    differential: bool
    qkv_bias: QkvBias | Sequence[QkvBias]
    num_kv_heads: PositiveInt | Sequence[PositiveInt]
    attn_drop_rate: Rate | Sequence[Rate]
    qk_norm: bool | Sequence[bool]
    attn_norm: bool
    mlp_norm: bool | Literal['input']
    proj_bias: bool
    layer_scale_init_value: Fraction | Sequence[Fraction]
    mlp_layer_scale: bool
    gated_mlp: bool | Sequence[bool]


def build_encoder(sizes: Arch, cfg: Mapping[str, Any], out_indices: Sequence[int], num_prefix_tokens: int,
                  rel_pos_grid: Grid | None, planes: str | None, numerics: Numerics, drop_rate: float,
                  drop_path_rate: float, with_cp: bool) -> Encoder:
    """Build the encoder of an arch, up to the last output.

    Args:
        sizes: the arch.
        cfg: see :class:`EncoderCfg`, without the tokens before the patches and the norms outside the blocks.
        out_indices: see :class:`~vit_plugin.models.layers.encoder.Encoder`.
        num_prefix_tokens: number of tokens before the patches.
        rel_pos_grid: native grid (h, w) of relative positions. None means no relative positions.
        planes: the planes of rotary positions, see :class:`~vit_plugin.models.layers.rotary.RotaryCfg`. None means no
            rotary positions.
        numerics: activation and norm.
        drop_rate: dropout after attention and after both layers of the MLP.
        drop_path_rate: rate of the last block of the arch. It grows linearly from 0 in the first block.
        with_cp: see :class:`~vit_plugin.models.layers.encoder.Encoder`.

    Raises:
        ConfigError: for invalid windows or heads, for a list without one value for each block, or for parts that cannot
            be combined, such as token merging and positions in attention.
    """
    cfg = dict(cfg)
    num_blocks = out_indices[-1] + 1
    window_sizes = _window_sizes(cfg.pop('window', None), sizes.num_layers, num_prefix_tokens)
    kind, differential = cfg.pop('block', 'pre_norm'), cfg.pop('differential', False)
    each = [dict(window_size=window_sizes[i], drop_path_rate=drop_path_rate * i / max(sizes.num_layers - 1, 1),
                 differential_depth=i if differential else None, **rest)
            for i, rest in enumerate(_for_each_block(cfg, sizes.num_layers))][:num_blocks]
    num_merged = [rest.pop('num_merged', 0) for rest in each]
    _check_combination(kind, differential, any(num_merged), any(window_sizes), bool(rel_pos_grid), bool(planes))
    _check_heads(sizes, each)
    blocks = [build_block(kind, sizes, numerics, drop_rate, **rest, rel_pos_grid=rel_pos_grid, planes=planes)
              for rest in each]
    if any(num_merged):
        return MergingEncoder(
            blocks, out_indices, with_cp, num_merged=num_merged, num_prefix_tokens=num_prefix_tokens)
    return Encoder(blocks, out_indices, with_cp)


def build_block(kind: str, sizes: Arch, numerics: Numerics, drop_rate: float = 0., drop_path_rate: float = 0.,
                **entries: Any) -> nn.Module:
    """Build one block.

    Args:
        kind: a row of :data:`~vit_plugin.models.layers.block.BLOCKS`.
        sizes, numerics, drop_rate: see :func:`build_encoder`.
        drop_path_rate: see :class:`~vit_plugin.models.layers.block.TransformerBlock`.
        **entries: entries of :class:`EncoderCfg`, one value each, and other arguments of :func:`build_attention`.
    """
    width, norm_cfg = sizes.embed_dims, numerics.norm_cfg
    proj_bias, mlp_norm = entries.pop('proj_bias', True), entries.pop('mlp_norm', False)
    mlp = partial(
        GatedMlp if entries.pop('gated_mlp', False) else Mlp, width, sizes.feedforward_channels, numerics.act_cfg,
        drop_rate, proj_bias, norm_cfg if mlp_norm is True else None, norm_cfg if mlp_norm == 'input' else None)
    scale = entries.pop('layer_scale_init_value', 0.)
    scales = (scale, scale if entries.pop('mlp_layer_scale', True) else 0.)
    norms: dict[str, Any] = {name: norm_cfg if entries.pop(entry, False) else None
             for name, entry in (('qk_norm_cfg', 'qk_norm'), ('norm_cfg', 'attn_norm'))}
    attention = partial(build_attention, width, sizes.num_heads, drop_rate=drop_rate, proj_bias=proj_bias,
                        **norms, **entries)
    return BLOCKS[kind](width, attention, mlp, norm_cfg, scales, drop_path_rate)


def build_attention(*args: Any, window_size: int | None = None, rel_pos_grid: Grid | None = None,
                    planes: str | None = None, differential_depth: int | None = None, **kwargs: Any) -> Attention:
    """Attention with windows, relative positions, rotary positions or differences. None turns one off.

    :func:`build_encoder` refuses what cannot be combined.
    """
    if differential_depth is not None:
        return DifferentialAttention(*args, depth=differential_depth, **kwargs)
    if planes is not None:
        kwargs['interleaved'] = planes == 'neighbours'
        return (RotaryAttention(*args, **kwargs) if window_size is None else
                RotaryWindowAttention(*args, window_size=window_size, **kwargs))
    if window_size is None:
        return (Attention(*args, **kwargs) if rel_pos_grid is None else
                RelativeAttention(*args, rel_pos_grid=rel_pos_grid, **kwargs))
    if rel_pos_grid is None:
        return WindowAttention(*args, window_size=window_size, **kwargs)
    return RelativeWindowAttention(*args, window_size=window_size, rel_pos_grid=(window_size, window_size), **kwargs)


def _check_combination(kind: str, differential: bool, merges: bool, windows: bool, relative: bool,
                       rotary: bool) -> None:
    if merges and (relative or windows or rotary):
        raise ConfigError('encoder: num_merged leaves no grid of patches, which window, relative and rotary positions '
                          'need; take one or the other.')
    if merges and (kind != 'pre_norm' or differential):
        raise ConfigError("encoder: num_merged merges tokens between the attention and the MLP of a plain block; leave "
                          "it out, or block='pre_norm' and differential=False.")
    if rotary and relative:
        raise ConfigError('pos_embed: attention has relative or rotary positions; leave out one of them.')
    if differential and (windows or relative or rotary):
        raise ConfigError('encoder: differential attention has no windows and no positions of its own; leave out '
                          'differential, or window, relative and rotary.')


def _check_heads(sizes: Arch, each: Sequence[Mapping[str, Any]]) -> None:
    for rest in each:
        groups = rest.get('num_kv_heads', sizes.num_heads)
        if sizes.num_heads % groups:
            raise ConfigError(f'encoder: num_kv_heads={groups} does not divide the {sizes.num_heads} heads of the '
                              'queries; change it.')
        if groups != sizes.num_heads and rest.get('qkv_bias', True) == 'qv':
            raise ConfigError("encoder: qkv_bias='qv' needs as many heads of keys as of queries; leave out "
                              'num_kv_heads, or give qkv_bias=True or False.')


def _for_each_block(cfg: Mapping[str, Any], num_layers: int) -> list[dict[str, Any]]:
    for name, value in cfg.items():
        if isinstance(value, (list, tuple)) and len(value) != num_layers:
            raise ConfigError(f'encoder: {name} has {len(value)} values for {num_layers} blocks; give one for each, '
                              'or one for all.')
    return [{name: value[i] if isinstance(value, (list, tuple)) else value for name, value in cfg.items()}
            for i in range(num_layers)]


def _window_sizes(window: Mapping[str, Any] | None, num_layers: int, num_prefix_tokens: int) -> list[int | None]:
    """The window size of each block. None means global attention."""
    if window is None:
        return [None] * num_layers
    cfg = {'global_blocks': (), **window}
    size, global_blocks = cfg['size'], cfg['global_blocks']
    if not all(-num_layers <= i < num_layers for i in global_blocks):
        raise ConfigError(f'encoder: window.global_blocks={tuple(global_blocks)} must be some of the blocks '
                          f'{-num_layers} to {num_layers - 1}.')
    if num_prefix_tokens:
        raise ConfigError('encoder: a token before the patches is in no window; set with_cls_token=False, and give '
                          'no dist_token or reg_token.')
    global_blocks = {i % num_layers for i in global_blocks}
    return [None if i in global_blocks else size for i in range(num_layers)]
