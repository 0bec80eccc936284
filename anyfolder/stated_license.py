"""Find the license of a data set, if its folder states one."""

import re
from collections.abc import Mapping
from pathlib import Path

from .bounded import read_yaml
from .errors import InputError
from .text import read_text

MAX_NAME_LETTERS = 80  # in the name of a license
HEAD_BYTES = 1 << 16  # first bytes of an annotation file, where COCO lists its licenses
MAX_ANNOTATION_FILES = 8  # files in a folder that are searched for a license
LICENSES = ('LICENSE', 'LICENSE.txt', 'LICENSE.md')
READMES = ('README.dataset.txt', 'README.roboflow.txt', 'README.md')
CONFIGS = ('data.yaml', 'dataset.yaml')
ANNOTATION_FOLDERS = ('.', 'train', 'annotations')
# Words of Creative Commons' titles, and their short forms.
CREATIVE_COMMONS = {
    'attribution': 'by',
    'noncommercial': 'nc',
    'sharealike': 'sa',
    'noderivatives': 'nd',
    'noderivs': 'nd',
}
# Titles of license texts in small letters, with a space for every separator, and the names of these
# licenses on the hub.
TITLES = {
    r'apache (?:license )?(?:version )?2\.0': 'apache-2.0',
    r'(?:the )?mit(?: license)?': 'mit',
    r'bsd (\d) clause': r'bsd-\1-clause',
    r'gnu general public license version (\d)': r'gpl-\1.0',
    r'gnu lesser general public license version 2\.1': 'lgpl-2.1',
    r'gnu lesser general public license version 3': 'lgpl-3.0',
    r'gnu affero general public license version 3': 'agpl-3.0',
    r'(?:creative commons )?(?:legal code )?cc0 1\.0': 'cc0-1.0',
    # Roboflow leaves out the CC, as in "BY-NC-SA 4.0".
    (
        r'(?:creative commons )?(?:legal code )?(?:cc )?(by(?: (?:nc|sa|nd))*)(?: (\d\.\d))?'
    ): r'cc \1 \2',
}
TITLE_END = (
    r'(?: international| universal| unported| generic| public| license| deed)*'
    r'(?:(?: \d+)? (?:january|february|june|november) \d{4})?(?: \([^()]*\))?'
)


def stated_license(folder: str | Path) -> str:
    """The license that a folder states for its data, such as ``'cc-by-4.0'``; empty without one.

    Roboflow writes it into ``data.yaml`` and a README, COCO into the list ``licenses`` of an
    annotation file, which counts if it has exactly one entry. Otherwise, a ``LICENSE`` states it by
    the title of a well-known text, or by its first line.
    """
    root = Path(folder)
    annotations = [
        path
        for name in ANNOTATION_FOLDERS
        for path in sorted((root / name).glob('*.json'))[:MAX_ANNOTATION_FILES]
    ]
    texts = (
        *(_in_config(root / name) for name in CONFIGS),
        *(_in_readme(root / name) for name in READMES),
        *map(_in_coco, annotations),
        *(_in_license(root / name) for name in LICENSES),
    )
    return next(filter(None, map(_name_on_hub, texts)), '')


def _name_on_hub(text: str) -> str:
    """The name of a license in the form of Hugging Face's hub: ``CC BY 4.0`` is ``cc-by-4.0``.

    Empty for text that is not a name.
    """
    name = ' '.join(text.split()).strip('"\'.')
    if not name.isprintable() or len(name) > MAX_NAME_LETTERS:
        return ''
    return _known_name(name) or re.sub(r'[\s_]+', '-', name.lower())


def _known_name(title: str) -> str:
    """The name on the hub of a license whose text has this title; empty if it is not known."""
    title = re.sub(r'[\s_,-]+', ' ', title.lower())
    title = re.sub('[a-z]+', lambda word: CREATIVE_COMMONS.get(word[0], word[0]), title)
    for pattern, name in TITLES.items():
        if match := re.fullmatch(pattern + TITLE_END, title):
            return match.expand(name).strip().replace(' ', '-')
    return ''


def _in_config(path: Path) -> str:
    """The license in Roboflow's ``data.yaml``."""
    if not path.is_file():
        return ''
    try:
        content = read_yaml(path)
    except (InputError, OSError):  # the reader of the data reports the error
        return ''
    if not isinstance(content, Mapping):
        return ''
    for entries in (content, content.get('roboflow')):
        if isinstance(entries, Mapping) and entries.get('license') is not None:
            return str(entries['license'])
    return ''


def _in_readme(path: Path) -> str:
    """The license in a line of a README such as ``License: CC BY 4.0``."""
    match = re.search(r'(?mi)^\s*license:[ \t]*(\S.*)$', _text(path))
    return match[1] if match else ''


def _in_coco(path: Path) -> str:
    """The license at the beginning of a COCO file; empty if there are several."""
    if not path.is_file():  # a folder, or a broken link
        return ''
    try:
        with open(path, 'rb') as file:
            head = file.read(HEAD_BYTES).decode(errors='replace')
    except OSError:
        return ''
    licenses = re.search(r'"licenses"\s*:\s*\[([^\]]*)\]', head)
    names = re.findall(r'"name"\s*:\s*"([^"\\]+)"', licenses[1]) if licenses else []
    return names[0] if len(names) == 1 else ''


def _in_license(path: Path) -> str:
    """The name of a license from the first two lines of its text, or else the first line."""
    lines = [*filter(None, (line.strip(' \t#*=-') for line in _text(path).splitlines()))]
    for title in (' '.join(lines[:count]) for count in (1, 2)):
        if name := _known_name(title):
            return name
    return '' if not lines or lines[0].lower().startswith('copyright') else lines[0]


def _text(path: Path) -> str:
    """The text of a file; empty if it is missing or cannot be read."""
    if not path.is_file():
        return ''
    try:
        return read_text(path)
    except (InputError, OSError):
        return ''
