"""The command anyfolder: what it prints, and its status."""

import json

import pytest
from image_folders import write_coco, write_digits

from anyfolder.__main__ import FORMAT_NAMES, TASK_NAMES, main
from anyfolder.reading import TASKS
from anyfolder.writers.conversion import TARGETS


def tree_of(folder):
    return sorted((path, path.stat().st_mtime_ns) for path in folder.rglob('*'))


def test_check_says_what_a_folder_is_and_writes_nothing(tmp_path, capsys):
    (write_digits(tmp_path) / 'notes.md').write_text('-')
    before = tree_of(tmp_path)
    assert main(['check', str(tmp_path)]) == 0
    assert tree_of(tmp_path) == before
    said, error = capsys.readouterr()
    first, classes, head, train, val, *rest = said.splitlines()
    assert 'folders of classes, for classification, 3 classes, a tenth of the images' in first
    assert classes == 'Classes: digit 0, digit 1, digit 2'
    assert head.split()[:2] == ['images', 'classes']
    assert (train.split()[:3], val.split()[:3]) == (['train', '9', '3'], ['val', '3', '3'])
    assert rest[-1] == '- files left out, .md: 1, the first is notes.md'
    assert error == ''


def test_json_has_the_same(tmp_path, capsys):
    write_coco(tmp_path)
    assert main(['check', str(tmp_path), '--json', '--task', 'detection']) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found['task'], found['format']) == ('detection', 'COCO')
    assert found['classes'] == ['square', 'bar']
    assert found['splits']['train'] == dict(images=9, objects=18, by_class=dict(square=9, bar=9))
    assert found['held_out'] is True
    assert found['notes'][0]['count'] == 1


def test_a_folder_that_is_rejected_is_one_sentence_and_status_1(tmp_path, capsys):
    write_coco(tmp_path)
    file = tmp_path / 'annotations/instances_train2017.json'
    file.write_text(file.read_text().replace('[30, 40, 30, 4]', '[90, 40, 30, 4]'))
    assert main(['check', str(tmp_path), '--json']) == 1
    said, error = capsys.readouterr()
    assert error.startswith('Error: boxes lie outside of their image (10, the first is [90.0, ')
    assert error.endswith('or leave them out by --skip-invalid.\n')
    assert json.loads(said) == dict(error=error[7:-1])
    assert main(['check', str(tmp_path), '--skip-invalid']) == 0


@pytest.mark.parametrize(
    'words',
    [
        '',
        'chek',
        'check',
        'check . --task x',
        'check . --depth-scale 0',
        'check a b',
        'convert . out',
        'convert . --to yolo',
        'convert . out --to tfrecord',
        'show',
    ],
)
def test_a_wrong_call_has_status_2(words, capsys):
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    assert ended.value.code == 2
    assert 'usage: anyfolder' in capsys.readouterr().err


def test_the_names_are_those_that_are_read_and_written():
    assert (*TASKS,) == TASK_NAMES
    assert (*TARGETS,) == FORMAT_NAMES


def test_convert_writes_what_is_read_again(tmp_path, capsys):
    write_coco(tmp_path / 'in')
    before = tree_of(tmp_path / 'in')
    words = ['convert', str(tmp_path / 'in'), str(tmp_path / 'out'), '--to', 'voc']
    assert main([*words, '--task', 'detection']) == 0
    said, error = capsys.readouterr()
    order, first, *_ = said.splitlines()
    assert order.startswith('Pascal VOC has no order of classes')
    assert first == f'{tmp_path / "out"}: Pascal VOC, for detection, 2 classes.'
    assert error == ''
    assert tree_of(tmp_path / 'in') == before
    assert main(['check', str(tmp_path / 'out'), '--json']) == 0
    assert json.loads(capsys.readouterr().out)['splits']['val']['images'] == 1


def test_convert_for_programs(tmp_path, capsys):
    write_digits(tmp_path / 'in')
    words = ['convert', str(tmp_path / 'in'), str(tmp_path / 'out'), '--to', 'csv', '--json']
    assert main([*words, '--copy']) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found['format'], found['changes']) == (
        'images and a table of classes',
        [],
    )
    assert not any(path.is_symlink() for path in (tmp_path / 'out').rglob('*'))
    assert main(words) == 1
    said, error = capsys.readouterr()
    assert json.loads(said)['error'] == error[7:-1]
    assert 'already exists; give a new folder.' in error


def test_flags_are_named_where_a_format_does_not_fit(tmp_path, capsys):
    write_coco(tmp_path / 'in', polygons=True)
    words = ['convert', str(tmp_path / 'in'), str(tmp_path / 'out'), '--to', 'voc']
    assert main(words) == 1
    error = capsys.readouterr().err
    assert error.endswith('only for detection; give --task detection, or another --to.\n')


def test_show_draws_a_sheet_and_writes_nothing_else(tmp_path, capsys, monkeypatch):
    write_digits(tmp_path / 'in')
    (tmp_path / 'here').mkdir()
    monkeypatch.chdir(tmp_path / 'here')
    before = tree_of(tmp_path / 'in')
    assert main(['show', '../in']) == 0
    assert capsys.readouterr().out.endswith('The labels are in in_labels.png.\n')
    assert [path.name for path in (tmp_path / 'here').iterdir()] == ['in_labels.png']
    assert main(['show', '../in', '--out', 'a/b.png', '--json']) == 0
    assert json.loads(capsys.readouterr().out) == dict(picture='a/b.png')
    assert (tmp_path / 'here/a/b.png').read_bytes()[1:4] == b'PNG'
    assert tree_of(tmp_path / 'in') == before


@pytest.mark.parametrize('out', ['in/labels.png', 'in/digit 0/000.png', 'in', 'way/labels.png'])
def test_show_writes_nothing_into_what_it_reads(tmp_path, capsys, out):
    write_digits(tmp_path / 'in')
    (tmp_path / 'way').symlink_to(tmp_path / 'in')
    before = tree_of(tmp_path)
    assert main(['show', str(tmp_path / 'in'), '--out', str(tmp_path / out)]) == 1
    assert 'which is read; give a path outside of it.' in capsys.readouterr().err
    assert tree_of(tmp_path) == before


def test_a_layout_says_what_a_folder_holds(tmp_path, capsys):
    write_digits(tmp_path / 'in')
    (tmp_path / 'is.yaml').write_text("format: folders\nimages: '{class}/{name}.png'\n")
    assert main(['check', str(tmp_path / 'in'), '--layout', str(tmp_path / 'is.yaml')]) == 0
    assert '3 classes' in capsys.readouterr().out
    (tmp_path / 'is.yaml').write_text('formt: folders\n')
    assert main(['check', str(tmp_path / 'in'), '--layout', str(tmp_path / 'is.yaml')]) == 1
    assert 'is.yaml' in capsys.readouterr().err
