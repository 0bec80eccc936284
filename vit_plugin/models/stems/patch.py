"""The plain patch embedding."""

from typing_extensions import Unpack

from vit_plugin.arguments.fields import PositiveInt
from vit_plugin.registry import MODELS

from .stem import Stem, StemOptions


@MODELS.register_module()
class PatchEmbed(Stem):
    """Linear projection of the image's square patches (arXiv:2010.11929, Section 3.1).

    Args:
        in_channels, embed_dims, patch_size, **kwargs: see :class:`Stem`. ``norm_cfg`` and
            ``act_cfg`` add a norm and an activation after the projection. Some ViTs for small
            images have them.
    """

    def __init__(
        self,
        in_channels: PositiveInt = 3,
        embed_dims: PositiveInt = 768,
        patch_size: PositiveInt = 16,
        **kwargs: Unpack[StemOptions],
    ) -> None:
        super().__init__(in_channels, embed_dims, patch_size, **kwargs)
