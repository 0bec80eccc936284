"""The pages on layout files name all keys, formats and layouts, and their examples are valid."""

import re
from pathlib import Path

import pytest

import anyfolder
from anyfolder.layouts.columns import MEANINGS
from anyfolder.layouts.known_layouts import known_layouts
from anyfolder.layouts.layout import read_layouts
from anyfolder.layouts.layout_formats import FORMATS, PUBLIC
from anyfolder.layouts.layout_keys import KEYS

PACKAGE = Path(anyfolder.__file__).parent
PAGE = PACKAGE.parent / 'docs/data.md'
pytestmark = pytest.mark.skipif(not PAGE.is_file(), reason='the page is only in the repository')
# By key, the lines that complete its example to a layout.
COMPLETION = dict(
    when='format: coco\nlabels: a.json',
    task='format: coco\nlabels: a.json',
    format='labels: a.png\nclasses: [a]',
    images='format: coco\nlabels: a.json',
    labels='format: masks\nclasses: [a]',
    columns='format: table\nlabels: a.csv',
    splits='format: coco\nlabels: a.json',
    classes='format: coco\nlabels: a.json',
    units='format: coco\nlabels: a.json',
    note='format: coco\nlabels: a.json',
)


def section():
    text = PAGE.read_text()
    return text[text.index('## Layout files') : text.index('## Splits')]


def examples():
    """The example of each key in the table."""
    found = re.findall(r'^\| `(\w+)` \| (.*) \| `(.*)` \|$', section(), re.MULTILINE)
    return {key: example.replace(r'\|', '|') for key, _, example in found}


def test_every_key_is_in_the_table():
    assert examples().keys() == KEYS.keys()


@pytest.mark.parametrize('key', KEYS)
def test_example_of_a_key_is_valid(tmp_path, key):
    file = tmp_path / 'anyfolder.yaml'
    file.write_text(f'{COMPLETION[key]}\n{examples()[key]}\n')
    assert examples()[key].startswith(f'{key}: ')
    read_layouts(file)


@pytest.mark.parametrize('page', [PAGE, PACKAGE / 'README.md'], ids=['docs', 'README'])
def test_complete_examples_are_valid(tmp_path, page):
    fence = re.compile(r'^```yaml\n(format: .*?)^```', re.MULTILINE | re.DOTALL)
    layouts = fence.findall(page.read_text())
    assert layouts
    for example in layouts:
        (tmp_path / 'anyfolder.yaml').write_text(example)
        read_layouts(tmp_path / 'anyfolder.yaml')


def test_formats_columns_and_known_layouts_are_named():
    text = section()
    named = {*re.findall(r'`(\w+)`', text)}
    assert FORMATS.keys() - PUBLIC.keys() <= named
    # The page writes 'x1, y1 to x4, y4'.
    assert {name for name in MEANINGS if not re.fullmatch(r'[xy][234]', name)} <= named
    assert {file.stem for file in known_layouts()} <= {*re.findall(r'[\w-]+', text)}
