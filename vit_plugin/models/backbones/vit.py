"""The Vision Transformer, pure or on a CNN (arXiv:2010.11929)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from mmengine.model import BaseModule
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from vit_plugin.arch import parse_arch
from vit_plugin.errors import ConfigError
from vit_plugin.registry import MODELS, SCOPE
from vit_plugin.weights.load import fit_classifier_state_dict, fit_state_dict

from ..layers.encoder import build_blocks
from ..layers.numerics import Numerics, build_norm, get_numerics
from ..layers.pos_embed import POS_EMBEDS, PosEmbed
from ..layers.token_merging import Merged, MergingBlock
from ..stems import Stem

Grid = tuple[int, int]

# Learned tokens before the patches, in their order.
EXTRA_TOKENS = ('cls_token', 'dist_token', 'reg_token')


def to_map(x: Tensor, extra: int, grid: Grid) -> Tensor:
    """Tokens (B, extra + h*w, C) -> the map (B, C, h, w) of the patches."""
    return x[:, extra:].transpose(1, 2).unflatten(2, grid).contiguous()


# What is given out of the normed tokens x (B, extra + h*w, C); all but the pyramid as in MMPretrain.
OUT_TYPES: dict[str, Callable[[Tensor, int, Grid], Tensor]] = {
    'raw': lambda x, extra, grid: x,
    'cls_token': lambda x, extra, grid: x[:, 0],  # (B, C)
    'avg_featmap': lambda x, extra, grid: x[:, extra:].mean(dim=1),  # (B, C)
    'featmap': to_map,
    'pyramid': to_map,
}
# How many of the tokens, from the first, an output is made of, where it is not all.
NUM_TOKENS = {'cls_token': 1}


@MODELS.register_module()
class VisionTransformer(BaseModule):
    """Vision Transformer; a hybrid when its stem is a CNN, and one class either way.

    Args:
        arch: a variant such as ``'B/16'`` or ``'R50+B/16'``, or a dict; see :func:`vit_plugin.arch.parse_arch`.
        img_size: native image size in pixels, (H, W) or the side of a square. It fixes the position
            table; any other size runs too, the table resampled and the image padded to whole patches.
        in_channels: channels of the image.
        patch_embed: the stem, ``dict(type='PatchEmbed' | 'ResNetEmbed' | 'TimmEmbed', ...)``; without a
            ``type``, or with that of the stem of ``arch``, changes to it.
        pos_embed: ``'none'``, ``'learned'``, ``'learned_2d'``, ``'sincos2d'`` or ``'relative'``, or a
            dict of that ``type`` and ``interpolate_mode``, ``'bilinear'`` (the authors') or
            ``'bicubic'`` (timm's), and ``extra_rows``: the class token and other extra ones have rows of
            their own in a learned table, unless this is False; none in the fixed one, and no relative position.
            ``relative=True`` adds relative positions to those of the type, as in ViTDet. ``source_grid=(h, w)``
            tells the grid of a checkpoint's table that is no square.
        with_cls_token: whether a class token goes before the patches.
        extra_tokens: how many more learned tokens follow it, by the name of their parameter: ``dist_token``
            (DeiT), ``reg_token`` (DINOv2 with registers).
        out_indices: the block or blocks after which to give out features; negative ones count from the
            end. Blocks after the last of them are not built.
        out_type: ``'cls_token'`` (B, C), ``'avg_featmap'`` (B, C), ``'featmap'`` (B, C, h, w) or
            ``'raw'`` (B, extra + h*w, C), each after the final norm; or ``'pyramid'``: first the CNN's own maps
            that are finer than the tokens, then the feature maps.
        drop_rate: dropout after the position embedding, after attention and in the MLP.
        drop_path_rate: stochastic depth of the last block; it grows linearly from 0 at the first.
        block_cfg: further arguments of :class:`~vit_plugin.models.layers.TransformerBlock`
            (``qkv_bias``, ``attn_drop_rate``, ``qk_norm``, ``layer_scale_init_value``, ``gated_mlp``), and
            ``num_merged``, how many tokens each block merges (:class:`~vit_plugin.models.layers.MergingBlock`). A list
            has a value for each block.
        norms: where the encoder has norms besides those in the blocks, ``dict(pre_norm=False, final_norm=True)``:
            before the first block (CLIP), and on every output.
        window: ``dict(size=14, global_blocks=(2, 5, 8, 11))`` makes attention stay within windows of that many
            patches in all blocks but those (arXiv:2203.16527). There must be no extra tokens.
        numerics: ``'authors'`` or ``'timm'``, or a dict with single details changed; see
            :func:`~vit_plugin.models.layers.numerics.get_numerics`.
        frozen_stages: -1 for none; 0 freezes stem, extra tokens, positions and the norm before the blocks; k > 0
            also the first k blocks, and the final norm where they are all of the arch. What is frozen stays in
            eval mode.
        with_cp: recompute blocks in the backward pass to save memory.
        init_cfg: MMEngine's initialisation config. Without it the weights are the authors' initialisation.

    Attributes:
        channels: of each output.
        strides: pixels per element of each output that is a map.

    Raises:
        ConfigError: for an unknown arch, out_type, pos_embed or numerics, ``out_indices`` out of range,
            ``'cls_token'`` output without a class token, windows with one, or an image smaller than one patch.
    """

    def __init__(self, arch: str | Mapping[str, Any] = 'B/16', img_size: int | Sequence[int] = 224,
                 in_channels: int = 3, patch_embed: Mapping[str, Any] | None = None,
                 pos_embed: str | Mapping[str, Any] = 'learned', with_cls_token: bool = True,
                 extra_tokens: Mapping[str, int] | None = None, out_indices: int | Sequence[int] = -1,
                 out_type: str = 'cls_token', drop_rate: float = 0., drop_path_rate: float = 0.,
                 block_cfg: Mapping[str, Any] | None = None, norms: Mapping[str, bool] | None = None,
                 window: Mapping[str, Any] | None = None, numerics: str | Mapping[str, Any] | Numerics = 'authors',
                 frozen_stages: int = -1, with_cp: bool = False,
                 init_cfg: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None) -> None:
        super().__init__(init_cfg)
        sizes = parse_arch(arch)
        self.numerics = numerics = get_numerics(numerics)
        self.embed_dims, self.num_layers = sizes.embed_dims, sizes.num_layers
        self.img_size = self._check_img_size(img_size)
        tokens = {**({'cls_token': 1} if with_cls_token else {}), **(extra_tokens or {})}
        self.extra_tokens = self._check_extra_tokens(tokens)
        self.num_extra_tokens = sum(tokens.values())
        self.out_type = self._check_out_type(out_type)
        self.out_indices = self._check_out_indices(out_indices)
        self.frozen_stages = self._check_frozen_stages(frozen_stages)
        self.with_cp = with_cp

        self.patch_embed = self._build_stem(sizes.patch_embed, patch_embed or {}, in_channels=in_channels,
                                            embed_dims=self.embed_dims, numerics=numerics, with_cp=with_cp)
        self.patch_embed.check_image_size(self.img_size)
        grid = self.patch_embed.grid(self.img_size)
        for name in EXTRA_TOKENS:
            count = tokens.get(name, 0)
            self.register_parameter(name, nn.Parameter(torch.empty(1, count, self.embed_dims)) if count else None)
        self.position, relative = self._build_position(pos_embed, grid)
        self.pos_embed = nn.Parameter(torch.empty(self.position.shape)) if self.position.shape else None
        self.drop_after_pos = nn.Dropout(drop_rate)

        self.blocks = build_blocks(
            sizes, self.out_indices[-1] + 1, self.num_extra_tokens, window, block_cfg or {},
            rel_pos_grid=grid if relative else None, numerics=numerics, drop_rate=drop_rate,
            drop_path_rate=drop_path_rate)
        self.merging = isinstance(self.blocks[0], MergingBlock)
        norms = {'pre_norm': False, 'final_norm': True, **(norms or {})}
        self.norm_pre, self.norm = (
            build_norm(numerics.norm_cfg, self.embed_dims) if norms[name] else nn.Identity()
            for name in ('pre_norm', 'final_norm'))
        self.reset_parameters()
        for name, parameter in self.named_parameters():
            if self._is_frozen(self.get_layer_depth(name)[0]):
                parameter.requires_grad = False

    def reset_parameters(self) -> None:
        """The authors' initialisation of positions and class token, DeiT's of other tokens."""
        for name in (*self.extra_tokens, 'pos_embed'):
            parameter = getattr(self, name)
            if name == 'cls_token':
                nn.init.zeros_(parameter)
            elif parameter is not None:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        """Images (B, in_channels, H, W) -> one feature of ``out_type`` for each of ``out_indices``."""
        x, grid, outs = self.patch_embed(images)  # (B, h*w, C)
        outs = [outs[i].contiguous() for i in self.stem_maps]  # the others need not stay until the end
        x = self.embed(x, grid)  # (B, extra + h*w, C), Eq. 1
        needed = NUM_TOKENS.get(self.out_type)
        x = Merged.of(x) if self.merging else x
        for i, block in enumerate(self.blocks):
            num_outputs = needed if i == self.out_indices[-1] else None  # the last block need not do the others
            if self.with_cp and torch.is_grad_enabled():
                x = checkpoint(block, x, grid, num_outputs, use_reentrant=False)
            else:
                x = block(x, grid, num_outputs)  # Eq. 2 and 3
            if i in self.out_indices:
                tokens = (x.unmerged() if self.merging else x)[:, :needed]
                outs.append(OUT_TYPES[self.out_type](self.norm(tokens), self.num_extra_tokens, grid))  # Eq. 4
        return tuple(outs)

    def embed(self, x: Tensor, grid: Grid) -> Tensor:
        """Class and other extra tokens, and positions: patches (B, h*w, C) -> tokens (B, extra + h*w, C)."""
        extra = [getattr(self, name).expand(x.shape[0], -1, -1) for name in self.extra_tokens]
        x = torch.cat((*extra, x), dim=1)  # under autocast in float32, as all sums over the blocks then are
        return self.norm_pre(self.drop_after_pos(self.position(x, self.pos_embed, grid)))

    @property
    def stem_maps(self) -> tuple[int, ...]:
        """Which of the CNN's maps are given out."""
        stem = self.patch_embed
        return tuple(i for i, stride in enumerate(stem.feature_strides)
                     if self.out_type == 'pyramid' and stride < stem.stride)

    @property
    def channels(self) -> tuple[int, ...]:
        return (*(self.patch_embed.feature_channels[i] for i in self.stem_maps),
                *(self.embed_dims for _ in self.out_indices))

    @property
    def strides(self) -> tuple[int, ...]:
        return (*(self.patch_embed.feature_strides[i] for i in self.stem_maps),
                *(self.patch_embed.stride for _ in self.out_indices))

    def no_weight_decay(self) -> set[str]:
        """Parameters that are no layer's weights, by name, as timm's models tell them to optimizers."""
        return {*self.extra_tokens, 'pos_embed'}

    def train(self, mode: bool = True) -> 'VisionTransformer':
        """Set the training mode of all but the frozen parts, and return the model."""
        super().train(mode)
        if self.frozen_stages >= 0:
            for part in (self.patch_embed, self.drop_after_pos, self.norm_pre, *self.blocks[:self.frozen_stages]):
                part.eval()
        return self

    def get_layer_depth(self, param_name: str, prefix: str = '') -> tuple[int, int]:
        """Depth of a parameter and the number of depths, for layer-wise decay.

        The image is at 0. A CNN's root and stages take a step each; class token and positions go with the
        projection to tokens; each block takes a step; the final norm and what follows the backbone
        are last. For a pure ViT these are MMPretrain's numbers.

        Args:
            param_name: full name of the parameter.
            prefix: what precedes the backbone's own names, such as ``'backbone.'``.
        """
        stem = self.patch_embed.num_depths
        num_depths = stem + self.num_layers + 1
        match param_name.removeprefix(prefix).split('.') if param_name.startswith(prefix) else []:
            case ['patch_embed', *rest]:
                return self.patch_embed.layer_depth('.'.join(rest)), num_depths
            case ['cls_token' | 'dist_token' | 'reg_token' | 'pos_embed' | 'norm_pre', *_]:
                return stem - 1, num_depths
            case ['blocks', block, *_]:
                return stem + int(block), num_depths
        return num_depths - 1, num_depths

    def is_left_out(self, name: str) -> bool:
        """Whether that is a parameter of a block of the arch that was not built, since no output needs it."""
        match name.split('.'):
            case ['blocks', block, *_] if block.isdecimal():
                return len(self.blocks) <= int(block) < self.num_layers
        return False

    def differing_numerics(self, numerics: str | Mapping[str, Any]) -> list[str]:
        """In sentences, what this model computes in another way than those numerics, and what would set it."""
        theirs = get_numerics(numerics)
        stem = ('stem_norm_cfg', 'stem_conv_cfg') if self.patch_embed.feature_channels else ()
        return [f'the weights are of code with {name}={getattr(theirs, name)}, the model computes with '
                f'{getattr(self.numerics, name)}: set numerics={numerics!r}'
                for name in ('act_cfg', 'norm_cfg', *stem) if getattr(theirs, name) != getattr(self.numerics, name)]

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *args: Any) -> None:
        """Take the weights of any known format and resolution, in every host, by plain ``load_state_dict``."""
        fit_state_dict(self, state_dict, prefix)
        super()._load_from_state_dict(state_dict, prefix, *args)

    def _checkpoint_filter(self, state_dict: dict[str, Tensor], prefix: str, *args: Any) -> None:
        """The same for a whole classifier: MMPretrain calls this hook of its backbone with all of the weights."""
        fit_classifier_state_dict(self, state_dict, prefix)

    def _is_frozen(self, depth: int) -> bool:
        if self.frozen_stages == self.num_layers:
            return True
        return self.frozen_stages >= 0 and depth < self.patch_embed.num_depths + self.frozen_stages

    def _check_out_type(self, out_type: str) -> str:
        if out_type not in OUT_TYPES:
            raise ConfigError(f'Unsupported out_type={out_type!r}; choose one of {", ".join(OUT_TYPES)}.')
        if out_type == 'cls_token' and 'cls_token' not in self.extra_tokens:
            raise ConfigError("with_cls_token must be True when out_type='cls_token'; without a class token "
                              "choose out_type='avg_featmap'.")
        return out_type

    @staticmethod
    def _check_extra_tokens(tokens: Mapping[str, int]) -> tuple[str, ...]:
        if not set(tokens) <= set(EXTRA_TOKENS) or any(count < 1 for count in tokens.values()):
            raise ConfigError(f'extra_tokens={dict(tokens)} must give positive numbers for some of '
                              f'{", ".join(EXTRA_TOKENS)}.')
        return tuple(name for name in EXTRA_TOKENS if name in tokens)

    @staticmethod
    def _check_img_size(img_size: int | Sequence[int]) -> tuple[int, int]:
        size = (img_size, img_size) if isinstance(img_size, int) else tuple(img_size)
        if len(size) != 2 or not all(isinstance(side, int) for side in size):
            raise ConfigError(f'img_size must be a whole number or (height, width), got {img_size!r}.')
        return size

    def _check_out_indices(self, out_indices: int | Sequence[int]) -> tuple[int, ...]:
        indices = [out_indices] if isinstance(out_indices, int) else out_indices
        if not isinstance(indices, Sequence) or not indices or not all(isinstance(index, int) for index in indices):
            raise ConfigError(f'out_indices must be a whole number or a sequence of them, got {out_indices!r}.')
        for index in indices:
            if not -self.num_layers <= index < self.num_layers:
                raise ConfigError(f'Invalid out_indices {index}: this arch has {self.num_layers} blocks, '
                                  f'{-self.num_layers} to {self.num_layers - 1}.')
        return tuple(sorted({index % self.num_layers for index in indices}))

    def _check_frozen_stages(self, frozen_stages: int) -> int:
        if not -1 <= frozen_stages <= self.num_layers:
            raise ConfigError(f'frozen_stages={frozen_stages} is out of range: -1 (none) to {self.num_layers} (all).')
        return frozen_stages

    @staticmethod
    def _build_stem(default: Mapping[str, Any], patch_embed: Mapping[str, Any], **common: Any) -> Stem:
        same = patch_embed.get('type', default.get('type')) == default.get('type')
        cfg = {**(default if same else {}), **patch_embed}
        if 'type' not in cfg:
            raise ConfigError("This arch names no patch size: write 'B/16' for 'B', or give "
                              "patch_embed=dict(type='PatchEmbed', patch_size=16).")
        return MODELS.build(dict(cfg, _scope_=SCOPE), default_args=common)

    def _build_position(self, pos_embed: str | Mapping[str, Any], grid: Grid) -> tuple[PosEmbed, bool]:
        """The positions of the tokens, and whether attention knows relative ones."""
        cfg = {'type': pos_embed} if isinstance(pos_embed, str) else dict(pos_embed)
        kind, relative = cfg.pop('type', 'learned'), cfg.pop('relative', False)
        if kind == 'relative':
            kind, relative = 'none', True
        if kind not in POS_EMBEDS:
            raise ConfigError(f'Unknown pos_embed {kind!r}; choose one of {", ".join(POS_EMBEDS)}, relative.')
        return POS_EMBEDS[kind](grid, self.embed_dims, self.num_extra_tokens, **cfg), relative
