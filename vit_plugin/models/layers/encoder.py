"""The transformer encoder (arXiv:2010.11929, Equations 2 and 3)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from typing_extensions import Required, TypedDict

from vit_plugin.arch import Arch
from vit_plugin.errors import ConfigError
from vit_plugin.fields import Count, Fraction, PositiveInt, Rate

from .attention import Grid
from .block import BLOCKS, TransformerBlock
from .qkv import QkvBias
from .token_merging import TokenMerging


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
        final_norm: whether every output is normed. Default: True.
        window: attention within windows.
        num_merged: number of tokens that each block merges, see :class:`MergingEncoder`.
        block: ``'pre_norm'``, ``'post_norm'``, ``'parallel'`` or ``'branched'``, the rows of
            :data:`~vit_plugin.models.layers.block.BLOCKS`. Default: ``'pre_norm'``.
        differential: whether attention is the difference of two attentions. Default: False.
        qkv_bias, num_kv_heads, attn_drop_rate: see :class:`~vit_plugin.models.layers.attention.Attention`.
        qk_norm, attn_norm, mlp_norm, proj_bias, layer_scale_init_value, mlp_layer_scale, gated_mlp: see
            :class:`TransformerBlock`.
    """
    dist_token: Count
    reg_token: Count
    pre_norm: bool
    final_norm: bool
    window: WindowCfg | None
    num_merged: Count | Sequence[Count]
    block: Literal[tuple(BLOCKS)]
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


class Encoder(nn.ModuleList):
    """A list of blocks, applied in order.

    Args:
        blocks: all blocks up to the last output.
        out_indices: the blocks whose output is returned, in ascending order.
        with_cp: recompute each block in the backward pass to save memory.
    """

    def __init__(self, blocks: Sequence[TransformerBlock], out_indices: Sequence[int], with_cp: bool = False) -> None:
        super().__init__(blocks)
        self.out_indices, self.with_cp = tuple(out_indices), with_cp

    def forward(self, x: Tensor, grid: Grid, num_outputs: int | None = None,
                rotations: Sequence[Tensor | None] | None = None) -> list[Tensor]:
        """Tokens (B, N, C) -> a list of tokens (B, num_outputs or N, C), one for each of ``out_indices``.

        Args:
            x: the tokens. The last h*w of them are the patches of ``grid``.
            grid: rows and columns of patches (h, w).
            num_outputs: number of leading tokens to return; None for all. The last block does not compute the others.
            rotations: rotary positions, one for each block, see :class:`~vit_plugin.models.layers.rotary.Rotary`.
        """
        outs, first = [], 0
        for last in self.out_indices:
            ending = num_outputs if last == self.out_indices[-1] else None
            x = self.through(x, grid, first, last + 1, ending, rotations)
            outs.append(x[:, :num_outputs])
            first = last + 1
        return outs

    def through(self, x: Tensor, grid: Grid, start: int, stop: int, num_outputs: int | None = None,
                rotations: Sequence[Tensor | None] | None = None) -> Tensor:
        """Run the blocks ``start`` to ``stop - 1``: tokens (B, N, C) -> tokens (B, num_outputs or N, C).

        Only the last of these blocks leaves tokens out. See :meth:`forward`.
        """
        for i in range(start, stop):
            rotation = rotations[i] if rotations else None
            x = self.run(self[i], x, grid, num_outputs if i == stop - 1 else None, rotation)
        return x

    def __getitem__(self, index: int | slice) -> nn.Module:
        return nn.ModuleList(list(self)[index]) if isinstance(index, slice) else super().__getitem__(index)

    def run(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call the function. With ``with_cp``, its activations are recomputed in the backward pass."""
        if self.with_cp and torch.is_grad_enabled():
            return checkpoint(function, *args, use_reentrant=False)
        return function(*args)


class MergingEncoder(Encoder):
    """An encoder that merges similar patches (ToMe, arXiv:2210.09461).

    The blocks and their names are those of :class:`Encoder`.

    Args:
        num_merged: number of tokens that each block removes by merging.
        num_prefix_tokens: number of tokens before the patches. They are never merged.
        *args, **kwargs: see :class:`Encoder`.
    """

    def __init__(self, *args: Any, num_merged: Sequence[int], num_prefix_tokens: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.num_merged, self.num_prefix_tokens = tuple(num_merged), num_prefix_tokens

    def forward(self, x: Tensor, grid: Grid, num_outputs: int | None = None,
                rotations: Sequence[None] | None = None) -> list[Tensor]:
        """See :meth:`Encoder.forward`. In the outputs, merged patches have equal values."""
        merging, outs = TokenMerging.of(x, self.num_prefix_tokens), []
        for i, block in enumerate(self):
            x, merging = self.run(merging.through, block, x, self.num_merged[i])
            if i in self.out_indices:
                outs.append(merging.unmerge(x)[:, :num_outputs])
        return outs


def build_encoder(sizes: Arch, cfg: Mapping[str, Any], out_indices: Sequence[int], num_prefix_tokens: int,
                  rel_pos_grid: Grid | None, planes: str | None, drop_path_rate: float, with_cp: bool,
                  **common: Any) -> Encoder:
    """Build the encoder of an arch, up to the last output.

    Args:
        sizes: the arch.
        cfg: see :class:`EncoderCfg`, without the tokens before the patches and the norms outside the blocks.
        out_indices: see :class:`Encoder`.
        num_prefix_tokens: number of tokens before the patches.
        rel_pos_grid: native grid (h, w) of relative positions. None means no relative positions.
        planes: the planes of rotary positions, see :class:`~vit_plugin.models.layers.rotary.RotaryCfg`. None means no
            rotary positions.
        drop_path_rate: rate of the last block of the arch. It grows linearly from 0 in the first block.
        with_cp: see :class:`Encoder`.
        **common: arguments of every block.

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
    blocks = [BLOCKS[kind](sizes.embed_dims, sizes.num_heads, sizes.feedforward_channels, **common,
                           rel_pos_grid=rel_pos_grid, planes=planes, **rest) for rest in each]
    if any(num_merged):
        return MergingEncoder(
            blocks, out_indices, with_cp, num_merged=num_merged, num_prefix_tokens=num_prefix_tokens)
    return Encoder(blocks, out_indices, with_cp)


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
