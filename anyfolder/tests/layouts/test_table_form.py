"""The separator, the header and the columns of a table are detected from its first lines."""

import pytest
from rejection import rejects

from anyfolder.layouts.columns import Columns
from anyfolder.layouts.table_rows import rows_in


def rows(tmp_path, text, *order, name='table.txt', **titles):
    """The rows of a table, by the order of its columns or by their titles."""
    file = tmp_path / name
    file.write_text(text)
    return [row for _, row in rows_in(file, Columns(order, titles or None))]


@pytest.mark.parametrize('separator', [',', ';', '\t', '|', ' ', '   '])
def test_common_separators_are_recognized(tmp_path, separator):
    text = separator.join(['a.jpg', '1', '2', '3', '4']) + '\n'
    [row] = rows(tmp_path, text, 'image', 'left', 'top', 'right', '_')
    assert row == dict(image='a.jpg', left='1', top='2', right='3')


def test_lines_above_the_first_row_are_a_heading(tmp_path):
    text = '# comment\n202599\nname x y\na.jpg 1 2\n\nb.jpg 3 4\n'
    assert [row['image'] for row in rows(tmp_path, text, 'image', 'x', 'y')] == ['a.jpg', 'b.jpg']


def test_last_column_takes_the_remainder_of_a_line(tmp_path):
    assert rows(tmp_path, '1 traffic light\n', 'code', 'name') == [
        dict(code='1', name='traffic light')
    ]
    assert rows(tmp_path, '3 0.1 0.2 0.3 0.4 0.5 0.6\n', 'class', 'points') == [
        {'class': '3', 'points': '0.1 0.2 0.3 0.4 0.5 0.6'}
    ]
    assert rows(tmp_path, '3 1 2 3 4 9 9\n', 'class', 'x', 'y', 'width', 'height', '...') == [
        {'class': '3', 'x': '1', 'y': '2', 'width': '3', 'height': '4'}
    ]
    assert rows(tmp_path, 'a.jpg 1 2\n', 'image', '...') == [dict(image='a.jpg')]
    assert rows(tmp_path, 'my photo.jpg,1\n', 'image', '...') == [dict(image='my photo.jpg')]


def test_trailing_comma_is_not_a_value(tmp_path):
    assert rows(tmp_path, '1,2,3,4,\n', 'x', 'y', 'width', 'height')


def test_titles_of_a_header(tmp_path):
    text = 'sep=;\nlesion;"the image";dx\nA;1.jpg;nv\nB;2.jpg\n'
    found = rows(tmp_path, text, **{'image': 'the image', 'class': 'dx'}, name='a.csv')
    assert found == [{'image': '1.jpg', 'class': 'nv'}, {'image': '2.jpg', 'class': ''}]


def test_missing_title_raises_with_the_nearest_one(tmp_path):
    with rejects(r"has no column 'dx', but 'file', 'dxx'; did you mean 'dxx'\?"):
        rows(tmp_path, 'file,dxx\n1.jpg,nv\n', **{'image': 'file', 'class': 'dx'})


def test_file_without_the_columns_raises(tmp_path):
    with rejects(r"has no line with the columns class, x, y, but lines such as 'a b c d'"):
        rows(tmp_path, 'a b c d\n', 'class', 'x', 'y')


def test_header_may_begin_with_the_mark_of_a_comment(tmp_path):
    titles = {'image': '#filename', 'class': 'kind'}
    found = rows(tmp_path, '# by VIA\n#filename,kind\n1.jpg,cat\n', **titles)
    assert found == [{'image': '1.jpg', 'class': 'cat'}]
