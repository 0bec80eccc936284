"""timm's Vision Transformers, by name, as arguments of our backbone.

``arch='timm://vit_base_patch16_224'`` builds timm's model on the meta device, without memory for
weights, and reads from its modules every argument of
:class:`~vit_plugin.models.VisionTransformer`: ``patch_embed`` (the stem), ``pos_embed``,
``encoder`` (options of the blocks), ``numerics`` (norms and activations) and ``out_type`` (what the
backbone returns). What our backbone cannot compute exactly is rejected, with the reason.
``vit-plugin zoo`` lists the names.
"""

from .definition import describe
from .names import FAMILIES, build_on_meta, names

__all__ = ['FAMILIES', 'build_on_meta', 'describe', 'names']
