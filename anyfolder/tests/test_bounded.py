"""Small files that expand to a lot raise one sentence before they take memory or time."""

import json
import re
from pathlib import Path

import pytest
from rejection import rejects

from anyfolder import limits
from anyfolder.bounded import json_in, read_json, read_xml, read_yaml
from anyfolder.text import LONGEST_IN_LIST, read_lines

# Thirty doublings of a value: of entities in XML, and of aliases and merged mappings in YAML.
LAUGHS = '<!DOCTYPE a [<!ENTITY x0 "x">{}]><a>&x30;</a>'.format(
    ''.join(f'<!ENTITY x{i} "&x{i - 1};&x{i - 1};">' for i in range(1, 31))
)
ALIASES = 'a0: &a0 [x, x]\n' + ''.join(
    f'a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n' for i in range(1, 31)
)
MERGES = 'a0: &a0 {k: x}\n' + ''.join(
    f'a{i}: &a{i} {{<<: [*a{i - 1}, *a{i - 1}]}}\n' for i in range(1, 31)
)


@pytest.mark.parametrize(
    ('name', 'text', 'words'),
    [
        ('x.json', '[' * 100_000 + ']' * 100_000, 'more than 100 levels of JSON'),
        ('x.json', '{"a":' * 200 + '1' + '}' * 200, 'more than 100 levels of JSON'),
        ('x.json', '9' * 10_000, 'not JSON'),
        ('x.json', '[1', 'not JSON'),
        ('x.yaml', ALIASES, 'more than 250,000 values of YAML, including those that its aliases'),
        ('x.yaml', MERGES, 'more than 250,000 values of YAML'),
        ('x.yaml', f'a: &a {"x" * 1_000_000}\nb: [{"*a, " * 100}*a]', 'values of YAML'),
        ('x.yaml', 'a: &a [*a]', 'values of YAML'),
        ('x.yaml', '[' * 200 + ']' * 200, 'more than 100 levels of YAML'),
        ('x.yaml', '[' * 20_000, 'YAML'),
        ('x.yaml', 'a: !!python/object/apply:os.getcwd []', 'not YAML of plain values'),
        ('x.yaml', 'a: 2020-13-40', 'not YAML of plain values'),
        ('x.yaml', 'a: !!bool maybe', 'not YAML of plain values'),
        ('x.yaml', 'a: !!timestamp now', 'not YAML of plain values'),
        ('x.yaml', 'a: !!int ""', 'not YAML of plain values'),
        ('x.yaml', 'a: ' + '9' * 10_000, 'not YAML of plain values'),
        ('x.yaml', 'a: 1' + ':0' * 1001, 'a number of more than 1000 parts with colons'),
        ('x.xml', LAUGHS, 'defines entities'),
        ('x.xml', '<a>' * 200 + '</a>' * 200, 'more than 100 levels of XML'),
        ('x.xml', '<a>', 'not XML'),
    ],
)
def test_small_files_that_expand_to_a_lot_raise(tmp_path, name, text, words):
    (tmp_path / name).write_text(text)
    read = {'.json': read_json, '.yaml': read_yaml, '.xml': read_xml}[(tmp_path / name).suffix]
    with rejects(f'{name}.* {words}'):
        read(tmp_path / name)


@pytest.mark.parametrize(
    ('what', 'read', 'text'),
    [
        ('bytes of JSON', read_json, '[]  '),
        ('lists and objects of JSON', read_json, '[[], [], {}]'),
        ('bytes of YAML', read_yaml, 'a: 1'),
        ('values of YAML', read_yaml, '[1, 2, 3]'),
        ('bytes of XML', read_xml, '<a/>'),
        ('elements of XML', read_xml, '<a><b/><b/><b/></a>'),
        ('bytes of text', read_lines, 'abcd'),
        ('lines', read_lines, 'a\nb\rc\n\n'),
        ('characters in a line', read_lines, 'a\nbcde'),
        (LONGEST_IN_LIST, lambda file: read_lines(file, LONGEST_IN_LIST), 'a\nbcde'),
    ],
)
def test_limits_of_text_files_raise(tmp_path, monkeypatch, what, read, text):
    file = tmp_path / 'x'
    file.write_text(text)
    read(file)
    monkeypatch.setitem(limits.LIMITS, what, 3)
    with rejects(f'has more than 3 {what}'):
        read(file)


def test_nested_and_aliased_files_within_limits_are_read(tmp_path):
    """Brackets within text are not levels."""
    nested = json.loads('[' * 99 + '"[[[[{{{"' + ']' * 99)
    (tmp_path / 'x.json').write_text(json.dumps(nested))
    assert read_json(tmp_path / 'x.json') == nested
    assert json_in('"' + '[' * 1000 + '"', 'x') == '[' * 1000
    (tmp_path / 'x.yaml').write_text('base: &b {lr: 0.1}\nrun:\n  <<: *b\n  names: [no, 1]\n')
    assert read_yaml(tmp_path / 'x.yaml')['run'] == {'lr': 0.1, 'names': [False, 1]}
    assert read_yaml(tmp_path / 'x.yaml', as_text=True)['run']['names'] == ['no', '1']


def test_limits_can_be_raised(monkeypatch):
    monkeypatch.setenv(limits.VARIABLE, '2')
    assert limits.limit('levels of JSON') == 200
    with rejects('more than 200 levels of JSON.* ANYFOLDER_LIMITS=20 in the environment'):
        limits.check_limit('x', 'levels of JSON', 201)
    monkeypatch.setenv(limits.VARIABLE, '1e308')
    limits.check_limit('x', 'bytes of text', 1 << 40)
    monkeypatch.setenv(limits.VARIABLE, 'many')
    with rejects("ANYFOLDER_LIMITS='many' in the environment is not a positive number"):
        limits.limit('levels of JSON')


def test_every_limit_is_in_the_documentation():
    page = Path(limits.__file__).parents[1] / 'docs/data.md'
    if not page.is_file():
        pytest.skip('the page is only in the repository')
    rows = re.findall(r'^\| ([^|]+) \| ([\d,]+) \|$', page.read_text(), re.MULTILINE)
    assert rows == [(what, f'{limit:,}') for what, limit in limits.LIMITS.items()]
