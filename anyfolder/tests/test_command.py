"""The command anyfolder: what it prints, and its status."""

import json

import pytest
from image_folders import write_coco, write_digits

from anyfolder.__main__ import TASK_NAMES, main
from anyfolder.reading import TASKS


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
    'words', ['', 'chek', 'check', 'check . --task x', 'check . --depth-scale 0', 'check a b']
)
def test_a_wrong_call_has_status_2(words, capsys):
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    assert ended.value.code == 2
    assert 'usage: anyfolder' in capsys.readouterr().err


def test_the_tasks_are_those_that_are_read():
    assert (*TASKS,) == TASK_NAMES
