"""The plain patch embedding."""

from typing import Any

from vit_plugin.registry import MODELS

from .stem import Stem


@MODELS.register_module()
class PatchEmbed(Stem):
    """Linear projection of the image's square patches (arXiv:2010.11929, Section 3.1).

    Args:
        in_channels, embed_dims, patch_size and the rest: see :class:`Stem`. ``norm_cfg`` and ``act_cfg``
            add a norm and an activation after the projection, as some ViTs for small images have.
    """

    def __init__(self, in_channels: int, embed_dims: int, patch_size: int = 16, **kwargs: Any) -> None:
        super().__init__(in_channels, embed_dims, patch_size, **kwargs)
