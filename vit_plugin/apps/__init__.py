"""The bodies of the commands. Each tool parses its flags and calls one of these."""

from vit_plugin import registry  # noqa: F401  first, since it says what to install where MMEngine is missing
from vit_plugin.errors import needed_by

with needed_by('The command'):
    import mmengine.runner  # noqa: F401  which imports OpenCV
