"""timm's Vision Transformers, by name, as arguments of our backbone.

timm builds the model on the meta device, without memory for weights. Every argument is read from
its modules. What our backbone cannot compute exactly is rejected, with the reason. ``vit-plugin
zoo`` lists the names.
"""

from .definition import describe
from .names import FAMILIES, build_on_meta, names

__all__ = ['FAMILIES', 'build_on_meta', 'describe', 'names']
