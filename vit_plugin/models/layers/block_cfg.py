"""The configs of an encoder's blocks, made from the options of the backbone."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

from vit_plugin.arch import Arch
from vit_plugin.arguments.encoder_options import BlockOptions, EncoderOptions, WindowOptions
from vit_plugin.errors import ConfigError

from .numerics import NUMERICS, Numerics

Grid = tuple[int, int]
RelativeForm = Literal['decomposed', 'bias', 'shared_bias']


@dataclass(frozen=True)
class RelativePositions:
    """Relative positions in attention.

    Attributes:
        grid: native grid (h, w) of patches.
        form: ``'decomposed'`` as in ViTDet, with separate tables for rows and columns; ``'bias'``
            as in BEiT; ``'shared_bias'`` the same with one table for all blocks.
        has_tokens: whether there are tokens before the patches.
    """

    grid: Grid
    form: RelativeForm = 'decomposed'
    has_tokens: bool = False

    def within(self, window: WindowOptions | None) -> 'RelativePositions':
        """The relative positions of a block with these windows, on the grid of a window."""
        return replace(self, grid=window.within(self.grid)) if window else self


@dataclass(frozen=True, kw_only=True)
class BlockCfg(BlockOptions):
    """The config of a block, which its attention and its MLP share.

    Attributes:
        embed_dims: width of the tokens.
        num_heads: number of heads of the queries; must divide the width.
        feedforward_channels: width of the MLP.
        numerics: activation and norms.
        drop_rate: dropout after attention and after both layers of the MLP.
        drop_path_rate: probability of skipping each residual branch (arXiv:1603.09382).
        window: None means global attention.
        relative: relative positions. None means that there are none.
        rotary_planes: the planes of rotary positions, see
            :class:`~vit_plugin.models.layers.rotary.RotaryOptions`. None means no rotary positions.

    Raises:
        ConfigError: for options that cannot be combined.
    """

    embed_dims: int
    num_heads: int
    feedforward_channels: int
    numerics: Numerics = NUMERICS['authors']
    drop_rate: float = 0.0
    drop_path_rate: float = 0.0
    window: WindowOptions | None = None
    relative: RelativePositions | None = None
    rotary_planes: str | None = None

    def __post_init__(self) -> None:
        groups = self.num_kv_heads or self.num_heads
        if self.num_heads % groups:
            raise ConfigError(
                f'encoder: num_kv_heads={groups} does not divide the {self.num_heads} heads of the '
                'queries; change it.'
            )
        if groups != self.num_heads and self.qkv_bias == 'qv':
            raise ConfigError(
                "encoder: qkv_bias='qv' needs as many heads of keys as of queries; leave out "
                'num_kv_heads, or give qkv_bias=True or False.'
            )
        if self.relative and self.relative.form == 'shared_bias' and self.window:
            raise ConfigError(
                "pos_embed: relative='shared_bias' is of all patches, and a window has some of "
                "them; give relative='bias'."
            )
        if self.relative and self.rotary_planes:
            raise ConfigError(
                'pos_embed: attention has relative or rotary positions; leave out one of them.'
            )


def block_cfgs(
    sizes: Arch,
    options: EncoderOptions,
    blocks: Sequence[BlockOptions],
    numerics: Numerics,
    drop_rate: float,
    drop_path_rate: float,
    num_prefix_tokens: int,
    relative: RelativePositions | None,
    rotary_planes: str | None,
) -> list[BlockCfg]:
    """The configs of all blocks of an arch.

    Args:
        sizes: the arch.
        options, blocks: see :func:`~vit_plugin.arguments.encoder_options.read_options`.
        drop_path_rate: rate of the last block. It grows linearly from 0 in the first block.
        num_prefix_tokens: number of tokens before the patches that no window can contain.
        numerics, drop_rate, relative, rotary_planes: see :class:`BlockCfg`. In windows, relative
            positions have the grid of a window.

    Raises:
        ConfigError: see :class:`BlockCfg`. Also for windows with tokens before the patches.
    """
    number = sizes.num_layers
    windows = options.window.of_blocks(number) if options.window else [None] * number
    if options.window and num_prefix_tokens:
        raise ConfigError(
            'encoder: a token before the patches is in no window; set with_cls_token=False, and '
            'give no dist_token or reg_token.'
        )
    return [
        BlockCfg(
            **asdict(block),
            embed_dims=sizes.embed_dims,
            num_heads=sizes.num_heads,
            feedforward_channels=sizes.feedforward_channels,
            numerics=numerics,
            drop_rate=drop_rate,
            drop_path_rate=drop_path_rate * i / max(number - 1, 1),
            window=window,
            relative=relative and relative.within(window),
            rotary_planes=rotary_planes,
        )
        for i, (block, window) in enumerate(zip(blocks, windows, strict=True))
    ]
