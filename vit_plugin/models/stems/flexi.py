"""A patch embedding with a patch size that is chosen at run time."""

import random
from typing import Literal

from torch import Tensor
from typing_extensions import Unpack

from vit_plugin.arguments.fields import PositiveInt, PositiveInts
from vit_plugin.errors import ConfigError
from vit_plugin.registry import MODELS

from ..layers.patch_resize import ResizableConv2d
from .patch import PatchEmbed
from .stem import StemOptions

# Patch sizes that divide the paper's images of 240 x 240 pixels (arXiv:2212.08013, Section 3.2).
PAPER_SIZES = (8, 10, 12, 15, 16, 20, 24, 30, 40, 48)


@MODELS.register_module()
class FlexiPatchEmbed(PatchEmbed):
    """Patches of any size with one set of weights (FlexiViT, arXiv:2212.08013).

    Kernel and position table have fixed sizes, and are resized to the patches and their grid in
    each forward. So the parameters do not depend on the patch size.

    Args:
        in_channels, embed_dims: see :class:`Stem`.
        patch_size: side of the patches. :meth:`set_patch_size` changes it later.
        kernel_size: side of the kernel. The authors use 32, timm's checkpoints 16.
        sizes: the patch sizes of training. Each batch has a random one, all equally likely.
            ``'paper'`` means ``PAPER_SIZES``. None: training and inference use ``patch_size``.
        **kwargs: see :class:`Stem`.
    """

    def __init__(
        self,
        in_channels: PositiveInt = 3,
        embed_dims: PositiveInt = 768,
        patch_size: PositiveInt = 16,
        kernel_size: PositiveInt = 32,
        sizes: PositiveInts | Literal['paper'] | None = None,
        **kwargs: Unpack[StemOptions],
    ) -> None:
        # Set these before the parent's constructor, which builds the projection.
        self.kernel_size = kernel_size
        self.sizes = PAPER_SIZES if sizes == 'paper' else tuple(sizes or ())
        super().__init__(in_channels, embed_dims, patch_size, **kwargs)

    def build_projection(self, channels: int, bias: bool) -> ResizableConv2d:
        """See :meth:`Stem.build_projection`."""
        return ResizableConv2d(
            channels,
            self.embed_dims,
            self.kernel_size,
            self.kernel_size,
            bias=bias,
            sizes=(self.patch_size, *self.sizes),
        )

    def set_patch_size(self, patch_size: int) -> None:
        """Change the size of the patches. The weights are unchanged."""
        self.proj.prepare(patch_size)
        self.patch_size = patch_size

    @property
    def patch_size_varies(self) -> bool:
        """See :attr:`Stem.patch_size_varies`."""
        return bool(self.sizes)

    def native_grid(self, image_size: tuple[int, int]) -> tuple[int, int]:
        """See :meth:`Stem.native_grid`. The grid is that of patches as large as the kernel.

        Raises:
            ConfigError: if the image is smaller than the kernel.
        """
        if min(image_size) < self.kernel_size:
            raise ConfigError(
                f'patch_embed: img_size={image_size[0]} x {image_size[1]} is smaller than the '
                f'kernel of {self.kernel_size} x {self.kernel_size}, and the position table has '
                'one entry per kernel-sized patch; take a larger img_size or a smaller kernel_size.'
            )
        return self.patches(image_size, self.kernel_size)

    def project(self, x: Tensor) -> Tensor:
        """See :meth:`Stem.project`."""
        # SeedHook seeds this choice before each step.
        size = random.choice(self.sizes) if self.training and self.sizes else self.patch_size
        return self.proj(self.padded(x, size), size)

    def check_image_size(self, image_size: tuple[int, ...]) -> None:
        """Check that a patch fits in an image (H, W). In training, all ``sizes`` must fit."""
        super().check_image_size(image_size)
        if self.training and min(image_size) < max(self.sizes, default=0):
            raise ConfigError(
                f'The image of {image_size[0]} x {image_size[1]} pixels is smaller than the '
                f'largest of the patch sizes {", ".join(map(str, self.sizes))} of training: leave '
                'out the larger ones in patch_embed=dict(sizes=...), or take larger images.'
            )
