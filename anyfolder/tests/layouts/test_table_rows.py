"""Rows of tables by the columns that a layout names."""

from rejection import rejects

from anyfolder.layouts.columns import Columns
from anyfolder.layouts.table_rows import rows_in


def rows(tmp_path, text, *order, name='table.txt', **titles):
    """The rows of a table, by the order of its columns or by their titles."""
    file = tmp_path / name
    file.write_text(text)
    return [row for _, row in rows_in(file, Columns(order, titles or None))]


def test_lines_without_the_columns_become_none(tmp_path):
    assert rows(tmp_path, 'a 1 2\nb 1\nc x 2\nd 1 2 3\n', '_', 'x', 'y')[1:] == [None] * 3


def test_rows_below_a_header_may_have_no_box(tmp_path):
    """A row with some of the four numbers is invalid."""
    titles = dict(image='file', left='a', top='b', right='c', bottom='d')
    found = rows(tmp_path, 'file,a,b,c,d\n1.jpg,1,2,3,4\n2.jpg,,,,\n3.jpg,1,,3,4\n', **titles)
    assert found[1:] == [dict(image='2.jpg'), None]
    text = 'file,a,b,c,d,w,h\n1.jpg,,,,,40,30\n2.jpg,1,2,3,4,,\n3.jpg,,,,,40,\n'
    found = rows(tmp_path, text, **titles, image_width='w', image_height='h')
    assert found == [
        dict(image='1.jpg', image_width='40', image_height='30'),
        dict(image='2.jpg', left='1', top='2', right='3', bottom='4'),
        None,
    ]


def test_class_columns_hold_0_and_1(tmp_path):
    (tmp_path / 'a.csv').write_text('image,MEL,NV\n1,1.0,0.0\n2,-1,1\n3,0.4,0\n')
    columns = Columns(titles=dict(image='image'), class_titles=('MEL', 'NV'))
    found = [row for _, row in rows_in(tmp_path / 'a.csv', columns)]
    assert [row and row['classes'] for row in found] == [('MEL',), ('NV',), None]


def test_lines_of_json(tmp_path):
    text = '{"file": "1.jpg", "bbox": [1, 2, 3, 4]}\n{"file": "2.jpg", "bbox": null}\n'
    found = rows(tmp_path, text, image='file', box='bbox', name='metadata.jsonl')
    assert found == [dict(image='1.jpg', box='[1, 2, 3, 4]'), dict(image='2.jpg')]


def test_lines_of_json_without_numbers_in_their_columns_become_none(tmp_path):
    text = '{"file": "1.jpg", "left": " 1"}\n{"file": "2.jpg", "left": "near"}\n'
    found = rows(tmp_path, text, image='file', left='left', name='metadata.jsonl')
    assert found == [dict(image='1.jpg', left='1'), None]


def test_lines_of_json_may_have_no_box(tmp_path):
    text = '{"file": "1.jpg", "left": "", "top": ""}\n{"file": "2.jpg", "left": "1", "top": ""}\n'
    found = rows(tmp_path, text, image='file', left='left', top='top', name='metadata.jsonl')
    assert found == [dict(image='1.jpg'), None]


def test_lines_of_json_with_a_part_of_a_box_become_none(tmp_path):
    box = dict(left='a', top='b', right='c', bottom='d')
    text = '{"a": 1, "b": 2, "c": 3, "d": 4}\n{"a": 1, "b": 2, "c": 3}\n{"d": null}\n'
    found = rows(tmp_path, text, name='boxes.jsonl', **box)
    assert found == [dict(left='1', top='2', right='3', bottom='4'), None, {}]


def test_classes_in_lines_of_json_are_keys_of_0_and_1(tmp_path):
    file = tmp_path / 'a.jsonl'
    file.write_text(
        '{"file": "1", "MEL": 1, "NV": false}\n{"file": "2", "NV": 1.0}\n{"file": "3", "NV": 0.4}\n'
    )
    columns = Columns(titles=dict(image='file'), class_titles=('MEL', 'NV'))
    found = [row and row['classes'] for _, row in rows_in(file, columns)]
    assert found == [('MEL',), ('NV',), None]


def test_lines_of_json_have_no_order_of_columns(tmp_path):
    with rejects(r"a.jsonl' has keys rather than an order of values; write columns as names and"):
        rows(tmp_path, '{"file": "1.jpg"}\n', 'image', name='a.jsonl')


def test_values_and_lines_beyond_a_limit_raise(tmp_path):
    """The limit of values is that of the module csv."""
    with rejects(r"table.txt' is not a table \(field larger than field limit"):
        rows(tmp_path, f'a.jpg,"{"1 2 " * 50_000}"\n', 'image', 'points')
    with rejects('has more than 1,000,000 characters in a line'):
        rows(tmp_path, f'a.jpg {"1 2 " * 300_000}\n', 'image', 'points')
