"""A block of the encoder."""

from typing import Any

import torch
from timm.layers import DropPath
from torch import Tensor, nn

from .attention import Attention, Grid
from .differential import DifferentialAttention
from .mlp import GatedMlp, Mlp
from .numerics import Numerics, build_norm
from .relative_position import RelativeAttention
from .rotary import RotaryAttention, RotaryWindowAttention
from .window import RelativeWindowAttention, WindowAttention


class LayerScale(nn.Module):
    """A learned factor for each channel of a residual branch (arXiv:2103.17239, Section 2)."""

    def __init__(self, embed_dims: int, value: float) -> None:
        super().__init__()
        self.value = value
        self.gamma = nn.Parameter(torch.empty(embed_dims))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.constant_(self.gamma, self.value)

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gamma


def build_attention(*args: Any, window_size: int | None, rel_pos_grid: Grid | None, planes: str | None = None,
                    differential_depth: int | None = None, **kwargs: Any) -> Attention:
    """Attention with windows, relative positions, rotary positions or differences. None turns one off.

    :func:`~vit_plugin.models.layers.encoder.build_encoder` refuses what cannot be combined.
    """
    if differential_depth is not None:
        return DifferentialAttention(*args, depth=differential_depth, **kwargs)
    if planes is not None:
        kwargs['interleaved'] = planes == 'neighbours'
        return (RotaryAttention(*args, **kwargs) if window_size is None else
                RotaryWindowAttention(*args, window_size=window_size, **kwargs))
    match window_size, rel_pos_grid:
        case None, None:
            return Attention(*args, **kwargs)
        case None, _:
            return RelativeAttention(*args, rel_pos_grid=rel_pos_grid, **kwargs)
        case _, None:
            return WindowAttention(*args, window_size=window_size, **kwargs)
    return RelativeWindowAttention(*args, window_size=window_size, rel_pos_grid=(window_size, window_size), **kwargs)


class TransformerBlock(nn.Module):
    """A pre-norm transformer encoder block (arXiv:2010.11929, Equations 2 and 3).

    Args:
        embed_dims, num_heads, feedforward_channels: see :class:`~vit_plugin.arch.Size`.
        numerics: activation and norm.
        drop_rate: dropout after attention and after both layers of the MLP.
        drop_path_rate: probability of skipping each residual branch (arXiv:1603.09382).
        layer_scale_init_value: initial value of :class:`LayerScale`. 0 means no LayerScale.
        mlp_layer_scale: whether the MLP has a LayerScale too.
        gated_mlp: whether the MLP is a :class:`GatedMlp`.
        qk_norm: whether to norm queries and keys in each head.
        attn_norm: whether to norm the attended values before their projection.
        mlp_norm: whether the MLP norms its hidden values, or ``'input'`` for its input.
        proj_bias: whether attention's output projection and the MLP have biases.
        **attention: other arguments of :class:`Attention` and of :func:`build_attention`.

    Shape: tokens (B, N, embed_dims) -> tokens of the same shape, or (B, num_outputs, embed_dims).
    """

    def __init__(self, embed_dims: int, num_heads: int, feedforward_channels: int, numerics: Numerics,
                 drop_rate: float = 0., drop_path_rate: float = 0., layer_scale_init_value: float = 0.,
                 mlp_layer_scale: bool = True, gated_mlp: bool = False, qk_norm: bool = False, attn_norm: bool = False,
                 mlp_norm: bool | str = False, proj_bias: bool = True, window_size: int | None = None,
                 rel_pos_grid: Grid | None = None, **attention: Any) -> None:
        super().__init__()
        norm_cfg, value = numerics.norm_cfg, layer_scale_init_value
        self.norm1 = build_norm(norm_cfg, embed_dims)
        self.attn = build_attention(
            embed_dims, num_heads, drop_rate=drop_rate, qk_norm_cfg=norm_cfg if qk_norm else None,
            norm_cfg=norm_cfg if attn_norm else None, proj_bias=proj_bias, window_size=window_size,
            rel_pos_grid=rel_pos_grid, **attention)
        self.norm2 = build_norm(norm_cfg, embed_dims)
        self.mlp = (GatedMlp if gated_mlp else Mlp)(
            embed_dims, feedforward_channels, numerics.act_cfg, drop_rate, proj_bias,
            norm_cfg if mlp_norm is True else None, norm_cfg if mlp_norm == 'input' else None)
        self.ls1, self.ls2 = (
            LayerScale(embed_dims, value) if scaled else nn.Identity() for scaled in (value, value and mlp_layer_scale))
        self.drop_path = DropPath(drop_path_rate)

    def forward(self, x: Tensor, grid: Grid, num_outputs: int | None = None,
                rotation: Tensor | None = None) -> Tensor:
        attended = self.attn(self.norm1(x), grid, num_outputs, rotation)
        x = x[:, :num_outputs] + self.drop_path(self.ls1(attended))  # Eq. 2
        return x + self.drop_path(self.ls2(self.mlp(self.norm2(x))))  # Eq. 3


class PostNormBlock(TransformerBlock):
    """A block that norms the output of each branch, and not its input (arXiv:2111.09883, Section 3.2)."""

    def forward(self, x: Tensor, grid: Grid, num_outputs: int | None = None,
                rotation: Tensor | None = None) -> Tensor:
        attended = self.attn(x, grid, num_outputs, rotation)
        x = x[:, :num_outputs] + self.drop_path(self.ls1(self.norm1(attended)))
        return x + self.drop_path(self.ls2(self.norm2(self.mlp(x))))


class ParallelBlock(TransformerBlock):
    """A block whose attention and MLP have the same input (ViT-22B, arXiv:2302.05442, Section 2)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.norm2 = self.ls2 = nn.Identity()  # the branches share the first ones

    def forward(self, x: Tensor, grid: Grid, num_outputs: int | None = None,
                rotation: Tensor | None = None) -> Tensor:
        y = self.norm1(x)
        y = self.attn(y, grid, num_outputs, rotation) + self.mlp(y[:, :num_outputs])
        return x[:, :num_outputs] + self.drop_path(self.ls1(y))


class Branch(nn.Module):
    """A residual branch of a :class:`BranchedBlock`."""

    def __init__(self, norm: nn.Module, ls: nn.Module, drop_path: nn.Module, **layer: nn.Module) -> None:
        super().__init__()
        (self.layer_name, layer), = layer.items()
        self.norm, self.ls, self.drop_path = norm, ls, drop_path
        self.add_module(self.layer_name, layer)

    def forward(self, x: Tensor, *args: Any) -> Tensor:
        return self.drop_path(self.ls(getattr(self, self.layer_name)(self.norm(x), *args)))


class BranchedBlock(nn.Module):
    """Two attentions side by side, then two MLPs (arXiv:2203.09795, Section 3).

    Args:
        *args, **kwargs: see :class:`TransformerBlock`.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        parts = [TransformerBlock(*args, **kwargs) for _ in range(2)]
        self.attns = nn.ModuleList(Branch(part.norm1, part.ls1, part.drop_path, attn=part.attn) for part in parts)
        self.ffns = nn.ModuleList(Branch(part.norm2, part.ls2, part.drop_path, mlp=part.mlp) for part in parts)

    def forward(self, x: Tensor, grid: Grid, num_outputs: int | None = None,
                rotation: Tensor | None = None) -> Tensor:
        first, second = (attn(x, grid, num_outputs, rotation) for attn in self.attns)
        x = x[:, :num_outputs] + (first + second)
        first, second = (ffn(x) for ffn in self.ffns)
        return x + (first + second)


BLOCKS: dict[str, type[nn.Module]] = {
    'pre_norm': TransformerBlock,
    'post_norm': PostNormBlock,
    'parallel': ParallelBlock,
    'branched': BranchedBlock,
}
