"""Hostile names are escaped in Markdown, HTML, CSV and logs."""

import csv
import io
import logging

import pytest

from vit_plugin.files.untrusted_text import (
    PrintableMessages,
    as_csv,
    as_html,
    csv_cell,
    escape_markdown,
    markdown_code,
    markdown_table,
)


def rendered(text: str) -> str:
    """Render GitHub's Markdown as HTML."""
    parser = pytest.importorskip('markdown_it').MarkdownIt('gfm-like', dict(linkify=False))
    return parser.render(text)


@pytest.mark.parametrize(
    'name',
    [
        '![](https://example.org/beacon.png)',
        '[click](javascript:alert(1))',
        '<img src=x onerror=alert(1)>',
        '<https://example.org>',
        '**bold** _it_ `code` ~~gone~~ # head',
        'a | b',
        '&lt;b&gt; \\',
    ],
)
def test_markdown_shows_names_literally(name):
    shown = rendered(f'Its classes: {escape_markdown(name)}.')
    assert '<' not in shown.removeprefix('<p>').removesuffix('</p>\n')
    # The renderer leaves the quotes that `as_html` escapes.
    assert shown == rendered('x').replace('x', f'Its classes: {as_html(name)}.').replace(
        '&#x27;', "'"
    )
    table = rendered(f'| a | b |\n|---|---|\n| {escape_markdown(name)} | 1 |\n')
    assert table.count('<td>') == 2
    assert '<img' not in table
    assert '<a' not in table


def test_addresses_do_not_become_links():
    assert escape_markdown('https://example.org www.example.org') == (
        r'https\://example.org www\.example.org'
    )


def test_names_do_not_end_inline_code():
    assert markdown_code('a`b\n') == r"`a'b\n`"


@pytest.mark.parametrize(
    ('value', 'cell'),
    [
        ('=HYPERLINK("https://example.org")', '\'=HYPERLINK("https://example.org")'),
        ('@SUM(A1)', "'@SUM(A1)"),
        ('+1+cmd', "'+1+cmd"),
        ('-x.jpg', "'-x.jpg"),
        (' =1+1', "' =1+1"),
        ('\t=1', r'\t=1'),  # without the tab, it is no formula
        ('-1', '-1'),
        ('-1.5e3', '-1.5e3'),
        (-1.5, -1.5),
        (None, None),
        ('a=b', 'a=b'),
    ],
)
def test_cells_are_not_formulas(value, cell):
    assert csv_cell(value) == cell


def test_a_table_has_the_columns_of_all_rows():
    assert as_csv([dict(epoch=1, loss=2.5), {'epoch': 2, 'a,b': 'c"'}]) == (
        'epoch,loss,"a,b"\n1,2.5,\n2,,"c"""\n'
    )


def test_csv_is_read_back():
    rows = [{'class': 'a "b", c', 'n': '1'}, {'class': "=1\n;'", 'n': ''}]
    read = list(csv.DictReader(io.StringIO(as_csv(rows))))
    assert read == [rows[0], {'class': r"'=1\n;'", 'n': ''}]
    assert as_csv(rows[:1], ['n'], with_header=False) == '1\n'


def test_messages_of_logs_are_escaped():
    logger, output = logging.getLogger('test_untrusted_text'), io.StringIO()
    logger.addHandler(logging.StreamHandler(output))
    logger.addFilter(PrintableMessages())
    logger.warning('class %s:\n%d %%', '\x1b[2J', 7)
    assert output.getvalue() == 'class \\x1b[2J:\n7 %\n'


def test_numbers_in_markdown_tables_are_right_aligned():
    rows = [['class', 'images', 'F1'], ['dog', '3', '']]
    table = '| class | images | F1 |\n|---|--:|--:|\n| dog | 3 |  |'
    assert markdown_table(rows, numbers=2) == table
