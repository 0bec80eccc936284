"""The Vision Transformer, pure or on a CNN (arXiv:2010.11929)."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from vit_plugin.arch import ArchCfg, parse_arch
from vit_plugin.arguments.encoder_options import EncoderCfg, read_options
from vit_plugin.arguments.fields import FrozenStages, Indices, InitConfig, Rate, Size
from vit_plugin.errors import ConfigError
from vit_plugin.registry import MODELS

from ..layers.block import TransformerBlock
from ..layers.block_cfg import Grid, block_cfgs
from ..layers.encoder import Encoder
from ..layers.numerics import AnyNumerics, build_norm, get_numerics
from ..layers.outputs import MAPS, NUM_TOKENS, OUT_TYPES, OutType
from ..layers.pos_embed import POS_EMBEDS, PosEmbed, PosEmbedCfg, PosEmbedName
from ..layers.recompute import Recompute
from ..layers.rotary import RotaryCfg, build_rotary
from ..loading.load import LoadableBackbone
from ..stems import StemCfg, build_stem


@MODELS.register_module()
class VisionTransformer(LoadableBackbone):
    """Vision Transformer, pure or hybrid. It is a hybrid if its stem is a CNN.

    Args:
        arch: a variant such as ``'B/16'`` or ``'R50+B/16'``, a timm name such as
            ``'timm://vit_base_patch16_dinov3'``, or a dict; see :func:`vit_plugin.arch.parse_arch`.
            A timm name brings the arguments below with it. Those that are given win, and dicts
            change single entries.
        img_size: native image size in pixels, (H, W) or the side of a square. It sets the size of
            the position table. For images of another size the table is resampled. Default: 224.
        patch_embed: the stem, ``dict(type='PatchEmbed' | 'ResNetEmbed' | 'TimmEmbed', ...)``. A
            dict without ``type``, or with the type of the stem in ``arch``, changes that stem, as
            in ``dict(in_channels=1)``.
        pos_embed: ``'none'``, ``'learned'``, ``'learned_2d'``, ``'sincos2d'`` or ``'relative'``, or
            a dict with this ``type`` and arguments of
            :class:`~vit_plugin.models.layers.pos_embed.PosEmbed` (``endpoint``,
            ``interpolate_mode``, ``prefix_rows``, ``source_grid``). ``relative=True`` adds relative
            positions, as in ViTDet, and ``rotary=dict(...)`` rotary positions, see
            :class:`~vit_plugin.models.layers.rotary.RotaryCfg`. Default: ``'learned'``.
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
        drop_rate: dropout after the position embedding, after attention and in the MLP.
        drop_path_rate: stochastic depth of the last block of the arch. It grows linearly from 0 in
            the first block.
        frozen_stages: -1 freezes nothing. 0 freezes the stem, the tokens before the patches, the
            positions and the norm before the blocks. k > 0 also freezes the first k blocks. If
            these are all blocks of the arch, the final norm is frozen too; ``'all'`` says the same.
            Frozen parts stay in eval mode.
        with_cp: True recomputes blocks in the backward pass to save memory. ``'selective'`` keeps
            the results of products, convolutions and attention in them, and recomputes the rest.
        init_cfg: MMEngine's initialisation config. By default the weights are initialised as the
            authors do. ``dict(type='Pretrained', checkpoint=True)`` loads timm's weights that
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

    one_patch_size = False  # whether all outputs need one
    tokens_in_windows = False  # whether a window may have tokens besides patches
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
        self.arguments = given = sizes.complete(
            img_size=img_size,
            pos_embed=pos_embed,
            with_cls_token=with_cls_token,
            encoder=encoder,
            numerics=numerics,
            out_type=out_type,
        )
        encoder_options, block_options = read_options(given.encoder, sizes.num_layers)
        self.numerics = numerics = get_numerics(given.numerics)
        self.embed_dims, self.num_layers, self.num_heads = (
            sizes.embed_dims,
            sizes.num_layers,
            sizes.num_heads,
        )
        self.img_size = (
            (given.img_size,) * 2 if isinstance(given.img_size, int) else tuple(given.img_size)
        )
        counts = {
            'cls_token': int(given.with_cls_token),
            'dist_token': encoder_options.dist_token,
            'reg_token': encoder_options.reg_token,
        }
        self.prefix_tokens = tuple(name for name, count in counts.items() if count)
        self.num_prefix_tokens = sum(counts.values())
        self.out_type = self._check_out_type(given.out_type)
        self.out_indices = self._check_out_indices(out_indices)
        self.frozen_stages = self._check_frozen_stages(frozen_stages)

        self.patch_embed = build_stem(
            sizes.patch_embed,
            patch_embed or {},
            embed_dims=self.embed_dims,
            numerics=numerics,
            with_cp=with_cp,
        )
        self.patch_embed.check_image_size(self.img_size)
        if self.one_patch_size or self.out_type in MAPS:
            self.patch_embed.check_one_size(f'{type(self).__name__}, out_type={self.out_type!r}')
        grid = self.patch_embed.native_grid(self.img_size)
        for name, count in counts.items():
            shape = (1, count, self.embed_dims)
            self.register_parameter(name, nn.Parameter(torch.empty(shape)) if count else None)
        self.position, relative, rotary = self._build_position(given.pos_embed, grid)
        self.rope = build_rotary(
            rotary,
            head_dims=self.embed_dims // sizes.num_heads,
            num_heads=sizes.num_heads,
            num_layers=self.num_layers,
            num_prefix_tokens=self.num_prefix_tokens,
        )
        self.pos_embed = (
            nn.Parameter(torch.empty(self.position.shape)) if self.position.shape else None
        )
        self.drop_after_pos = nn.Dropout(drop_rate)
        self.norm_pre, self.norm = (
            build_norm(numerics.norm_cfg, self.embed_dims) if has_norm else nn.Identity()
            for has_norm in (encoder_options.pre_norm, encoder_options.final_norm)
        )
        cfgs = block_cfgs(
            sizes,
            encoder_options,
            block_options,
            numerics,
            drop_rate,
            drop_path_rate,
            0 if self.tokens_in_windows else self.num_prefix_tokens,
            rel_pos_grid=grid if relative else None,
            rotary_planes=rotary.get('planes', 'neighbours') if rotary else None,
        )
        self.blocks = Encoder(
            [TransformerBlock(cfg) for cfg in cfgs[: self.out_indices[-1] + 1]],
            self.out_indices,
            with_cp,
        )
        self.reset_parameters()
        self._freeze()

    def reset_parameters(self) -> None:
        """Initialise positions and class token as the authors do, other tokens as DeiT does."""
        for name in (*self.prefix_tokens, 'pos_embed'):
            parameter = getattr(self, name)
            if name == 'cls_token':
                nn.init.zeros_(parameter)
            elif parameter is not None:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        """Images (B, in_channels, H, W) -> one ``out_type`` output for each of ``out_indices``."""
        x, grid, maps = self.patch_embed(images)  # (B, h*w, C)
        maps = [maps[i].contiguous() for i in self.stem_maps]  # frees the memory of the other maps
        return (*maps, *self.encode(x, grid))

    def encode(self, x: Tensor, grid: Grid) -> list[Tensor]:
        """Equations 1 to 4: patches (B, h*w, C) -> one ``out_type`` output per ``out_indices``."""
        outs = self.tokens(x, grid, NUM_TOKENS.get(self.out_type))
        return [OUT_TYPES[self.out_type](x, self.num_prefix_tokens, grid) for x in outs]

    def tokens(self, x: Tensor, grid: Grid, num_outputs: int | None = None) -> list[Tensor]:
        """Patches (B, h*w, C) -> normed tokens (B, num_outputs or all, C) per ``out_indices``."""
        # Eq. 1, 2, 3.
        outs = self.blocks(self.embed(x, grid), grid, num_outputs, self.rope(grid, x))
        return [self.norm(x) for x in outs]  # Eq. 4

    def embed(self, x: Tensor, grid: Grid) -> Tensor:
        """Equation 1: patches (B, h*w, C) -> tokens (B, prefix + h*w, C) with positions."""
        prefix = [getattr(self, name).expand(x.shape[0], -1, -1) for name in self.prefix_tokens]
        # In float32 under autocast, as are the sums in the blocks.
        x = torch.cat((*prefix, x), dim=1)
        return self.norm_pre(self.drop_after_pos(self.position(x, self.pos_embed, grid)))

    @property
    def num_extra_tokens(self) -> int:
        """MMPretrain's name of ``num_prefix_tokens``, which its ``vis_cam`` asks for."""
        return self.num_prefix_tokens

    @property
    def in_channels(self) -> int:
        """Channels of the images."""
        return self.patch_embed.in_channels

    @property
    def stem_maps(self) -> tuple[int, ...]:
        """Indices of the CNN's maps that are returned."""
        stem = self.patch_embed
        return tuple(
            i
            for i, stride in enumerate(stem.feature_strides)
            if self.out_type == 'pyramid' and stride < stem.stride
        )

    @property
    def channels(self) -> tuple[int, ...]:
        """Channels of each output."""
        return (
            *(self.patch_embed.feature_channels[i] for i in self.stem_maps),
            *(self.embed_dims for _ in self.out_indices),
        )

    @property
    def strides(self) -> tuple[int, ...]:
        """Stride of each output, in pixels."""
        return (
            *(self.patch_embed.feature_strides[i] for i in self.stem_maps),
            *(self.patch_embed.stride for _ in self.out_indices),
        )

    def no_weight_decay(self) -> set[str]:
        """Names of the parameters without weight decay: tokens and positions.

        timm's models have the same method.
        """
        return {
            *self.prefix_tokens,
            'pos_embed',
            *(f'rope.{name}' for name, _ in self.rope.named_parameters()),
        }

    def train(self, mode: bool = True) -> 'VisionTransformer':
        """Set the training mode. Frozen parts stay in eval mode. Returns the model."""
        super().train(mode)
        if self.patch_embed.frozen:
            self.patch_embed.eval()
        if self.frozen_stages >= 0:
            before = (self.patch_embed, self.drop_after_pos, self.rope, self.norm_pre)
            for part in (*before, *self.blocks[: self.frozen_stages]):
                part.eval()
        return self

    def get_layer_depth(self, param_name: str, prefix: str = '') -> tuple[int, int]:
        """Depth of a parameter and the number of depths, for layer-wise decay.

        Depth 0 is next to the image. A CNN's root and each of its stages have a depth of their own.
        The projection to tokens, the class token and the positions share one depth. Each block has
        its own. The final norm and all parameters outside the backbone are last. For a pure ViT
        these are MMPretrain's numbers.

        Args:
            param_name: full name of the parameter.
            prefix: prefix of the backbone's own names, such as ``'backbone.'``.
        """
        stem = self.patch_embed.num_depths
        num_depths = stem + self.num_layers + 1
        match param_name.removeprefix(prefix).split('.') if param_name.startswith(prefix) else []:
            case ['patch_embed', *rest]:
                return self.patch_embed.layer_depth('.'.join(rest)), num_depths
            case ['cls_token' | 'dist_token' | 'reg_token' | 'pos_embed' | 'rope' | 'norm_pre', *_]:
                return stem - 1, num_depths
            case ['blocks', block, *_]:
                return stem + int(block), num_depths
        return num_depths - 1, num_depths

    def parts_to_shard(self) -> list[nn.Module]:
        """The modules that sharding gathers one at a time, see :mod:`vit_plugin.engine.sharding`.

        These are the stem's CNN, its projection, and each block.
        """
        # Not the stem itself: it returns a view, on which FSDP's hooks could be lost.
        stem = [
            part
            for part in self.patch_embed.children()
            if next(part.parameters(), None) is not None
        ]
        return [*stem, *self.blocks]

    def _freeze(self) -> None:
        stages = self.frozen_stages
        depths = (
            0 if stages < 0 else self.patch_embed.num_depths + stages + (stages == self.num_layers)
        )
        for name, parameter in self.named_parameters():
            if self.get_layer_depth(name)[0] < depths or (
                self.patch_embed.frozen and name.startswith('patch_embed.')
            ):
                parameter.requires_grad = False

    def _check_out_type(self, out_type: str) -> str:
        if out_type == 'cls_token' and 'cls_token' not in self.prefix_tokens:
            raise ConfigError(
                "with_cls_token must be True when out_type='cls_token'; without a class token "
                "choose out_type='avg_featmap', or 'featmap' or 'pyramid' for a detector."
            )
        return out_type

    def _check_out_indices(self, out_indices: int | Sequence[int]) -> tuple[int, ...]:
        indices = [out_indices] if isinstance(out_indices, int) else out_indices
        if not self.num_layers and tuple(indices) == (-1,):
            return (-1,)  # the stem's tokens with positions
        for index in indices:
            if not -self.num_layers <= index < self.num_layers:
                raise ConfigError(
                    f'Invalid out_indices {index}: this arch has {self.num_layers} blocks, '
                    f'{-self.num_layers} to {self.num_layers - 1}.'
                )
        return tuple(sorted({index % self.num_layers for index in indices}))

    def _check_frozen_stages(self, frozen_stages: int | str) -> int:
        number = self.num_layers if frozen_stages == 'all' else int(frozen_stages)
        if number > self.num_layers:
            raise ConfigError(
                f'frozen_stages={number} is out of range: -1 (none) to {self.num_layers} (all).'
            )
        return number

    def _build_position(
        self, pos_embed: Mapping[str, Any], grid: Grid
    ) -> tuple[PosEmbed, bool, RotaryCfg | None]:
        """The position embedding, a flag for relative positions, and the rotary config."""
        cfg = dict(pos_embed)
        kind, relative, rotary = (
            cfg.pop('type', 'learned'),
            cfg.pop('relative', False),
            cfg.pop('rotary', None),
        )
        if kind == 'relative':
            kind, relative = 'none', True
        if 'endpoint' in cfg and kind != 'sincos2d':
            raise ConfigError(
                f"pos_embed: endpoint is of type='sincos2d', and this is {kind!r}; leave it out."
            )
        return (
            POS_EMBEDS[kind](grid, self.embed_dims, self.num_prefix_tokens, **cfg),
            relative,
            rotary,
        )
