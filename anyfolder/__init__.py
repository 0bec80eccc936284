"""Reads folders of labeled images in almost any layout, and checks labels against the pixels.

    import anyfolder

    data = anyfolder.read('my/folder', task='detection')
    for image in data.splits['train']:
        print(image.path, [(obj.label, obj.box) for obj in image.objects])

The names below are imported lazily, so that ``import anyfolder`` is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .dataset import Dataset, Image, Note, Object, object_mask
    from .errors import InputError, MissingExtraError
    from .pictures.label_sheet import draw_sheet
    from .reading import TASKS, read
    from .writers.conversion import convert
    from .writers.targets import TARGETS

__version__ = '0.1.0'
_MODULES = {
    'Dataset': 'dataset',
    'Image': 'dataset',
    'InputError': 'errors',
    'MissingExtraError': 'errors',
    'Note': 'dataset',
    'Object': 'dataset',
    'TARGETS': 'writers.targets',
    'TASKS': 'reading',
    'convert': 'writers.conversion',
    'draw_sheet': 'pictures.label_sheet',
    'object_mask': 'dataset',
    'read': 'reading',
}
__all__ = [
    'TARGETS',
    'TASKS',
    'Dataset',
    'Image',
    'InputError',
    'MissingExtraError',
    'Note',
    'Object',
    'convert',
    'draw_sheet',
    'object_mask',
    'read',
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f'anyfolder.{_MODULES[name]}'), name)
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
