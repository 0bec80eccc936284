"""Import the frameworks, and end the command with one sentence if one is missing.

Modules that need them import this one first, for the import only.
"""

# This import comes first, since its error says what to install if MMEngine is missing.
import vit_plugin.registry  # noqa: F401
from vit_plugin.errors import needed_by
from vit_plugin.importable import hide_packages

# transformers has an optimizer, which `register_optimizer` adds where a config names it.
with needed_by('The command'), hide_packages('transformers'):
    import mmengine.runner  # noqa: F401  which imports OpenCV
