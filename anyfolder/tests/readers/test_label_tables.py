"""Images and tables of their classes."""

import json
from pathlib import Path

import pytest
from image_folders import write_flat
from listings import notes_of, sizes_of
from rejection import rejects

from anyfolder.readers.class_folders import read_class_folders
from anyfolder.readers.image_tree import Tree
from anyfolder.readers.listing import Listing


def read(folder: Path) -> Listing:
    return read_class_folders(Tree(folder))


@pytest.mark.parametrize(
    ('name', 'header', 'row'),
    [
        ('train.csv', 'id,label', '{i},{c}'),
        ('train/metadata.csv', 'file_name,label', '{i}.jpg,{c}'),
        ('labels.csv', '\ufefffilename;width;class', '{i}.jpg;8;{c}'),
        ('train.csv', ',image,species', '{i}9,train/{i}.jpg,{c}'),
        ('train.tsv', 'label\tpath', '{c}\tC:\\photos\\{i}.jpg'),
        ('train.csv', 'id,picture,label', '{j},{i}.jpg,{c}'),
        ('train.csv', 'nr,photo,label', '{j},{i}.jpg,{c}'),
        ('train.csv', 'Unnamed: 0,picture,y', '{j},{i},{c}'),  # another image's name is its index
        ('train.csv', '"name";"labels";"weight"', '"{i}.jpg";"{c}";"1,5"'),
    ],
)
def test_a_table_says_the_classes(tmp_path, name, header, row):
    write_flat(tmp_path, 12)
    lines = [row.format(i=i, j=11 - i, c=('cat', 'dog')[i % 2]) for i in range(12)]
    (tmp_path / name).write_text('\r\n'.join([header, *lines]), encoding='utf-8')
    found = read(tmp_path)
    assert found.classes == ('cat', 'dog')
    assert not found.multi_label
    assert found.held_out
    wanted = {(f'{i}.jpg', ('cat', 'dog')[i % 2]) for i in range(12)}
    assert {(photo.path.name, *photo.labels) for photo in found.train + found.val} == wanted


def test_a_column_says_the_part(tmp_path):
    write_flat(tmp_path, 12, place='images')
    rows = [f'{i}.jpg,{"ab"[i % 2]},{"train" if i < 8 else "test"}' for i in range(12)]
    (tmp_path / 'labels.csv').write_text('\n'.join(['file,label,split', *rows]))
    assert [len(part) for part in read(tmp_path).parts.values()] == [6, 2, 4]


@pytest.mark.parametrize(
    ('header', 'row'),
    [
        ('file,labels', '{i}.jpg,{several}'),
        ('filename, red, green', '{i}.jpg, {red}, {green}'),
    ],
)
def test_an_image_may_have_several_classes(tmp_path, header, row):
    write_flat(tmp_path, 12)
    values = [(i % 2, i % 3 == 0) for i in range(12)]
    rows = [
        row.format(
            i=i, red=int(red), green=int(green), several='|'.join(['red'] * red + ['green'] * green)
        )
        for i, (red, green) in enumerate(values)
    ]
    (tmp_path / 'train/_classes.csv').write_text('\n'.join([header, *rows]))
    found = read(tmp_path)
    assert found.multi_label
    assert found.classes == ('green', 'red')
    assert any('(multi-label)' in what for what, _, _ in found.findings.rows())
    labels = {photo.path.stem: {*photo.labels} for photo in found.train + found.val}
    assert labels == {
        str(i): {name for name, on in (('red', red), ('green', green)) if on}
        for i, (red, green) in enumerate(values)
    }


@pytest.mark.parametrize('kind', [int, float, bool])
def test_one_column_of_each_class_may_be_one_class_an_image(tmp_path, kind):
    write_flat(tmp_path, 12)
    rows = [f'{i},{i}.jpg,{kind(i % 2)},{kind(1 - i % 2)}' for i in range(12)]
    (tmp_path / 'train/_classes.csv').write_text('\n'.join([',filename,odd,even', *rows]))
    found = read(tmp_path)
    assert (found.classes, found.multi_label) == (('even', 'odd'), False)


@pytest.mark.parametrize(
    ('header', 'values', 'classes'),
    [
        ('tags', ['clear road', 'haze', 'clear haze road', 'haze road'], {'clear', 'haze', 'road'}),
        ('label', ['red fox', 'red deer'], {'red fox', 'red deer'}),
        ('label', ['"snake, sea"', 'bird'], {'snake, sea', 'bird'}),
        ('label', ['"a,b"', 'b'], {'a', 'b'}),
        ('label', ["\"['a', 'b']\"", '"[\'b\']"'], {'a', 'b'}),
        ('label', ['a;b', 'c'], {'a', 'b', 'c'}),
    ],
)
def test_what_separates_labels(tmp_path, header, values, classes):
    write_flat(tmp_path, 12)
    rows = [f'{i}.jpg,{values[i % len(values)]}' for i in range(12)]
    (tmp_path / 'train.csv').write_text('\n'.join([f'image,{header}', *rows]))
    assert {*read(tmp_path).classes} == classes


@pytest.mark.parametrize('value', ['', 'nan'])
def test_a_row_without_a_label_is_left_out(tmp_path, value):
    write_flat(tmp_path, 12)
    rows = [f'{i}.jpg,{"ab"[i % 2] if i else value}' for i in range(12)]
    (tmp_path / 'train.csv').write_text('\n'.join(['image,label', *rows]))
    found = read(tmp_path)
    assert (found.classes, found.multi_label) == (('a', 'b'), False)
    assert ('images left out, since a table has no class for them, or two', 1) in notes_of(found)


def test_a_table_without_a_header(tmp_path):
    write_flat(tmp_path, 12)
    (tmp_path / 'train.csv').write_text('\n'.join(f'{i}.jpg,{"ab"[i % 2]}' for i in range(12)))
    assert len(read(tmp_path).train) == 10


def test_a_column_of_true_and_false_says_the_part(tmp_path):
    write_flat(tmp_path, 12)
    rows = [f'{i}.jpg,{"ab"[i % 2]},{i > 7}' for i in range(12)]
    (tmp_path / 'train.csv').write_text('\n'.join(['image,label,is_valid', *rows]))
    assert [len(part) for part in read(tmp_path).parts.values()] == [8, 4, 0]


@pytest.mark.parametrize(
    ('header', 'row', 'words'),
    [
        ('label,name', '{i},word', None),  # names of the classes, whose numbers are no images
        ('id,name', '{i},word', None),
        ('id,label', '{i},word', 'have different classes for'),
        ('filename,class,xmin,ymin,xmax,ymax', '{i}.jpg,a,1,1,5,5', 'has boxes in the column'),
    ],
)
def test_tables_of_something_else(tmp_path, header, row, words):
    write_flat(tmp_path, 12)
    rows = [f'{i},{i % 2}' for i in range(12)]
    (tmp_path / 'a.csv').write_text('\n'.join(['id,label', *rows]))
    (tmp_path / 'b.csv').write_text('\n'.join([header, *(row.format(i=i) for i in range(2))]))
    if words is None:
        assert read(tmp_path).classes == ('0', '1')
        return
    with rejects(words):
        read(tmp_path)


def test_lines_of_json(tmp_path):
    """Hugging Face's ``metadata.jsonl``."""
    write_flat(tmp_path, 12)
    rows = [json.dumps(dict(file_name=f'{i}.jpg', label='ab'[i % 2])) for i in range(12)]
    (tmp_path / 'train/metadata.jsonl').write_text('\n'.join(rows))
    assert read(tmp_path).classes == ('a', 'b')
    rows = [json.dumps(dict(file_name=f'{i}.jpg', labels=['a', 'b'][: i % 3])) for i in range(12)]
    (tmp_path / 'train/metadata.jsonl').write_text('\n'.join(rows))
    assert read(tmp_path).multi_label


@pytest.mark.parametrize('lacking', [0, 11])
def test_lines_of_json_may_lack_a_key(tmp_path, lacking):
    write_flat(tmp_path, 12)
    rows = [{'file_name': f'train/{i}.jpg', 'label': 'ab'[i % 2]} for i in range(12)]
    del rows[lacking]['label']
    (tmp_path / 'metadata.jsonl').write_text('\n'.join(map(json.dumps, rows)))
    found = read(tmp_path)
    assert len(found.train + found.val) == 11
    assert found.classes == ('a', 'b')


@pytest.mark.parametrize('title', ['train_or_test', 'TRAIN'])
def test_words_for_parts_count_below_any_title(tmp_path, title):
    write_flat(tmp_path, 12)
    rows = [f'{"train" if i < 8 else "test"},{i}.jpg,{"ab"[i % 2]}' for i in range(12)]
    (tmp_path / 'labels.csv').write_text('\n'.join([f'{title},file,label', *rows]))
    assert [len(part) for part in read(tmp_path).parts.values()] == [6, 2, 4]


def test_rows_without_their_image_are_named(tmp_path):
    write_flat(tmp_path, 12)
    rows = [f'{i},{"ab"[i % 2]}' for i in range(15)]
    (tmp_path / 'train.csv').write_text('\n'.join(['id,label', *rows]))
    assert read(tmp_path).findings.rows() == [
        ('rows of train.csv left out, since their image is missing', 3, ['12', '13', '14'])
    ]


def test_a_row_with_more_values_than_the_header_is_an_error(tmp_path):
    write_flat(tmp_path, 12)
    rows = [f'{i}.jpg,cat{",dog" * (i == 3)},' for i in range(12)]  # all end with an empty one
    (tmp_path / 'train.csv').write_text('\n'.join(['file,label', *rows]))
    with rejects(r"row 5 of .*train\.csv' has more values than the header, such as 'dog'"):
        read(tmp_path)


def test_a_table_without_labels_names_its_columns(tmp_path):
    write_flat(tmp_path, 12)
    (tmp_path / 'train.csv').write_text(
        '\n'.join(['id,lens,place', *(f'{i},wide,home' for i in range(12))])
    )
    with rejects('has the columns id, lens, place, but none of them is called label; rename'):
        read(tmp_path)


def test_tables_of_kaggle_that_have_no_classes(tmp_path):
    write_flat(tmp_path, 12)
    write_flat(tmp_path, 12, place='test')
    rows = [f'train/{i}.jpg,{"ab"[i % 2]}' for i in range(12)]
    (tmp_path / 'train.csv').write_text('\n'.join(['id,label', *rows]))
    (tmp_path / 'test.csv').write_text('\n'.join(['id', *(f'test/{i}.jpg' for i in range(12))]))
    rows = [f'test/{i}.jpg,a' for i in range(12)]
    (tmp_path / 'sample_submission.csv').write_text('\n'.join(['id,label', *rows]))
    found = read(tmp_path)
    assert sizes_of(found) == [10, 2, 0]
    assert notes_of(found) == [
        ('files left out, .csv', 1),
        ('images left out, since they have no label or list entry', 12),
    ]


@pytest.mark.parametrize(
    ('header', 'values', 'classes'),
    [
        ('classes', ['red cat', 'red dog', 'blue cat', 'blue dog'], 4),
        ('tags', ['great white', 'tiger shark', 'blue whale', 'gray seal'], 4),
        ('labels', ['a b c', 'd e f', 'a e c', 'd b f'], 4),
        ('tags', ['clear', 'haze', 'clear haze', 'haze road', 'road', 'clear road'], 3),
    ],
)
def test_names_of_two_words_are_no_two_labels(tmp_path, header, values, classes):
    write_flat(tmp_path, 12)
    rows = [f'{i}.jpg,{values[i % len(values)]}' for i in range(12)]
    (tmp_path / 'train.csv').write_text('\n'.join([f'image,{header}', *rows]))
    found = read(tmp_path)
    assert len(found.classes) == classes
    said = [what for what, _, _ in found.findings.rows()]
    assert any('use | to be sure' in what for what in said) == found.multi_label == (classes == 3)
    assert any('each taken as one name; use |' in what for what in said) == (classes == 4)


@pytest.mark.parametrize('column', ['age', 'score', 'label'])
@pytest.mark.parametrize(
    'value',
    [
        lambda i: i * 0.37,
        lambda i: 20.5 + i // 4,
        lambda i: f'"{i // 3},25"',
        lambda i: -0.5 * i,
        lambda i: 20 + i,
    ],
)
def test_numbers_to_predict_are_no_classes(tmp_path, column, value):
    """fastai#1417."""
    write_flat(tmp_path, 12)
    rows = [f'{i}.jpg,{value(i)}' for i in range(12)]
    (tmp_path / 'train.csv').write_text('\n'.join([f'file,{column}', *rows]))
    with rejects(f"the column '{column}' of .* has .* numbers such as"):
        read(tmp_path)


@pytest.mark.parametrize(
    'values', [('0', '1'), ('1.0', '2.0'), ('7', 'cat'), ('0.5 mm', '1 mm'), ('1st', '2nd')]
)
def test_numbers_that_are_names_are_classes(tmp_path, values):
    write_flat(tmp_path, 12)
    rows = [f'{i}.jpg,{values[i % 2]}' for i in range(12)]
    (tmp_path / 'train.csv').write_text('\n'.join(['file,label', *rows]))
    assert read(tmp_path).classes == values


def test_many_numbers_are_classes_if_the_column_says_so(tmp_path):
    write_flat(tmp_path, 24)
    for column in ('label', 'number'):
        rows = [f'{i}.jpg,{i // 2}' for i in range(24)]
        (tmp_path / 'train.csv').write_text('\n'.join([f'file,{column}', *rows]))
        if column == 'label':
            assert len(read(tmp_path).classes) == 12
    with rejects(r'has 12 numbers such as 0, .* classes, call it label'):
        read(tmp_path)


@pytest.mark.parametrize(
    'head',
    [
        '"sep=;"\nfile;label',
        '// by hand\nfile;label',
        'sep=;\nfile;label',
        '# by hand\n# and by me\nfile;label',
        '"file, name";label',
    ],
)
def test_lines_before_the_header_and_commas_in_it(tmp_path, head):
    write_flat(tmp_path, 12)
    rows = [f'{i}.jpg;{"ab"[i % 2]}' for i in range(12)]
    (tmp_path / 'train.csv').write_text('\n'.join([head, *rows]))
    assert read(tmp_path).classes == ('a', 'b')


def test_rows_say_the_part_of_images_with_the_same_names(tmp_path):
    write_flat(tmp_path, 6, 'train')
    write_flat(tmp_path, 4, 'test')
    rows = [
        f'{i}.jpg,{"ab"[i % 2]},{part}'
        for part, count in (('train', 6), ('test', 4))
        for i in range(count)
    ]
    (tmp_path / 'labels.csv').write_text('\n'.join(['file,label,split', *rows]))
    assert {photo.path.parent.name for photo in read(tmp_path).parts['test']} == {'test'}
    (tmp_path / 'labels.csv').write_text(
        '\n'.join(['file,label', *(row.rpartition(',')[0] for row in rows)])
    )
    with rejects(r'labels match several images .*test/0\.jpg and .*train'):
        read(tmp_path)


@pytest.mark.parametrize('title', ['Finding Labels', 'class_name', 'true label'])
def test_titles_that_end_in_the_word(tmp_path, title):
    write_flat(tmp_path, 12)
    rows = [f'{i}.jpg,{"ab"[i % 2]},{i}' for i in range(12)]
    (tmp_path / 'a.csv').write_text('\n'.join([f'Image Index,{title},class_id', *rows]))
    assert read(tmp_path).classes == ('a', 'b')


def test_a_text_has_a_name_and_a_label_on_each_line(tmp_path):
    """As MMPretrain has them."""
    write_flat(tmp_path, 12)
    (tmp_path / 'meta').mkdir()
    (tmp_path / 'meta/train.txt').write_text(
        ''.join(f'{i}.jpg {i // 2}{" or so" * (i > 9)}\n' for i in range(12))
    )
    # In no encoding, as notes may be.
    (tmp_path / 'README.txt').write_bytes('Six kinds é'.encode('utf-16-le') + b'\x81')
    assert read(tmp_path).classes == (*'01234', '5 or so')


def test_a_table_of_which_nothing_is_read_is_named(tmp_path):
    write_flat(tmp_path, 12)
    (tmp_path / 'labels.csv').write_text('id,label\n' + '\n'.join(f'x{i},a' for i in range(12)))
    with rejects(r"labels.csv' is not read, .* such as '0.jpg'"):
        read(tmp_path)


@pytest.mark.parametrize(
    ('header', 'row', 'words'),
    [
        ('image,caption', '{i}.jpg,thing {i}', r'has 12 values in 12 rows such as .*call it label'),
        ('image,label', '{i}.jpg,thing {i}', 'too few images of any class'),
        ('0.jpg,0,0', '{i}.jpg,{i},{i}', 'none of them is called label'),  # no header
        ('0.jpg,0,1', '{i}.jpg,0,1', 'none of them is called label'),
    ],
)
def test_what_is_no_column_of_classes_is_one_sentence(tmp_path, header, row, words):
    write_flat(tmp_path, 12)
    rows = '\n'.join([header, *(row.format(i=i) for i in range(12))])
    (tmp_path / 'a.csv').write_text(rows)
    with rejects(words):
        read(tmp_path)


def test_a_column_of_flags_may_end_in_the_word(tmp_path):
    write_flat(tmp_path, 12)
    rows = [f'{i}.jpg,{i % 2},{1 - i % 2}' for i in range(12)]
    (tmp_path / 'a.csv').write_text('\n'.join(['file,red,other class', *rows]))
    assert read(tmp_path).classes == ('other class', 'red')


def test_a_table_that_is_read_is_not_said_to_be_unread(tmp_path):
    write_flat(tmp_path, 4)
    rows = [f'{i}.jpg,{"aabb"[i]},{("train", "test")[i > 1]}' for i in range(4)]
    (tmp_path / 'labels.csv').write_text('\n'.join(['file,label,split', *rows]))
    with rejects('one class to train on') as error:
        read_class_folders(Tree(tmp_path))
    assert 'labels.csv' not in str(error.value)


def test_a_table_of_splits_is_not_said_to_be_left_out(tmp_path):
    write_flat(tmp_path, 9)
    rows = [f'{i}.jpg,{"ab"[i % 2]}' for i in range(9)]
    (tmp_path / 'labels.csv').write_text('\n'.join(['file,label', *rows]))
    rows = [f'{i}.jpg,{i // 3}' for i in range(9)]
    (tmp_path / 'list_eval_partition.csv').write_text('\n'.join(['image_id,partition', *rows]))
    found = read_class_folders(Tree(tmp_path))
    assert sizes_of(found) == [3, 3, 3]
    assert notes_of(found) == []


ZEROS = 'numbers matched to images or folders whose names have other zeros'


@pytest.mark.parametrize(
    ('image', 'cell', 'count'),
    [('{i:04}', '{i}', 12), ('{i:04}', '{i}.0', 12), ('{i}', '{i}.0', 12), ('{i}', '{i}', 0)],
)
def test_numbers_that_a_table_program_has_changed_find_their_images(tmp_path, image, cell, count):
    write_flat(tmp_path, 12)
    for path in sorted((tmp_path / 'train').iterdir()):
        path.rename(path.with_stem(image.format(i=int(path.stem))))
    rows = [f'{cell.format(i=i)},{("cat", "dog")[i % 2]}' for i in range(12)]
    (tmp_path / 'labels.csv').write_text('\n'.join(['id,label', *rows]))
    found = read(tmp_path)
    wanted = {(image.format(i=i), ('cat', 'dog')[i % 2]) for i in range(12)}
    assert {(one.path.stem, *one.labels) for one in found.train + found.val} == wanted
    assert dict(notes_of(found)).get(ZEROS, 0) == count


def patients(folder: Path, frame: str = 'frame_{i}', place: str = '') -> None:
    """Three images of each of 10 patients in folders of four digits."""
    for patient in range(10):
        write_flat(folder, 3, place=f'{place}{patient:04}')
        for path in [*(folder / f'{place}{patient:04}').iterdir()]:
            path.rename(path.with_stem(frame.format(i=int(path.stem))))


@pytest.mark.parametrize('title', ['patient', 'PatientID', 'id', 'BraTS21ID'])
@pytest.mark.parametrize('cell', ['{i}', '{i}.0'])
@pytest.mark.parametrize('frame', ['frame_{i}', '{i:04}'])
def test_numbers_of_patients_find_their_folders(tmp_path, title, cell, frame):
    patients(tmp_path, frame, 'images/' * (title in ('id', 'BraTS21ID')))
    rows = [f'{cell.format(i=i)},{60 - i},{("cat", "dog")[i // 2 % 2]}' for i in range(10)]
    (tmp_path / 'labels.csv').write_text('\n'.join([f'{title},age,label', *rows]))
    found = read(tmp_path)
    records = found.train + found.val
    assert len(records) == 30
    assert all(
        one.labels == (('cat', 'dog')[int(one.path.parent.name) // 2 % 2],) for one in records
    )
    assert {one.path.parent for one in found.train}.isdisjoint(one.path.parent for one in found.val)
    assert dict(notes_of(found))[ZEROS] == 10


def test_names_of_folders_with_images_of_these_names_are_of_the_folders(tmp_path):
    patients(tmp_path, '{i:04}')
    rows = [f'{i:04},{("cat", "dog")[i % 2]}' for i in range(10)]
    (tmp_path / 'labels.csv').write_text('\n'.join(['patient,label', *rows]))
    found = read(tmp_path)
    assert all(
        one.labels == (('cat', 'dog')[int(one.path.parent.name) % 2],)
        for one in found.train + found.val
    )


def test_folders_that_may_be_classes_beside_a_table_of_them_are_a_question(tmp_path):
    patients(tmp_path)
    rows = [f'{i},{("cat", "dog")[i % 2]}' for i in range(10)]
    (tmp_path / 'labels.csv').write_text('\n'.join(['id,label', *rows]))
    with rejects("put these folders into a folder 'images' next to it"):
        read(tmp_path)


def test_a_table_of_slices_that_names_only_patients_is_refused(tmp_path):
    patients(tmp_path)
    rows = [f'{i // 3},{i % 3},{("cat", "dog")[i % 2]}' for i in range(30)]
    (tmp_path / 'labels.csv').write_text('\n'.join(['patient,slice,label', *rows]))
    with rejects("several rows of the folder '0'.*column file"):
        read(tmp_path)


@pytest.mark.parametrize(
    ('name', 'text'),
    [
        ('classes.txt', 'cat\ndog\n'),
        ('id2label.json', '{"0": "cat", "1": "dog"}'),
        ('names.txt', '0 cat\n1 dog\n'),
    ],
)
def test_numbers_of_classes_are_called_by_the_names_of_a_file(tmp_path, name, text):
    write_flat(tmp_path, 12)
    rows = [f'{i}.jpg,{i % 2}' for i in range(12)]
    (tmp_path / 'labels.csv').write_text('\n'.join(['file,label', *rows]))
    (tmp_path / name).write_text(text)
    found = read(tmp_path)
    assert found.classes == ('cat', 'dog')
    wanted = {(f'{i}', ('cat', 'dog')[i % 2]) for i in range(12)}
    assert {(one.path.stem, *one.labels) for one in found.train + found.val} == wanted
    assert ('class numbers that a file names', 1) in notes_of(found)


def test_names_of_numbers_from_1_are_in_their_order(tmp_path):
    for number in (1, 2, 10):
        write_flat(tmp_path, 3, place=str(number))
    names = {str(number): f'flower {12 - number}' for number in range(1, 11)}
    (tmp_path / 'cat_to_name.json').write_text(json.dumps(names))
    assert read(tmp_path).classes == ('flower 11', 'flower 10', 'flower 2')


def test_too_few_names_are_not_of_the_numbers(tmp_path):
    write_flat(tmp_path, 12)
    rows = [f'{i}.jpg,{i % 3}' for i in range(12)]
    (tmp_path / 'labels.csv').write_text('\n'.join(['file,label', *rows]))
    (tmp_path / 'classes.txt').write_text('cat\ndog\n')
    assert read(tmp_path).classes == ('0', '1', '2')


@pytest.mark.parametrize('value', ['NaN', 'N/A', 'null', '<NA>'])
def test_cells_without_a_value_are_no_class(tmp_path, value):
    write_flat(tmp_path, 12)
    rows = [f'{i}.jpg,{["cat", "dog", value][i % 3]}' for i in range(12)]
    (tmp_path / 'labels.csv').write_text('\n'.join(['file,label', *rows]))
    found = read(tmp_path)
    assert found.classes == ('cat', 'dog')
    assert ('images left out, since a table has no class for them, or two', 4) in notes_of(found)


def test_run_lengths_are_no_classes(tmp_path):
    write_flat(tmp_path, 12)
    rows = [f'{i}.jpg,{i + 1} 10 40 {i + 3}' for i in range(12)]
    (tmp_path / 'train.csv').write_text('\n'.join(['ImageId,EncodedPixels', *rows]))
    with rejects('has run lengths of masks such as .* draw these as masks .*segmentation'):
        read(tmp_path)


def test_a_number_with_two_images_finds_none(tmp_path):
    write_flat(tmp_path, 12)
    for path in sorted((tmp_path / 'train').iterdir()):
        number = int(path.stem) // 2
        path.rename(path.with_stem(f'{number:04}' if int(path.stem) % 2 else f'{number:05}'))
    rows = [f'{i},{("cat", "dog")[i % 2]}' for i in range(6)]
    (tmp_path / 'labels.csv').write_text('\n'.join(['id,label', *rows]))
    with rejects('labels.csv'):
        read(tmp_path)


def test_a_column_of_other_numbers_names_no_images(tmp_path):
    write_flat(tmp_path, 12)
    for path in sorted((tmp_path / 'train').iterdir()):
        path.rename(path.with_stem(f'{int(path.stem):04}'))
    rows = [f'{i},{("cat", "dog")[i % 2]}' for i in range(12)]
    (tmp_path / 'labels.csv').write_text('\n'.join(['age,label', *rows]))
    with rejects('labels.csv'):
        read(tmp_path)


@pytest.mark.parametrize('title', ['patient_id', 'Lesion ID', 'video'])
def test_images_of_one_patient_in_a_table_are_in_one_split(tmp_path, title):
    write_flat(tmp_path, 24)
    rows = [f'{i},p{i // 4},{("cat", "dog")[i % 2]}' for i in range(24)]
    (tmp_path / 'labels.csv').write_text('\n'.join([f'image,{title},label', *rows]))
    found = read(tmp_path)
    train, val = ({int(one.path.stem) // 4 for one in part} for part in (found.train, found.val))
    assert train.isdisjoint(val)
    assert len(val) == 1
    assert ('columns by whose values images are kept in one split', 1) in notes_of(found)


def test_one_patient_of_all_images_is_divided(tmp_path):
    write_flat(tmp_path, 24)
    rows = [f'{i},p,{("cat", "dog")[i % 2]}' for i in range(24)]
    (tmp_path / 'labels.csv').write_text('\n'.join(['image,patient,label', *rows]))
    assert sizes_of(read(tmp_path)) == [22, 2, 0]


def test_a_folder_of_a_numbered_class_is_no_line_of_a_list(tmp_path):
    for number in range(3):
        write_flat(tmp_path, 4, place=str(number))
        for path in [*(tmp_path / str(number)).iterdir()]:
            path.rename(path.with_stem(f'x{path.stem}'))
    (tmp_path / 'classes.txt').write_text('ant\nbee\ncat\n')
    (tmp_path / 'val.txt').write_text('0\n1\n')
    found = read(tmp_path)
    assert found.classes == ('ant', 'bee', 'cat')
    assert found.held_out


def test_images_without_any_class_are_a_sentence(tmp_path):
    write_flat(tmp_path, 12)
    rows = [f'{i}.jpg,0,0' for i in range(12)]
    (tmp_path / 'labels.csv').write_text('\n'.join(['file,a,b', *rows]))
    with rejects('no image of .* to train on has a class'):
        read(tmp_path)
