"""The Vision Transformer, pure or on a CNN (arXiv:2010.11929)."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from timm.layers import to_2tuple
from torch import Tensor, nn

from vit_plugin.arch import ArchCfg, parse_arch
from vit_plugin.arguments.encoder_options import EncoderCfg, EncoderOptions, read_options
from vit_plugin.arguments.fields import FrozenStages, Indices, InitConfig, Rate, Size
from vit_plugin.registry import MODELS

from ..layers.block import TransformerBlock
from ..layers.block_cfg import Grid, RelativePositions, block_cfgs
from ..layers.encoder import Encoder
from ..layers.numerics import AnyNumerics, build_norm, get_numerics
from ..layers.outputs import MAP_OUT_TYPES, OUT_TYPES, OutType, check_out_type, read_out_indices
from ..layers.pos_embed import PosEmbedCfg, PosEmbedName, build_positions
from ..layers.position_bias import PositionBias
from ..layers.recompute import Recompute
from ..layers.rotary import build_rotary
from ..stems import Stem, StemCfg, build_stem
from .layered import LayeredBackbone, read_frozen_stages


@MODELS.register_module()
class VisionTransformer(LayeredBackbone):
    """Vision Transformer, pure or hybrid. It is a hybrid if its stem is a CNN.

    Args:
        arch: a variant such as ``'B/16'`` or ``'R50+B/16'``, a timm name such as
            ``'timm://vit_base_patch16_dinov3'``, or a dict; see :func:`vit_plugin.arch.parse_arch`.
            A timm name sets the arguments below. Arguments that are given take precedence, and
            dicts change single entries.
        img_size: native image size in pixels, (H, W) or the side of a square. It sets the size of
            the position table. For images of another size the table is resampled. Default: 224.
        patch_embed: the stem, ``dict(type='PatchEmbed' | 'ResNetEmbed' | 'TimmEmbed', ...)``. A
            dict without ``type``, or with the type of the stem in ``arch``, changes that stem, as
            in ``dict(in_channels=1)``.
        pos_embed: ``'none'``, ``'learned'``, ``'learned_2d'``, ``'sincos2d'`` or ``'relative'``, or
            a dict with this ``type`` and arguments of
            :class:`~vit_plugin.models.layers.pos_embed.PosEmbed` (``endpoint``,
            ``interpolate_mode``, ``prefix_rows``, ``source_grid``). ``relative=True`` adds relative
            positions, as in ViTDet, ``'bias'`` those of BEiT, ``'shared_bias'`` the same with one
            table for all blocks, and ``rotary=dict(...)`` rotary positions, see
            :class:`~vit_plugin.models.layers.rotary.RotaryOptions`. Default: ``'learned'``.
        with_cls_token: whether there is a class token before the patches. Default: True.
        encoder: differences from the paper's encoder, see
            :mod:`vit_plugin.arguments.encoder_options`.
        numerics: ``'authors'`` (default) or ``'timm'``, or a dict that changes single details. See
            :func:`~vit_plugin.models.layers.numerics.get_numerics`.
        out_indices: the block or blocks whose output is returned. Negative numbers count from the
            last block of the arch. Blocks after the last output are not built.
        out_type: ``'cls_token'`` (B, C; default), ``'avg_featmap'`` (B, C), ``'featmap'`` (B, C, h,
            w) or ``'raw'`` (B, prefix + h*w, C), each after the final norm. ``'pyramid'`` first
            returns the CNN's maps that are finer than the tokens, then the feature maps.
            ``'pyramid_cls'`` appends the class token to the channels of each patch (B, 2 * C, h,
            w), as in DINOv2's linear heads and DPT's readout.
        drop_rate: dropout after the position embedding, after attention and in the MLP.
        drop_path_rate: stochastic depth of the last block of the arch. It grows linearly from 0 in
            the first block.
        frozen_stages: -1 freezes nothing. 0 freezes the stem, the tokens before the patches, the
            positions and the norm before the blocks. k > 0 also freezes the first k blocks. If
            these are all blocks of the arch, the final norm is frozen too; ``'all'`` is the same.
            Frozen parts stay in eval mode.
        with_cp: activation checkpointing. True recomputes blocks in the backward pass.
            ``'selective'`` keeps the results of matrix products, convolutions and attention, and
            recomputes the rest.
        init_cfg: MMEngine's initialization config. By default the weights are initialized as in the
            authors' code. ``dict(type='Pretrained', checkpoint=True)`` loads timm's weights that
            ``arch`` names.

    Attributes:
        prefix_tokens: names of the learned tokens before the patches, in order.
        num_prefix_tokens: number of these tokens.
        channels: channels of each output.
        strides: pixels per element of each output map.

    Raises:
        ConfigError: if arch is unknown, or if ``out_indices`` or ``frozen_stages`` is out of range.
            Also if ``out_type='cls_token'`` has no class token, if windows have one, or if an image
            is smaller than one patch.
    """

    # Subclasses change these.
    num_class_tokens = 1  # number of leading tokens that out_type='cls_token' returns
    one_patch_size = False  # whether every out_type needs one patch size, not only maps
    tokens_in_windows = False  # whether a window may have tokens besides patches
    # Arguments of other implementations -> ours, for the message on an unknown argument.
    renamed_arguments = {
        'in_channels': 'patch_embed=dict(in_channels=...)',
        'extra_tokens': 'encoder=dict(dist_token=..., reg_token=...)',
        'norms': 'encoder=dict(pre_norm=..., final_norm=...)',
        'window': 'encoder=dict(window=dict(size=..., global_blocks=...))',
        'block_cfg': 'encoder=dict(...)',
    }

    def __init__(
        self,
        arch: str | ArchCfg = 'B/16',
        img_size: Size | None = None,
        patch_embed: StemCfg | None = None,
        pos_embed: PosEmbedName | PosEmbedCfg | None = None,
        with_cls_token: bool | None = None,
        encoder: EncoderCfg | None = None,
        numerics: AnyNumerics | None = None,
        out_indices: int | Indices = -1,
        out_type: OutType | None = None,
        drop_rate: Rate = 0.0,
        drop_path_rate: Rate = 0.0,
        frozen_stages: FrozenStages = -1,
        with_cp: Recompute = False,
        init_cfg: InitConfig = None,
    ) -> None:
        super().__init__(init_cfg, arch)
        sizes = parse_arch(arch)
        # The arguments of the variant or timm name, changed by those that are given here.
        self.arguments = arguments = sizes.complete(
            img_size=img_size,
            pos_embed=pos_embed,
            with_cls_token=with_cls_token,
            encoder=encoder,
            numerics=numerics,
            out_type=out_type,
        )
        options, block_options = read_options(arguments.encoder, sizes.num_layers)
        self.embed_dims, self.num_layers = sizes.embed_dims, sizes.num_layers
        self.num_heads = sizes.num_heads
        self.numerics = get_numerics(arguments.numerics)
        self.img_size = to_2tuple(arguments.img_size)
        self.out_indices = read_out_indices(out_indices, self.num_layers)
        self.out_type = arguments.out_type
        self.frozen_stages = read_frozen_stages(frozen_stages, self.num_layers)
        self._build_prefix(arguments.with_cls_token, options)
        check_out_type(self.out_type, self.prefix_tokens)
        self.patch_embed = self._build_stem(sizes.patch_embed, patch_embed or {}, with_cp)
        grid = self.patch_embed.native_grid(self.img_size)
        relative = self._build_positions(arguments.pos_embed, grid)
        self.drop_after_pos = nn.Dropout(drop_rate)
        self.norm_pre, self.norm = (
            build_norm(self.numerics.norm_cfg, self.embed_dims) if has_norm else nn.Identity()
            for has_norm in (options.pre_norm, options.final_norm)
        )
        cfgs = block_cfgs(
            sizes,
            options,
            block_options,
            self.numerics,
            drop_rate,
            drop_path_rate,
            num_prefix_tokens=0 if self.tokens_in_windows else self.num_prefix_tokens,
            relative=relative,
            rotary_planes=self.rope.planes,
        )
        blocks = [TransformerBlock(cfg) for cfg in cfgs[: self.out_indices[-1] + 1]]
        self.blocks = Encoder(blocks, self.out_indices, with_cp)
        self.reset_parameters()
        self._freeze()

    def _build_prefix(self, with_cls_token: bool, options: EncoderOptions) -> None:
        """Build the learned tokens before the patches, one parameter for each kind."""
        counts = dict(
            cls_token=int(with_cls_token),
            dist_token=options.dist_token,
            reg_token=options.reg_token,
        )
        self.prefix_tokens = tuple(name for name, count in counts.items() if count)
        self.num_prefix_tokens = sum(counts.values())
        for name, count in counts.items():
            shape = (1, count, self.embed_dims)
            self.register_parameter(name, nn.Parameter(torch.empty(shape)) if count else None)

    def _build_stem(
        self, default: Mapping[str, Any], patch_embed: Mapping[str, Any], with_cp: Recompute
    ) -> Stem:
        """Build the stem. It must have one patch size if the outputs are maps."""
        stem = build_stem(
            default,
            patch_embed,
            embed_dims=self.embed_dims,
            numerics=self.numerics,
            with_cp=with_cp,
        )
        stem.check_image_size(self.img_size)
        if self.one_patch_size or self.out_type in MAP_OUT_TYPES:
            stem.check_fixed_patch_size(f'{type(self).__name__}, out_type={self.out_type!r}')
        return stem

    def _build_positions(self, pos_embed: Any, grid: Grid) -> RelativePositions | None:
        """Build the position table, and rotary or shared relative positions.

        Returns the relative positions of the blocks, or None.
        """
        self.position, form, rotary = build_positions(
            pos_embed, grid, self.embed_dims, self.num_prefix_tokens
        )
        shape = self.position.shape
        self.pos_embed = nn.Parameter(torch.empty(shape)) if shape else None
        self.rope = build_rotary(
            rotary,
            head_dims=self.embed_dims // self.num_heads,
            num_heads=self.num_heads,
            num_layers=self.num_layers,
            num_prefix_tokens=self.num_prefix_tokens,
        )
        relative = RelativePositions(grid, form, self.num_prefix_tokens > 0) if form else None
        self.rel_pos_bias = (
            PositionBias(relative, self.num_heads) if relative and form == 'shared_bias' else None
        )
        return relative

    def reset_parameters(self) -> None:
        """Initialize positions and class token as in the authors' code, other tokens as in DeiT."""
        for name in (*self.prefix_tokens, 'pos_embed'):
            parameter = getattr(self, name)
            if name == 'cls_token':
                nn.init.zeros_(parameter)
            elif parameter is not None:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        """Images (B, in_channels, H, W) -> one ``out_type`` output for each of ``out_indices``."""
        x, grid, maps = self.patch_embed(images)  # (B, h*w, C)
        # A copy, which frees the memory of the other maps.
        maps = [maps[i].contiguous() for i in self.stem_maps]
        return (*maps, *self.encode(x, grid))

    def encode(self, x: Tensor, grid: Grid) -> list[Tensor]:
        """Equations 1 to 4: patches (B, h*w, C) -> one ``out_type`` output per ``out_indices``."""
        leading = self.num_class_tokens if self.out_type == 'cls_token' else None
        return [self.output(x, grid) for x in self.tokens(x, grid, leading)]

    def tokens(self, x: Tensor, grid: Grid, num_outputs: int | None = None) -> list[Tensor]:
        """Patches (B, h*w, C) -> normed tokens (B, num_outputs or all, C) per ``out_indices``."""
        # Eq. 1, 2, 3.
        outs = self.blocks(self.embed(x, grid), grid, num_outputs, self.position_inputs(grid, x))
        return [self.final_norm(x, i) for i, x in zip(self.out_indices, outs, strict=True)]

    def final_norm(self, x: Tensor, block: int) -> Tensor:
        """Equation 4 for the tokens (B, N, C) after this block."""
        return self.norm(x)

    def output(self, x: Tensor, grid: Grid) -> Any:
        """Normed tokens (B, prefix + h*w, C) -> one output of ``out_type``."""
        return OUT_TYPES[self.out_type](x, self.num_prefix_tokens, grid)

    def embed(self, x: Tensor, grid: Grid) -> Tensor:
        """Equation 1: patches (B, h*w, C) -> tokens (B, prefix + h*w, C) with positions."""
        prefix = [getattr(self, name).expand(x.shape[0], -1, -1) for name in self.prefix_tokens]
        # Computed in float32 under autocast, like the sums in the blocks.
        x = torch.cat((*prefix, x), dim=1)
        return self.norm_pre(self.drop_after_pos(self.position(x, self.pos_embed, grid)))

    def begin(
        self, images: Tensor
    ) -> tuple[Tensor, Grid, Sequence[Tensor], Sequence[Tensor | None]]:
        """The part before the blocks, for code that runs the blocks itself.

        Images (B, in_channels, H, W) -> tokens (B, N, C) with positions, of which the last h*w are
        the patches, their grid (h, w), the maps of the stem's CNN, and the :meth:`position_inputs`.
        """
        x, grid, maps = self.patch_embed(images)
        position_inputs = self.position_inputs(grid, x)
        return self.embed(x, grid), grid, maps, position_inputs

    def position_inputs(self, grid: Grid, like: Tensor) -> Sequence[Tensor | None]:
        """Position-dependent inputs of each block: a rotation, a shared bias, or None."""
        if self.rel_pos_bias is not None:
            return [self.rel_pos_bias(grid)] * self.num_layers
        return self.rope(grid, like)

    def features(self, images: Tensor) -> tuple[list[Tensor], Grid]:
        """Images (B, in_channels, H, W) -> normed tokens (B, N, C) per ``out_indices``, their grid.

        The last h*w tokens are the patches. :meth:`output` makes an output of them.
        """
        x, grid, _ = self.patch_embed(images)
        return self.tokens(x, grid), grid
