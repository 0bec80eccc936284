"""Layout files: their keys and values, and the errors in invalid ones."""

import pytest
from rejection import rejects

from anyfolder.layouts.class_codes import ClassCodes, color_of
from anyfolder.layouts.layout import layout_of, read_layouts
from anyfolder.layouts.layout_keys import KEYS


def test_there_are_at_most_ten_keys():
    assert len(KEYS) <= 10  # as the README states


# By the text of a layout file, the pattern of its error.
WRONG = {
    'fromat: table': r"'fromat' is not one of .*; did you mean 'format'\?",
    'format: tabel': r"'tabel' is not one of .*; did you mean 'table'\?",
    'images: a': 'has no format; give one of folders',
    'format: folders\nimages: [a, b]': r'needs the field \{class\}',
    'format: folders\nimages: "{class}/**"\nlabels: a': 'needs no labels',
    'format: coco': 'needs labels',
    'format: table\nlabels: a': 'needs columns',
    'format: coco\nlabels: a\ncolumns: [image]': 'has no columns',
    'format: masks\nlabels: a': 'needs classes',
    'format: depth\nlabels: a': 'needs units',
    'format: panoptic\nlabels: a\nsplits: {val: b}': 'own classes and splits; remove classes',
    'format: masks\nlabels: a\nclasses: [a]\nunits: from 1': 'no boxes in any units; remove',
    'format: coco\nlabels: a\nunits: millimeters': 'has no depth in 0.001 m; remove units',
    'format: table\nlabels: a\ncolumns: [image, class]\nunits: relative': 'no boxes in any units',
    'format: depth\nlabels: a\nunits: meters\nclasses: [a]': 'has no classes; remove them',
    'format: table\nlabels: a\ncolumns: [image, box]\nunits: 0.5': 'has no depth in 0.5 m; remove',
    'format: [coco]': r"\['coco'\] is not one of folders",
    'format: coco\nlabels: a\ntask: depth': 'has no labels for task: depth, but detection',
    'task: detct': r"did you mean 'detection'\?",
    'units: relatve': r"did you mean 'relative'\?",
    'units: [size, center]': 'size and center contradict each other',
    'units: [size, meters]': "'meters' is not one of size, corners, center",
    'units: [0.001, pixels]': "'0.001' is not one of size, corners, center",
    'units: -1': 'not a number of meters per unit',
    'splits: {trian: a}': r"did you mean 'train'\?",
    'splits: train.txt': 'is not a mapping',
    'splits: {train: [a, b], val: b}': "'b' is in train and in val; keep one of them",
    'images: {split}/a': 'is not YAML',
    'images: **/*.jpg': r'is not YAML .* quote values that begin with \*, \{ or #',
    'images: {a: b}': 'neither text nor a list of text',
    'images: ../secret/*': 'is not a path below the folder',
    'images: /etc/*': 'is not a path below the folder',
    'images: "{name"': 'has an unpaired {',
    'images: "{name:(a+)+}"': 'has a group',
    'images: "*_*_*_*_*.jpg"': 'more than 4 wildcards',
    'images: "a/**/b/**/**"': r'more than two \*\*',
    'columns: [clas, image]': r"'clas' is not a column with a meaning.*did you mean 'class'\?",
    'columns: [left, top]': 'left, top are no box',
    'columns: [image, image]': "names 'image' twice",
    'columns: [..., image]': 'before the end',
    'columns: {}': 'names no column; write lines such as',
    'columns: {image: [a, b]}': 'only classes can have several titles',
    'classes: {0: [a]}': 'each code needs one name',
    'classes: {file: ~}': 'neither text nor a list of text',
    'classes: {file: [a.txt, b.txt]}': 'file has several patterns; give one',
    'a: &a [1]\nb: *a': r'has an anchor',
    'a: !!python/object/apply:os.system [ls]': 'has the tag',
    'a: 1\na: 2': "has the key 'a' twice",
    'a: {b: {c: {d: {e: 1}}}}': 'more than 4 deep',
    '- format': 'is not a mapping',
    '': 'is empty',
}


@pytest.mark.parametrize('text', WRONG)
def test_invalid_layouts_raise_one_sentence(tmp_path, text):
    file = tmp_path / 'anyfolder.yaml'
    file.write_text(text)
    with rejects(WRONG[text]) as raised:
        read_layouts(file)
    assert '\n' not in str(raised.value)
    assert str(raised.value)[-1] in '.?'


def test_scalars_are_kept_as_written(tmp_path):
    """YAML would read ``no`` as false and ``010`` as 8."""
    file = tmp_path / 'anyfolder.yaml'
    file.write_text(
        "format: folders\nimages: '{class}/*'\nclasses: {010: no, 1: ~, 2: '~', 3: 1.0}\n"
    )
    codes = read_layouts(file)[0].classes
    assert codes.names == {'010': 'no', '1': None, '2': '~', '3': '1.0'}


def test_documents_are_layouts_for_other_tasks(tmp_path):
    file = tmp_path / 'anyfolder.yaml'
    file.write_text("format: folders\nimages: '{class}/*'\n---\nformat: coco\nlabels: a.json\n")
    assert [layout.format for layout in read_layouts(file)] == ['folders', 'coco']


@pytest.mark.parametrize(
    ('columns', 'tasks'),
    [
        (['image', 'class'], ('classification',)),
        (['image', 'class', 'box'], ('detection',)),
        (['image', 'class', 'points'], ('detection', 'instance', 'segmentation')),
        (['image', 'mask'], ('segmentation', 'depth')),
    ],
)
def test_columns_determine_the_tasks_of_a_table(columns, tasks):
    content = dict(format='table', labels='a.csv', columns=columns)
    assert layout_of(content, 'file').tasks == tasks


def test_ranges_can_be_names_and_dates_are_names():
    layout = layout_of(
        dict(
            format='folders',
            images='{class}/*',
            classes={'20-29': 'twenties', '2020-01': 'january', '5': 'five'},
        ),
        'file',
    )
    names = {code: layout.classes.name_of(code) for code in ('20-29', '21', '2020-01', '5')}
    assert names == {'20-29': 'twenties', '21': 'twenties', '2020-01': 'january', '5': 'five'}


def test_codes_of_thousands_of_digits_are_names():
    """Python converts no more than 4300 digits."""
    long = '9' * 5000
    codes = ClassCodes.of_codes({f'{long}-{long}': 'many', '1-5': 'few', '*': '*'}, 'file')
    assert (codes.name_of(long), codes.name_of('3')) == (long, 'few')
    assert color_of(f'{long} 0 0') is None
