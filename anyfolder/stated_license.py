"""The license of a data set, if its folder states one."""

import re
from collections.abc import Mapping
from pathlib import Path

from .bounded import read_yaml
from .errors import InputError
from .text import read_text

LONGEST = 80  # maximum number of letters in the name of a license
HEAD = 1 << 16  # first bytes of an annotation file, where COCO lists its licenses
LICENSES = ('LICENSE', 'LICENSE.txt', 'LICENSE.md')
READMES = ('README.dataset.txt', 'README.roboflow.txt', 'README.md')
CONFIGS = ('data.yaml', 'dataset.yaml')
SPLITS = ('.', 'train', 'annotations')


def stated_license(folder: str | Path) -> str:
    """The license that a folder states for its data, such as ``'cc-by-4.0'``; empty without one.

    Roboflow writes it into ``data.yaml`` and a README, COCO into the annotation file if all images
    have the same one. Otherwise, the first line of a ``LICENSE`` is its name.
    """
    root = Path(folder)
    found = (
        *(_of_config(root / name) for name in CONFIGS),
        *(_of_readme(root / name) for name in READMES),
        *(_of_coco(path) for place in SPLITS for path in sorted((root / place).glob('*.json'))[:8]),
        *(_first_line(root / name) for name in LICENSES),
    )
    return next(filter(None, map(_named, found)), '')


def _named(text: str) -> str:
    """A license by its name on the hub, if it has one: ``CC BY 4.0`` is ``cc-by-4.0``."""
    name = ' '.join(text.split()).strip('"\'.')
    if not name.isprintable() or len(name) > LONGEST:
        return ''
    short = re.sub(r'[\s_]+', '-', name.lower())
    known = {'apache-license-2.0': 'apache-2.0', 'mit-license': 'mit', 'the-mit-license': 'mit'}
    return known.get(short, re.sub(r'^by-', 'cc-by-', short))


def _of_config(path: Path) -> str:
    if not path.is_file():
        return ''
    try:
        content = read_yaml(path)
    except InputError:  # its reader reports the error
        return ''
    places = [content, content.get('roboflow')] if isinstance(content, Mapping) else []
    stated = [one['license'] for one in places if isinstance(one, Mapping) and 'license' in one]
    return str(stated[0]) if stated else ''


def _of_readme(path: Path) -> str:
    text = _text(path)
    found = re.search(r'(?mi)^\s*license:[ \t]*(\S.*)$', text)
    return found[1] if found else ''


def _of_coco(path: Path) -> str:
    with open(path, 'rb') as file:
        head = file.read(HEAD).decode(errors='replace')
    found = re.search(r'"licenses"\s*:\s*\[([^\]]*)\]', head)
    names = re.findall(r'"name"\s*:\s*"([^"\\]+)"', found[1]) if found else []
    return names[0] if len(names) == 1 else ''


def _first_line(path: Path) -> str:
    return next((line for line in _text(path).splitlines() if line.strip()), '')


def _text(path: Path) -> str:
    if not path.is_file():
        return ''
    try:
        return read_text(path)
    except InputError:
        return ''
