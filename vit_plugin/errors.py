"""What is said to a user when the input is wrong or something is not installed."""

from collections.abc import Iterator
from contextlib import contextmanager


class ConfigError(ValueError):
    """Input that can not work: one sentence that names the field and the remedy.

    The tools print that sentence alone; any other exception is a defect and keeps its traceback.
    """


class MissingExtraError(ImportError):
    """A module that an extra would bring is not installed."""


_FRAMEWORK = "'vit_plugin[onedl]' (the maintained forks) or 'vit_plugin[openmmlab]' (upstream)"

# Modules that the base install does not have, and the extras of setup.py that bring them.
EXTRAS = {
    'mmengine': _FRAMEWORK,
    'mmcv': _FRAMEWORK,
    'mmpretrain': _FRAMEWORK,
    'mmdet': "'vit_plugin[det]'",
    'mmseg': "'vit_plugin[seg]'",
    'pkg_resources': _FRAMEWORK,  # upstream MMEngine's need, gone from recent setuptools
    'sklearn': "'vit_plugin[demo]'",
    'onnx': "'vit_plugin[export]'",
    'onnxscript': "'vit_plugin[export]'",
    'onnxruntime': "'vit_plugin[export]'",
}


@contextmanager
def needed_by(feature: str) -> Iterator[None]:
    """Name the extra to install when an import inside the block finds a module missing.

    Args:
        feature: what needs the import, as the subject of the message's sentence.

    Raises:
        MissingExtraError: in place of the ``ModuleNotFoundError`` of a module listed in ``EXTRAS``.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or '').partition('.')[0]
        if module not in EXTRAS:
            raise
        raise MissingExtraError(
            f'{feature} needs {module}, which is not installed: pip install {EXTRAS[module]}.',
            name=module) from error
