"""Images and tables of their classes."""

import json
from collections.abc import Iterable
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


def write_table(path: Path, header: str, rows: Iterable[str]) -> None:
    path.write_text('\n'.join([header, *rows]), encoding='utf-8')


@pytest.mark.parametrize(
    ('name', 'header', 'row'),
    [
        ('train.csv', 'id,label', '{i},{c}'),
        ('train/metadata.csv', 'file_name,label', '{i}.jpg,{c}'),
        ('labels.csv', '\ufefffilename;width;class', '{i}.jpg;8;{c}'),
        ('train.csv', ',image,species', '{i}9,train/{i}.jpg,{c}'),
        ('train.tsv', 'label\tpath', '{c}\tC:\\photos\\{i}.jpg'),
        # the first column names images, too, but other ones; only the second has suffixes
        ('train.csv', 'id,picture,label', '{j},{i}.jpg,{c}'),
        ('train.csv', 'nr,photo,label', '{j},{i}.jpg,{c}'),
        # of two columns without suffixes, the likelier title counts, whatever the order
        ('train.csv', 'id,file,label', '{j},{i},{c}'),
        ('train.csv', 'name,Image_ID,label', '{j},{i},{c}'),
        ('train.csv', 'id,image,label', '000{j},000{i},{c}'),
        # the index is also the name of another image
        ('train.csv', 'Unnamed: 0,picture,y', '{j},{i},{c}'),
        ('train.csv', '"name";"labels";"weight"', '"{i}.jpg";"{c}";"1,5"'),
    ],
)
def test_classes_come_from_a_table(tmp_path, name, header, row):
    """``row`` has the image's number ``i``, another number ``j`` and the class ``c``."""
    write_flat(tmp_path, 12)
    lines = [row.format(i=i, j=11 - i, c=('cat', 'dog')[i % 2]) for i in range(12)]
    (tmp_path / name).write_text('\r\n'.join([header, *lines]), encoding='utf-8')
    listing = read(tmp_path)
    assert listing.classes == ('cat', 'dog')
    assert not listing.multi_label
    assert listing.held_out
    wanted = {(f'{i}.jpg', ('cat', 'dog')[i % 2]) for i in range(12)}
    assert {(record.path.name, *record.labels) for record in listing.train + listing.val} == wanted


def test_split_column_is_read(tmp_path):
    write_flat(tmp_path, 12, subfolder='images')
    rows = [f'{i}.jpg,{"ab"[i % 2]},{"train" if i < 8 else "test"}' for i in range(12)]
    write_table(tmp_path / 'labels.csv', 'file,label,split', rows)
    assert [len(part) for part in read(tmp_path).parts.values()] == [6, 2, 4]


@pytest.mark.parametrize(
    ('header', 'row'),
    [
        ('file,labels', '{i}.jpg,{several}'),
        ('filename, red, green', '{i}.jpg, {red}, {green}'),
    ],
)
def test_images_may_have_several_classes(tmp_path, header, row):
    write_flat(tmp_path, 12)
    rows, wanted = [], {}
    for i in range(12):
        flags = dict(red=i % 2, green=int(i % 3 == 0))
        classes = [name for name, flag in flags.items() if flag]
        rows.append(row.format(i=i, several='|'.join(classes), **flags))
        wanted[str(i)] = {*classes}
    (tmp_path / 'train/_classes.csv').write_text('\n'.join([header, *rows]))
    listing = read(tmp_path)
    assert listing.multi_label
    assert listing.classes == ('green', 'red')
    assert any('(multi-label)' in what for what, _, _ in listing.findings.rows())
    labels = {record.path.stem: {*record.labels} for record in listing.train + listing.val}
    assert labels == wanted


@pytest.mark.parametrize('as_flag', [int, float, bool])
def test_class_columns_with_one_class_per_image_are_not_multi_label(tmp_path, as_flag):
    write_flat(tmp_path, 12)
    rows = [f'{i},{i}.jpg,{as_flag(i % 2)},{as_flag(1 - i % 2)}' for i in range(12)]
    write_table(tmp_path / 'train/_classes.csv', ',filename,odd,even', rows)
    listing = read(tmp_path)
    assert (listing.classes, listing.multi_label) == (('even', 'odd'), False)


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
def test_labels_are_split_at_their_separators(tmp_path, header, values, classes):
    write_flat(tmp_path, 12)
    rows = [f'{i}.jpg,{values[i % len(values)]}' for i in range(12)]
    write_table(tmp_path / 'train.csv', f'image,{header}', rows)
    assert {*read(tmp_path).classes} == classes


@pytest.mark.parametrize('value', ['', 'nan'])
def test_a_row_without_a_label_is_left_out(tmp_path, value):
    write_flat(tmp_path, 12)
    rows = [f'{i}.jpg,{"ab"[i % 2] if i else value}' for i in range(12)]
    write_table(tmp_path / 'train.csv', 'image,label', rows)
    listing = read(tmp_path)
    assert (listing.classes, listing.multi_label) == (('a', 'b'), False)
    assert ('images left out, since a table has no class for them, or two', 1) in notes_of(listing)


def test_table_without_a_header_is_read(tmp_path):
    write_flat(tmp_path, 12)
    (tmp_path / 'train.csv').write_text('\n'.join(f'{i}.jpg,{"ab"[i % 2]}' for i in range(12)))
    assert len(read(tmp_path).train) == 10


def test_boolean_split_column_is_read(tmp_path):
    write_flat(tmp_path, 12)
    rows = [f'{i}.jpg,{"ab"[i % 2]},{i > 7}' for i in range(12)]
    write_table(tmp_path / 'train.csv', 'image,label,is_valid', rows)
    assert [len(part) for part in read(tmp_path).parts.values()] == [8, 4, 0]


def write_second_table(folder: Path, header: str, row: str) -> None:
    """Images of the classes 0 and 1, and another table, with the numbers 0 and 1."""
    write_flat(folder, 12)
    write_table(folder / 'a.csv', 'id,label', (f'{i},{i % 2}' for i in range(12)))
    write_table(folder / 'b.csv', header, (row.format(i=i) for i in range(2)))


def test_tables_are_compared_by_the_classes_of_all_rows_of_an_image(tmp_path):
    write_flat(tmp_path, 12)
    one_row = [f'{i},a b' if i < 6 else f'{i},a' for i in range(12)]
    two_rows = [f'{i},{name}' for i in range(6) for name in 'ba']
    write_table(tmp_path / 'a.csv', 'id,labels', one_row)
    write_table(tmp_path / 'b.csv', 'id,labels', two_rows)
    records = [record for part in read(tmp_path).parts.values() for record in part]
    labels = {record.path.stem: record.labels for record in records}
    assert labels == {str(i): ('a', 'b') if i < 6 else ('a',) for i in range(12)}
    write_table(tmp_path / 'b.csv', 'id,labels', two_rows[:-1])
    with rejects('have different classes for .*5'):
        read(tmp_path)


@pytest.mark.parametrize('header', ['label,name', 'id,name'])
def test_table_of_class_names_is_not_taken_for_labels(tmp_path, header):
    write_second_table(tmp_path, header, '{i},word')
    assert read(tmp_path).classes == ('0', '1')


@pytest.mark.parametrize(
    ('header', 'row', 'words'),
    [
        ('id,label', '{i},word', 'have different classes for'),
        ('filename,class,xmin,ymin,xmax,ymax', '{i}.jpg,a,1,1,5,5', 'has boxes in the column'),
    ],
)
def test_contradicting_tables_and_tables_of_boxes_raise(tmp_path, header, row, words):
    write_second_table(tmp_path, header, row)
    with rejects(words):
        read(tmp_path)


def test_lines_of_json_are_read(tmp_path):
    """Hugging Face's ``metadata.jsonl``."""
    write_flat(tmp_path, 12)
    rows = [json.dumps(dict(file_name=f'{i}.jpg', label='ab'[i % 2])) for i in range(12)]
    (tmp_path / 'train/metadata.jsonl').write_text('\n'.join(rows))
    assert read(tmp_path).classes == ('a', 'b')
    rows = [json.dumps(dict(file_name=f'{i}.jpg', labels=['a', 'b'][: i % 3])) for i in range(12)]
    (tmp_path / 'train/metadata.jsonl').write_text('\n'.join(rows))
    assert read(tmp_path).multi_label


@pytest.mark.parametrize('unlabeled', [0, 11])
def test_lines_of_json_may_lack_a_key(tmp_path, unlabeled):
    write_flat(tmp_path, 12)
    rows = [{'file_name': f'train/{i}.jpg', 'label': 'ab'[i % 2]} for i in range(12)]
    del rows[unlabeled]['label']
    (tmp_path / 'metadata.jsonl').write_text('\n'.join(map(json.dumps, rows)))
    listing = read(tmp_path)
    assert len(listing.train + listing.val) == 11
    assert listing.classes == ('a', 'b')


@pytest.mark.parametrize('title', ['train_or_test', 'TRAIN'])
def test_names_of_splits_count_in_a_column_of_any_title(tmp_path, title):
    write_flat(tmp_path, 12)
    rows = [f'{"train" if i < 8 else "test"},{i}.jpg,{"ab"[i % 2]}' for i in range(12)]
    write_table(tmp_path / 'labels.csv', f'{title},file,label', rows)
    assert [len(part) for part in read(tmp_path).parts.values()] == [6, 2, 4]


def test_rows_without_their_image_are_reported(tmp_path):
    write_flat(tmp_path, 12)
    rows = [f'{i},{"ab"[i % 2]}' for i in range(15)]
    write_table(tmp_path / 'train.csv', 'id,label', rows)
    assert read(tmp_path).findings.rows() == [
        ('rows of train.csv left out, since their image is missing', 3, ['12', '13', '14'])
    ]


def test_row_with_more_values_than_the_header_raises(tmp_path):
    write_flat(tmp_path, 12)
    rows = [f'{i}.jpg,cat,' for i in range(12)]  # a further value may be empty
    rows[3] = '3.jpg,cat,dog,'
    write_table(tmp_path / 'train.csv', 'file,label', rows)
    with rejects(r"row 5 of .*train\.csv' has more values than the header, such as 'dog'"):
        read(tmp_path)


def test_table_without_a_label_column_raises_with_its_columns(tmp_path):
    write_flat(tmp_path, 12)
    write_table(tmp_path / 'train.csv', 'id,lens,place', (f'{i},wide,home' for i in range(12)))
    with rejects('has the columns id, lens, place, but none of them is called label; rename'):
        read(tmp_path)


def test_tables_of_kaggle_for_test_images_are_left_out(tmp_path):
    write_flat(tmp_path, 12)
    write_flat(tmp_path, 12, subfolder='test')
    rows = [f'train/{i}.jpg,{"ab"[i % 2]}' for i in range(12)]
    write_table(tmp_path / 'train.csv', 'id,label', rows)
    write_table(tmp_path / 'test.csv', 'id', (f'test/{i}.jpg' for i in range(12)))
    rows = [f'test/{i}.jpg,a' for i in range(12)]
    write_table(tmp_path / 'sample_submission.csv', 'id,label', rows)
    listing = read(tmp_path)
    assert sizes_of(listing) == [10, 2, 0]
    assert notes_of(listing) == [
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
def test_names_of_two_words_are_not_two_labels(tmp_path, header, values, classes):
    """Four values are four names, and six values are combinations of three labels."""
    write_flat(tmp_path, 12)
    rows = [f'{i}.jpg,{values[i % len(values)]}' for i in range(12)]
    write_table(tmp_path / 'train.csv', f'image,{header}', rows)
    listing = read(tmp_path)
    assert len(listing.classes) == classes
    assert listing.multi_label == (classes == 3)
    notes = [what for what, _, _ in listing.findings.rows()]
    assert any('use | to be sure' in what for what in notes) == listing.multi_label
    assert any('each taken as one name; use |' in what for what in notes) != listing.multi_label


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
def test_numbers_to_predict_raise(tmp_path, column, value):
    """fastai#1417."""
    write_flat(tmp_path, 12)
    rows = [f'{i}.jpg,{value(i)}' for i in range(12)]
    write_table(tmp_path / 'train.csv', f'file,{column}', rows)
    with rejects(f"the column '{column}' of .* has .* numbers such as"):
        read(tmp_path)


@pytest.mark.parametrize(
    'values', [('0', '1'), ('1.0', '2.0'), ('7', 'cat'), ('0.5 mm', '1 mm'), ('1st', '2nd')]
)
def test_numbers_that_are_names_are_classes(tmp_path, values):
    write_flat(tmp_path, 12)
    rows = [f'{i}.jpg,{values[i % 2]}' for i in range(12)]
    write_table(tmp_path / 'train.csv', 'file,label', rows)
    assert read(tmp_path).classes == values


def test_many_numbers_are_classes_only_in_a_label_column(tmp_path):
    write_flat(tmp_path, 24)
    rows = [f'{i}.jpg,{i // 2}' for i in range(24)]
    write_table(tmp_path / 'train.csv', 'file,label', rows)
    assert len(read(tmp_path).classes) == 12
    write_table(tmp_path / 'train.csv', 'file,number', rows)
    with rejects(r'has 12 numbers such as 0, .* classes, call it label'):
        read(tmp_path)


@pytest.mark.parametrize(
    'header',
    [
        '"sep=;"\nfile;label',
        '// by hand\nfile;label',
        'sep=;\nfile;label',
        '# by hand\n# and by me\nfile;label',
        '"file, name";label',
    ],
)
def test_lines_before_the_header_and_commas_in_it_are_read(tmp_path, header):
    write_flat(tmp_path, 12)
    rows = [f'{i}.jpg;{"ab"[i % 2]}' for i in range(12)]
    write_table(tmp_path / 'train.csv', header, rows)
    assert read(tmp_path).classes == ('a', 'b')


def test_split_column_tells_images_of_the_same_name_apart(tmp_path):
    write_flat(tmp_path, 6, 'train')
    write_flat(tmp_path, 4, 'test')
    rows = [f'{i}.jpg,{"ab"[i % 2]},train' for i in range(6)]
    rows += [f'{i}.jpg,{"ab"[i % 2]},test' for i in range(4)]
    write_table(tmp_path / 'labels.csv', 'file,label,split', rows)
    assert {record.path.parent.name for record in read(tmp_path).parts['test']} == {'test'}
    rows_without_split = [row.rpartition(',')[0] for row in rows]
    write_table(tmp_path / 'labels.csv', 'file,label', rows_without_split)
    with rejects(r'labels match several images .*test/0\.jpg and .*train'):
        read(tmp_path)


@pytest.mark.parametrize('title', ['Finding Labels', 'class_name', 'true label'])
def test_label_column_may_have_a_title_that_ends_in_label_or_name(tmp_path, title):
    write_flat(tmp_path, 12)
    rows = [f'{i}.jpg,{"ab"[i % 2]},{i}' for i in range(12)]
    write_table(tmp_path / 'a.csv', f'Image Index,{title},class_id', rows)
    assert read(tmp_path).classes == ('a', 'b')


def test_text_may_have_a_name_and_a_label_on_each_line(tmp_path):
    """As in MMPretrain."""
    write_flat(tmp_path, 12)
    (tmp_path / 'meta').mkdir()
    labels = [*'0011223344', '5 or so', '5 or so']
    lines = [f'{i}.jpg {label}' for i, label in enumerate(labels)]
    (tmp_path / 'meta/train.txt').write_text('\n'.join(lines))
    # Notes may be in no valid encoding.
    (tmp_path / 'README.txt').write_bytes('Six kinds é'.encode('utf-16-le') + b'\x81')
    assert read(tmp_path).classes == (*'01234', '5 or so')


def test_table_that_names_no_image_raises(tmp_path):
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
def test_tables_without_a_column_of_classes_raise(tmp_path, header, row, words):
    write_flat(tmp_path, 12)
    rows = '\n'.join([header, *(row.format(i=i) for i in range(12))])
    (tmp_path / 'a.csv').write_text(rows)
    with rejects(words):
        read(tmp_path)


def test_class_columns_may_have_a_title_that_ends_in_class(tmp_path):
    write_flat(tmp_path, 12)
    rows = [f'{i}.jpg,{i % 2},{1 - i % 2}' for i in range(12)]
    write_table(tmp_path / 'a.csv', 'file,red,other class', rows)
    assert read(tmp_path).classes == ('other class', 'red')


def test_error_does_not_mention_a_table_that_was_read(tmp_path):
    write_flat(tmp_path, 4)
    rows = ['0.jpg,a,train', '1.jpg,a,train', '2.jpg,b,test', '3.jpg,b,test']
    write_table(tmp_path / 'labels.csv', 'file,label,split', rows)
    with rejects('one class to train on') as error:
        read_class_folders(Tree(tmp_path))
    assert 'labels.csv' not in str(error.value)


def test_table_of_splits_is_not_reported_as_left_out(tmp_path):
    write_flat(tmp_path, 9)
    rows = [f'{i}.jpg,{"ab"[i % 2]}' for i in range(9)]
    write_table(tmp_path / 'labels.csv', 'file,label', rows)
    rows = [f'{i}.jpg,{i // 3}' for i in range(9)]
    write_table(tmp_path / 'list_eval_partition.csv', 'image_id,partition', rows)
    listing = read_class_folders(Tree(tmp_path))
    assert sizes_of(listing) == [3, 3, 3]
    assert notes_of(listing) == []


# The finding on numbers whose leading zeros were lost.
ZEROS = 'numbers matched to images or folders whose names have other zeros'


@pytest.mark.parametrize(
    ('image', 'cell', 'count'),
    [('{i:04}', '{i}', 12), ('{i:04}', '{i}.0', 12), ('{i}', '{i}.0', 12), ('{i}', '{i}', 0)],
)
def test_numbers_changed_by_a_spreadsheet_find_their_images(tmp_path, image, cell, count):
    write_flat(tmp_path, 12)
    for path in sorted((tmp_path / 'train').iterdir()):
        path.rename(path.with_stem(image.format(i=int(path.stem))))
    rows = [f'{cell.format(i=i)},{("cat", "dog")[i % 2]}' for i in range(12)]
    write_table(tmp_path / 'labels.csv', 'id,label', rows)
    listing = read(tmp_path)
    wanted = {(image.format(i=i), ('cat', 'dog')[i % 2]) for i in range(12)}
    assert {(record.path.stem, *record.labels) for record in listing.train + listing.val} == wanted
    assert dict(notes_of(listing)).get(ZEROS, 0) == count


def write_patients(folder: Path, frame: str = 'frame_{i}', prefix: str = '') -> None:
    """Three images of each of 10 patients, in folders ``<prefix>0000`` to ``<prefix>0009``."""
    for patient in range(10):
        write_flat(folder, 3, subfolder=f'{prefix}{patient:04}')
        for path in [*(folder / f'{prefix}{patient:04}').iterdir()]:
            path.rename(path.with_stem(frame.format(i=int(path.stem))))


@pytest.mark.parametrize('title', ['patient', 'PatientID', 'id', 'BraTS21ID'])
@pytest.mark.parametrize('cell', ['{i}', '{i}.0'])
@pytest.mark.parametrize('frame', ['frame_{i}', '{i:04}'])
def test_patient_numbers_find_their_folders(tmp_path, title, cell, frame):
    is_ambiguous = title in ('id', 'BraTS21ID')  # the folders could be classes
    write_patients(tmp_path, frame, 'images/' if is_ambiguous else '')
    rows = [f'{cell.format(i=i)},{60 - i},{("cat", "dog")[i // 2 % 2]}' for i in range(10)]
    write_table(tmp_path / 'labels.csv', f'{title},age,label', rows)
    listing = read(tmp_path)
    records = listing.train + listing.val
    assert len(records) == 30
    for record in records:
        patient = int(record.path.parent.name)
        assert record.labels == (('cat', 'dog')[patient // 2 % 2],)
    train, val = ({record.path.parent for record in part} for part in (listing.train, listing.val))
    assert train.isdisjoint(val)
    assert dict(notes_of(listing))[ZEROS] == 10


def test_patient_numbers_name_folders_rather_than_images(tmp_path):
    write_patients(tmp_path, '{i:04}')
    rows = [f'{i:04},{("cat", "dog")[i % 2]}' for i in range(10)]
    write_table(tmp_path / 'labels.csv', 'patient,label', rows)
    listing = read(tmp_path)
    for record in listing.train + listing.val:
        patient = int(record.path.parent.name)
        assert record.labels == (('cat', 'dog')[patient % 2],)


def test_folders_that_may_be_classes_next_to_a_table_of_them_raise(tmp_path):
    write_patients(tmp_path)
    rows = [f'{i},{("cat", "dog")[i % 2]}' for i in range(10)]
    write_table(tmp_path / 'labels.csv', 'id,label', rows)
    with rejects("put these folders into a folder 'images' next to it"):
        read(tmp_path)


def test_table_of_slices_that_names_only_patients_raises(tmp_path):
    write_patients(tmp_path)
    rows = [f'{i // 3},{i % 3},{("cat", "dog")[i % 2]}' for i in range(30)]
    write_table(tmp_path / 'labels.csv', 'patient,slice,label', rows)
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
def test_class_numbers_get_their_names_from_a_file(tmp_path, name, text):
    write_flat(tmp_path, 12)
    rows = [f'{i}.jpg,{i % 2}' for i in range(12)]
    write_table(tmp_path / 'labels.csv', 'file,label', rows)
    (tmp_path / name).write_text(text)
    listing = read(tmp_path)
    assert listing.classes == ('cat', 'dog')
    wanted = {(f'{i}', ('cat', 'dog')[i % 2]) for i in range(12)}
    assert {(record.path.stem, *record.labels) for record in listing.train + listing.val} == wanted
    assert ('class numbers that a file names', 1) in notes_of(listing)


def test_numbers_of_many_digits_are_not_those_of_classes(tmp_path):
    """Python does not convert them."""
    write_flat(tmp_path, 12)
    write_table(tmp_path / 'labels.csv', 'file,label', (f'{i}.jpg,{i % 2}' for i in range(12)))
    (tmp_path / 'names.json').write_text(json.dumps({'9' * 5000: 'cat'}))
    assert read(tmp_path).classes == ('0', '1')


def test_class_names_are_in_the_order_of_their_numbers(tmp_path):
    for number in (1, 2, 10):
        write_flat(tmp_path, 3, subfolder=str(number))
    names = {str(number): f'flower {12 - number}' for number in range(1, 11)}
    (tmp_path / 'cat_to_name.json').write_text(json.dumps(names))
    assert read(tmp_path).classes == ('flower 11', 'flower 10', 'flower 2')


def test_too_few_class_names_are_ignored(tmp_path):
    write_flat(tmp_path, 12)
    rows = [f'{i}.jpg,{i % 3}' for i in range(12)]
    write_table(tmp_path / 'labels.csv', 'file,label', rows)
    (tmp_path / 'classes.txt').write_text('cat\ndog\n')
    assert read(tmp_path).classes == ('0', '1', '2')


@pytest.mark.parametrize('value', ['NaN', 'N/A', 'null', '<NA>'])
def test_missing_values_are_not_classes(tmp_path, value):
    write_flat(tmp_path, 12)
    rows = [f'{i}.jpg,{["cat", "dog", value][i % 3]}' for i in range(12)]
    write_table(tmp_path / 'labels.csv', 'file,label', rows)
    listing = read(tmp_path)
    assert listing.classes == ('cat', 'dog')
    assert ('images left out, since a table has no class for them, or two', 4) in notes_of(listing)


def test_run_lengths_raise(tmp_path):
    write_flat(tmp_path, 12)
    rows = [f'{i}.jpg,{i + 1} 10 40 {i + 3}' for i in range(12)]
    write_table(tmp_path / 'train.csv', 'ImageId,EncodedPixels', rows)
    with rejects('has run lengths of masks such as .* draw these as masks .*segmentation'):
        read(tmp_path)


def test_number_that_matches_two_images_raises(tmp_path):
    write_flat(tmp_path, 12)
    for path in sorted((tmp_path / 'train').iterdir()):
        number = int(path.stem) // 2
        path.rename(path.with_stem(f'{number:04}' if int(path.stem) % 2 else f'{number:05}'))
    rows = [f'{i},{("cat", "dog")[i % 2]}' for i in range(6)]
    write_table(tmp_path / 'labels.csv', 'id,label', rows)
    with rejects('labels.csv'):
        read(tmp_path)


def test_numbers_in_a_column_of_ages_do_not_name_images(tmp_path):
    write_flat(tmp_path, 12)
    for path in sorted((tmp_path / 'train').iterdir()):
        path.rename(path.with_stem(f'{int(path.stem):04}'))
    rows = [f'{i},{("cat", "dog")[i % 2]}' for i in range(12)]
    write_table(tmp_path / 'labels.csv', 'age,label', rows)
    with rejects('labels.csv'):
        read(tmp_path)


@pytest.mark.parametrize('title', ['patient_id', 'Lesion ID', 'video'])
def test_images_of_one_patient_in_a_table_are_in_one_split(tmp_path, title):
    write_flat(tmp_path, 24)
    rows = [f'{i},p{i // 4},{("cat", "dog")[i % 2]}' for i in range(24)]
    write_table(tmp_path / 'labels.csv', f'image,{title},label', rows)
    listing = read(tmp_path)
    train, val = (
        {int(record.path.stem) // 4 for record in part} for part in (listing.train, listing.val)
    )
    assert train.isdisjoint(val)
    assert len(val) == 1
    assert ('columns by whose values images are kept in one split', 1) in notes_of(listing)


def test_image_of_two_patients_is_reported(tmp_path):
    write_flat(tmp_path, 24)
    rows = [f'{i},p{i // 4},{("cat", "dog")[i % 2]}' for i in range(24)]
    write_table(tmp_path / 'labels.csv', 'image,patient,label', [*rows, '0,p5,cat', '1,p0,dog'])
    what = 'images of several patients or other groups, kept with the first'
    assert dict(notes_of(read(tmp_path)))[what] == 1


def test_images_of_a_single_patient_are_divided(tmp_path):
    write_flat(tmp_path, 24)
    rows = [f'{i},p,{("cat", "dog")[i % 2]}' for i in range(24)]
    write_table(tmp_path / 'labels.csv', 'image,patient,label', rows)
    assert sizes_of(read(tmp_path)) == [22, 2, 0]


def test_list_of_class_numbers_does_not_name_folders(tmp_path):
    for number in range(3):
        write_flat(tmp_path, 4, subfolder=str(number))
        for path in [*(tmp_path / str(number)).iterdir()]:
            path.rename(path.with_stem(f'x{path.stem}'))
    (tmp_path / 'classes.txt').write_text('ant\nbee\ncat\n')
    (tmp_path / 'val.txt').write_text('0\n1\n')
    listing = read(tmp_path)
    assert listing.classes == ('ant', 'bee', 'cat')
    assert listing.held_out


def test_images_without_any_class_raise(tmp_path):
    write_flat(tmp_path, 12)
    rows = [f'{i}.jpg,0,0' for i in range(12)]
    write_table(tmp_path / 'labels.csv', 'file,a,b', rows)
    with rejects('no image of .* to train on has a class'):
        read(tmp_path)


@pytest.mark.parametrize(
    ('tables', 'repeated'),
    [
        ({'labels.csv': range(12), 'val.csv': range(8, 12)}, 0),
        ({'train.csv': range(9), 'val.csv': range(8, 12)}, 1),
        ({'test.csv': range(8, 12), 'train.csv': range(9)}, 1),
    ],
)
def test_split_of_a_further_table_counts(tmp_path, tables, repeated):
    write_flat(tmp_path, 12, subfolder='images')
    for name, images in tables.items():
        write_table(tmp_path / name, 'file,label', (f'{i}.jpg,{"ab"[i % 2]}' for i in images))
    listing = read(tmp_path)
    others = listing.parts['test' if 'test.csv' in tables else 'val']
    assert {int(record.path.stem) for record in others} == {8, 9, 10, 11}
    assert not {8, 9, 10, 11} & {int(record.path.stem) for record in listing.train}
    what = 'images in several splits, left out of training'
    assert dict(notes_of(listing)).get(what, 0) == repeated


def test_patients_of_a_further_table_stay_in_one_split(tmp_path):
    write_flat(tmp_path, 24)
    rows = [(f'{i}', f'p{i // 4}', ('cat', 'dog')[i % 2]) for i in range(24)]
    write_table(tmp_path / 'a.csv', 'image,label', (f'{row[0]},{row[2]}' for row in rows))
    write_table(tmp_path / 'b.csv', 'image,patient,label', map(','.join, rows))
    listing = read(tmp_path)
    train, val = (
        {int(record.path.stem) // 4 for record in part} for part in (listing.train, listing.val)
    )
    assert train.isdisjoint(val)
