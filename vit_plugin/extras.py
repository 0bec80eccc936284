"""What to say when an optional dependency is missing."""

from collections.abc import Iterator
from contextlib import contextmanager

# The extras of setup.py that bring a module that the base install does not have.
EXTRAS = {
    'mmengine': "'vit_plugin[onedl]' (the maintained forks) or 'vit_plugin[openmmlab]' (upstream)",
    'sklearn': "'vit_plugin[demo]'",
}
EXTRAS['mmpretrain'] = EXTRAS['mmcv'] = EXTRAS['pkg_resources'] = EXTRAS['mmengine']


@contextmanager
def needed_by(feature: str) -> Iterator[None]:
    """Name the extra to install when an import inside the block finds a module missing.

    Args:
        feature: what needs the import, as the subject of the message's sentence.

    Raises:
        ImportError: in place of the ``ModuleNotFoundError`` of a module listed in ``EXTRAS``.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or '').partition('.')[0]
        if module not in EXTRAS:
            raise
        raise ImportError(
            f'{feature} needs {module}, which is not installed: pip install {EXTRAS[module]}.',
            name=module) from error
