"""Stems turn images into tokens. Only the stem differs between pure and hybrid models.

A stem is a linear layer on patches, or a CNN and then a linear layer on patches of its last map.
"""

from collections.abc import Sequence

from torch import Tensor, nn
from typing_extensions import TypedDict

from vit_plugin.arguments.fields import InitConfig, NormConfig, OpenDict, PositiveInt, Typed
from vit_plugin.errors import ConfigError, naming
from vit_plugin.weights.opening import Source, read_source
from vit_plugin.weights.reading.lazy import Weights
from vit_plugin.weights.report import Report

from ..layers.numerics import AnyNumerics, build_activation, build_norm, get_numerics
from ..layers.recompute import Recompute
from ..layers.std_conv import lecun_normal_
from ..loadable_module import LoadableModule
from .own_weights import match_own_weights
from .padding import PADDINGS, Padding, pad_to_multiple


class StemOptions(TypedDict, total=False):
    """Arguments that every stem passes on to :class:`Stem`."""

    numerics: AnyNumerics
    with_cp: Recompute
    norm_cfg: NormConfig | None
    act_cfg: Typed | None
    bias: bool
    projection: bool
    padding: Padding
    frozen: bool
    init_cfg: InitConfig


class StemCfg(OpenDict, total=False):
    """Config entries that all stems have. The constructor of each stem checks all further ones."""

    type: str | type
    in_channels: PositiveInt
    patch_size: PositiveInt


class Stem(LoadableModule):
    """Base class of the stems, which turn images into tokens.

    A subclass passes the strides and channels of its CNN's maps to this constructor and computes
    the maps in :meth:`features`. This class splits the last map into patches and projects them to
    tokens. A stem calls each of its children as a whole, since sharding gathers their parameters at
    that point.

    Args:
        in_channels: channels of the image.
        embed_dims: width of the tokens.
        patch_size: side of the square patches of the last map, or of the image if there is no CNN.
        numerics: see :func:`~vit_plugin.models.layers.numerics.get_numerics`.
        with_cp: activation checkpointing: recompute the CNN's blocks in the backward pass.
        norm_cfg: norm after the projection. The papers have none (None).
        act_cfg: activation after this norm. The papers have none (None).
        bias: whether the projection has a bias. CLIP's has none.
        projection: whether there is a projection. Without one the last map of the CNN holds the
            tokens.
        padding: how to treat pixels that do not fill a patch. ``'same'`` pads them to a full patch.
            ``'valid'`` crops them, as timm and big_vision do.
        frozen: whether the entire stem is frozen, as in MoCo v3's training of a pure ViT
            (arXiv:2104.02057, Section 4.3). The backbone freezes it.
        init_cfg: MMEngine's initialization config. Its entry ``type='Pretrained'`` is read by
            :meth:`load`, before the weights of the backbone. To keep them, leave the stem out of
            these: give the backbone's ``init_cfg`` the entry ``skip=['patch_embed.{rest}']``.
        feature_strides: pixels per element of each map that the subclass computes. The last map
            becomes tokens. Subclasses whose root, the layers before the first stage, yields a map
            have an argument ``with_root``, which puts this map, its stride and channels first.
        feature_channels: channels of each map.

    Attributes:
        depths: for layer-wise decay, the prefix of the parameters at each depth of the CNN, from
            the image on. All others have the last depth, that of the projection to tokens.
    """

    depths: Sequence[str] = ()
    pretrained_arch: str | None = None  # the arch whose weights `checkpoint=True` loads

    def __init__(
        self,
        in_channels: PositiveInt = 3,
        embed_dims: PositiveInt = 768,
        patch_size: PositiveInt = 16,
        numerics: AnyNumerics = 'authors',
        with_cp: Recompute = False,
        norm_cfg: NormConfig | None = None,
        act_cfg: Typed | None = None,
        bias: bool = True,
        projection: bool = True,
        padding: Padding = 'same',
        frozen: bool = False,
        init_cfg: InitConfig = None,
        feature_strides: Sequence[int] = (),
        feature_channels: Sequence[int] = (),
    ) -> None:
        super().__init__(init_cfg, self.pretrained_arch)
        self.in_channels, self.embed_dims, self.patch_size = in_channels, embed_dims, patch_size
        self.padding, self.frozen = padding, frozen
        self.numerics = get_numerics(numerics)
        self.with_cp = with_cp
        self.feature_strides = tuple(feature_strides)
        self.feature_channels = tuple(feature_channels)
        channels = self.feature_channels[-1] if self.feature_channels else in_channels
        if not projection and (channels != embed_dims or patch_size > 1):
            raise ConfigError(
                f'patch_embed: without a projection the last map must be {embed_dims} channels '
                f'wide, as the tokens, with patch_size=1, but it has {channels} with '
                f'patch_size={patch_size}; change them, or leave out projection=False.'
            )
        self.proj: nn.Module = nn.Identity()
        if projection:
            self.proj = self.build_projection(channels, bias)
        self.norm = build_norm(norm_cfg, embed_dims) if norm_cfg else nn.Identity()
        self.act = build_activation(act_cfg) if act_cfg else nn.Identity()
        self.reset_parameters()

    def load(
        self, source: Source, skip: Sequence[str] = (), source_grid: tuple[int, int] | None = None
    ) -> Report:
        """Load only the stem, from a file of a stem or of a model with the same stem.

        Args:
            source: see :func:`~vit_plugin.models.load_weights`. The names are ours, with the
                prefix of a stem, a backbone or a complete model.
            skip, source_grid: not supported for a stem.

        Raises:
            ConfigError: if a tensor is missing, has a different shape or is quantized. The stem is
                then unchanged.
        """
        if skip or source_grid:
            raise ConfigError(
                'patch_embed: init_cfg takes no skip or source_grid for a stem; leave them out.'
            )
        origin, weights = read_source(source)
        with naming(origin):
            fitted, report = self.match_weights(weights)
        self.load_state_dict(fitted, strict=False)
        return report

    def match_weights(self, weights: Weights) -> tuple[dict[str, Tensor], Report]:
        """Match the weights of a file to the stem's parameters: what :meth:`load` loads.

        Returns:
            The tensors by the names of the stem, and the report of loading.

        Raises:
            ConfigError: see :meth:`load`.
        """
        return match_own_weights(self.state_dict(), weights)

    def is_cnn_checkpoint(self, weights: Weights) -> bool:
        """True if a file has only this stem's CNN, as its library publishes it, and no blocks."""
        return False

    def reset_parameters(self) -> None:
        """Initialize the projection as the authors do. The CNN's layers initialize themselves."""
        if isinstance(self.proj, nn.Conv2d):
            lecun_normal_(self.proj.weight)
            if self.proj.bias is not None:
                nn.init.zeros_(self.proj.bias)

    def build_projection(self, channels: int, bias: bool) -> nn.Module:
        """The layer that projects patches with this number of channels to tokens."""
        return nn.Conv2d(channels, self.embed_dims, self.patch_size, self.patch_size, bias=bias)

    @property
    def patch_size_varies(self) -> bool:
        """True if the patch size, and so the stride, varies between training batches."""
        return False

    def check_fixed_patch_size(self, subject: str) -> None:
        """Raise a ``ConfigError`` if the patch size varies.

        Args:
            subject: what needs a fixed size, the beginning of the message.
        """
        if self.patch_size_varies:
            raise ConfigError(
                f'{subject}: the patches must have a fixed size, not one for each batch; leave out '
                'sizes in patch_embed.'
            )

    @property
    def stride(self) -> int:
        """Pixels between neighboring tokens."""
        return self.cnn_stride * self.patch_size

    @property
    def cnn_stride(self) -> int:
        """Pixels per element of the map that becomes tokens, or 1 without a CNN."""
        return self.feature_strides[-1] if self.feature_strides else 1

    def grid(self, image_size: tuple[int, int]) -> tuple[int, int]:
        """Rows and columns of tokens for an image (H, W)."""
        return self.patches(image_size, self.patch_size)

    def native_grid(self, image_size: tuple[int, int]) -> tuple[int, int]:
        """Rows and columns of the position table for images (H, W) of the native size."""
        return self.grid(image_size)

    def patches(self, image_size: tuple[int, int], patch_size: int) -> tuple[int, int]:
        """Rows and columns of patches of this size for an image (H, W)."""
        # The CNN's maps have ceil(size / stride) elements.
        h, w = (
            PADDINGS[self.padding](-(-size // self.cnn_stride), patch_size) for size in image_size
        )
        return h, w

    def features(self, images: Tensor) -> tuple[Tensor, ...]:
        """Images (B, C, H, W) -> a map (B, C_i, ceil(H / s_i), ceil(W / s_i)) per stride s_i."""
        return ()

    def layer_depth(self, name: str) -> int:
        """Depth of a stem parameter, from 0 at the image to ``num_depths - 1`` at the tokens."""
        return next(
            (i for i, start in enumerate(self.depths) if name.startswith(start)), len(self.depths)
        )

    @property
    def num_depths(self) -> int:
        """Number of depths from the image to the tokens."""
        return len(self.depths) + 1

    def forward(self, images: Tensor) -> tuple[Tensor, tuple[int, int], tuple[Tensor, ...]]:
        """Images (B, C, H, W) -> tokens (B, h*w, embed_dims), their grid (h, w), the CNN's maps.

        The channel of gray images is repeated ``in_channels`` times.

        Raises:
            ConfigError: if the images have neither one channel nor ``in_channels``, or are smaller
                than one patch.
        """
        self.check_images(images)
        images = images.expand(-1, self.in_channels, -1, -1)
        features = self.features(images)
        x = self.project(features[-1] if features else images)  # (B, embed_dims, h, w)
        grid = (x.shape[-2], x.shape[-1])
        x = x.flatten(2).transpose(1, 2)  # (B, h*w, embed_dims)
        return self.act(self.norm(x)), grid, features

    def project(self, x: Tensor) -> Tensor:
        """The last map (B, C, H, W) -> the map (B, embed_dims, h, w) of the tokens."""
        return self.proj(self.padded(x, self.patch_size))

    def padded(self, x: Tensor, patch_size: int) -> Tensor:
        """Pad a map (B, C, H, W) to complete patches, unless incomplete patches are cropped."""
        return pad_to_multiple(x, patch_size) if self.padding == 'same' else x

    def check_images(self, images: Tensor) -> None:
        """Check number of channels and size, see :meth:`forward`."""
        if images.ndim != 4 or images.shape[1] not in (1, self.in_channels):
            raise ConfigError(
                f'The images have the shape {tuple(images.shape)}, and the backbone takes (B, '
                f'{self.in_channels}, H, W): change the pipeline, or set '
                'patch_embed=dict(in_channels=...).'
            )
        self.check_image_size(tuple(images.shape[-2:]))

    def check_image_size(self, image_size: tuple[int, ...]) -> None:
        """Check that an image (H, W) is not smaller than one patch."""
        if min(image_size) < self.stride:
            raise ConfigError(
                f'The image of {image_size[0]} x {image_size[1]} pixels is smaller than one patch '
                f'of {self.stride} x {self.stride}: resize the images in the pipeline, or choose '
                'an arch with a smaller patch.'
            )
