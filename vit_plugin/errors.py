"""Errors for wrong input and for missing packages, each with a remedy in its message.

The classes come from ``anyfolder``, so that an error of either package can be caught as one class.
"""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# One class for wrong data folders and wrong configs.
from anyfolder.errors import InputError as ConfigError
from anyfolder.errors import (
    MissingExtraError,
    first_line,
    is_out_of_memory,
    named_line,
    naming,
    rejecting,
)

__all__ = [
    'ConfigError',
    'MissingExtraError',
    'explaining_imports',
    'first_line',
    'is_out_of_memory',
    'named_line',
    'naming',
    'needed_by',
    'rejecting',
]

# Arguments of pip in a clone: the versions that were tested together.
_CLONE = '-c tests/constraints.txt -e'
_FRAMEWORK = f"{_CLONE} '.[onedl]' (the maintained forks) or '.[openmmlab]' (upstream)"
if sys.version_info >= (3, 14):
    _FRAMEWORK = (
        f"{_CLONE} '.[onedl]' (the maintained forks; uninstall upstream, which Python 3.14 cannot "
        'import)'
    )

# Modules outside the base install -> the arguments for pip in a clone (extras of setup.py).
EXTRAS = {
    'mmengine': _FRAMEWORK,
    'mmcv': _FRAMEWORK,
    'mmpretrain': _FRAMEWORK,
    'mmdet': f"{_CLONE} '.[det]'",
    'mmseg': f"{_CLONE} '.[seg]'",
    'supervision': f"{_CLONE} '.[det]' or '.[seg]'",
    'pkg_resources': _FRAMEWORK,  # upstream MMEngine needs it, but recent setuptools lack it
    'sklearn': f"{_CLONE} '.[demo]'",
    'faster_coco_eval': f"{_CLONE} '.[coco]'",
    'datasets': f"{_CLONE} '.[hf]'",
    'h5py': f"{_CLONE} '.[volumes]'",
    'scipy': f"{_CLONE} '.[seg]'",
    'gradio': f"{_CLONE} '.[demo]'",
    'peft': f"{_CLONE} '.[lora]'",
    'transformers': "-e '.[transformers]'",
    'panopticapi': 'git+https://github.com/cocodataset/panopticapi.git',
    'onnx': f"{_CLONE} '.[export]'",
    'onnxscript': f"{_CLONE} '.[export]'",
    'onnxruntime': f"{_CLONE} '.[demo]' or '.[export]'",
    'openvino': f"{_CLONE} '.[openvino]'",
}

# opencv-python links desktop libraries, which servers and containers lack.
_LIBRARIES = {
    'cv2': 'install the libraries of a desktop (on Debian and Ubuntu: apt-get install libgl1 '
    'libglib2.0-0), or the OpenCV that needs none (pip install --force-reinstall --no-deps '
    'opencv-contrib-python-headless)',
}


@contextmanager
def needed_by(feature: str) -> Iterator[None]:
    """Within this context, explain a failed import of another package.

    Args:
        feature: what needs the import. It is the subject of the message.

    Raises:
        MissingExtraError: if a module is missing (with the extra to install), if the system lacks a
            library that it links, or if its import raises another error.
    """
    try:
        yield
    except (ConfigError, MissingExtraError):
        raise
    except Exception as error:
        module = (getattr(error, 'name', None) or '').partition('.')[0]
        if isinstance(error, ModuleNotFoundError) and module in EXTRAS:
            raise MissingExtraError(
                f'{feature} needs {module}, which is not installed; in a clone of vit_plugin: '
                f'pip install {EXTRAS[module]}.',
                name=module,
            ) from error
        if library := re.match(r'(\S+): (?:failed to map segment|cannot allocate)', f'{error}'):
            raise MissingExtraError(
                f'{feature} cannot be imported, since there is not enough memory for {library[1]}; '
                'free some, or raise the limit of this process (ulimit -v).',
                name=module,
            ) from error
        if library := re.match(r'(\S+): cannot open shared object file', f'{error}'):
            remedy = _LIBRARIES.get(module, 'install the package of your distribution that has it')
            raise MissingExtraError(
                f'{feature} cannot be imported, since {module or "a package that it needs"} needs '
                f'{library[1]}, which this system does not have; {remedy}.',
                name=module,
            ) from error
        # For example, MMPretrain raises an AssertionError for some versions of mmcv.
        raise MissingExtraError(
            f'{feature} cannot be imported, since a package that it needs raises '
            f'{type(error).__name__}: {str(error).rstrip(".")}; install versions that fit '
            f'together, in a clone of vit_plugin: pip install {_FRAMEWORK}.',
            name=module,
        ) from error


@contextmanager
def explaining_imports(feature: str) -> Iterator[None]:
    """Within this context, explain a failed import as :func:`needed_by` does.

    Other errors stay as they are, so the context may contain more than imports.
    """
    try:
        yield
    except MissingExtraError:
        raise
    except ImportError:
        with needed_by(feature):
            raise
