"""A block of the encoder."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import torch
from timm.layers import DropPath
from torch import Tensor, nn

from .attention import Attention, Grid
from .mlp import Mlp
from .numerics import build_norm


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


class TransformerBlock(nn.Module):
    """A pre-norm transformer encoder block (arXiv:2010.11929, Equations 2 and 3).

    Args:
        embed_dims: width of the tokens.
        attention: makes the attention.
        mlp: makes the MLP.
        norm_cfg: norm of each residual branch.
        scales: initial values of the :class:`LayerScale` of attention and of that of the MLP. 0 means no LayerScale.
        drop_path_rate: probability of skipping each residual branch (arXiv:1603.09382).

    Shape: tokens (B, N, embed_dims) -> tokens of the same shape, or (B, num_outputs, embed_dims).
    """

    def __init__(self, embed_dims: int, attention: Callable[[], Attention], mlp: Callable[[], Mlp],
                 norm_cfg: Mapping[str, Any], scales: tuple[float, float] = (0., 0.),
                 drop_path_rate: float = 0.) -> None:
        super().__init__()
        self.norm1 = build_norm(norm_cfg, embed_dims)
        self.attn = attention()
        self.norm2 = build_norm(norm_cfg, embed_dims)
        self.mlp = mlp()
        self.ls1, self.ls2 = (LayerScale(embed_dims, value) if value else nn.Identity() for value in scales)
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


BlockName = Literal['pre_norm', 'post_norm', 'parallel', 'branched']
BLOCKS: dict[str, type[nn.Module]] = {
    'pre_norm': TransformerBlock,
    'post_norm': PostNormBlock,
    'parallel': ParallelBlock,
    'branched': BranchedBlock,
}
