"""The command anyfolder: its output and its exit status."""

import io
import json

import numpy as np
import pytest
from image_folders import write_coco, write_digits
from PIL import Image

from anyfolder.__main__ import FORMAT_NAMES, TASK_NAMES, main
from anyfolder.reading import TASKS
from anyfolder.writers.targets import TARGETS


def tree_of(folder):
    """All paths in a folder, with the times at which they were changed."""
    return sorted((path, path.stat().st_mtime_ns) for path in folder.rglob('*'))


def test_check_describes_a_folder_and_writes_nothing(tmp_path, capsys):
    (write_digits(tmp_path) / 'notes.md').write_text('-')
    before = tree_of(tmp_path)
    assert main(['check', str(tmp_path)]) == 0
    assert tree_of(tmp_path) == before
    output, error = capsys.readouterr()
    summary, classes, header, train, val, *notes = output.splitlines()
    assert 'folders of classes, for classification, 3 classes, a tenth of the images' in summary
    assert classes == 'Classes: digit 0, digit 1, digit 2'
    assert header.split()[:2] == ['images', 'classes']
    assert (train.split()[:3], val.split()[:3]) == (['train', '9', '3'], ['val', '3', '3'])
    assert notes[-1] == '- files left out, .md: 1, the first is notes.md'
    assert error == ''


def test_check_prints_json(tmp_path, capsys):
    write_coco(tmp_path)
    assert main(['check', str(tmp_path), '--json', '--task', 'detection']) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed['task'], printed['format']) == ('detection', 'COCO')
    assert printed['classes'] == ['square', 'bar']
    assert printed['splits']['train'] == dict(images=9, objects=18, by_class=dict(square=9, bar=9))
    assert printed['held_out'] is True
    assert printed['notes'][0]['count'] == 1


def test_rejected_folder_prints_one_sentence_and_returns_1(tmp_path, capsys):
    write_coco(tmp_path)
    file = tmp_path / 'annotations/instances_train2017.json'
    file.write_text(file.read_text().replace('[30, 40, 30, 4]', '[90, 40, 30, 4]'))
    assert main(['check', str(tmp_path), '--json']) == 1
    output, error = capsys.readouterr()
    assert error.startswith('Error: boxes lie outside of their image (10, the first is [90.0, ')
    assert error.endswith('or leave them out by --skip-invalid.\n')
    assert json.loads(output) == dict(error=error.removeprefix('Error: ').rstrip('\n'))
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
def test_wrong_calls_exit_with_2(words, capsys):
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    assert ended.value.code == 2
    assert 'usage: anyfolder' in capsys.readouterr().err


def test_command_names_all_tasks_and_target_formats():
    assert (*TASKS,) == TASK_NAMES
    assert (*TARGETS,) == FORMAT_NAMES


def test_convert_writes_a_readable_folder(tmp_path, capsys):
    write_coco(tmp_path / 'in')
    before = tree_of(tmp_path / 'in')
    words = ['convert', str(tmp_path / 'in'), str(tmp_path / 'out'), '--to', 'voc']
    assert main([*words, '--task', 'detection']) == 0
    output, error = capsys.readouterr()
    change, summary, *_ = output.splitlines()
    assert change.startswith('Pascal VOC has no order of classes')
    assert summary == f'{tmp_path / "out"}: Pascal VOC, for detection, 2 classes.'
    assert error == ''
    assert tree_of(tmp_path / 'in') == before
    assert main(['check', str(tmp_path / 'out'), '--json']) == 0
    assert json.loads(capsys.readouterr().out)['splits']['val']['images'] == 1


def test_convert_prints_json(tmp_path, capsys):
    write_digits(tmp_path / 'in')
    words = ['convert', str(tmp_path / 'in'), str(tmp_path / 'out'), '--to', 'csv', '--json']
    assert main([*words, '--copy']) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed['format'] == 'images and a table of classes'
    assert printed['changes'] == []
    assert not any(path.is_symlink() for path in (tmp_path / 'out').rglob('*'))
    assert main(words) == 1
    output, error = capsys.readouterr()
    assert json.loads(output)['error'] == error.removeprefix('Error: ').rstrip('\n')
    assert 'already exists; give a new folder.' in error


def test_error_names_the_flags_if_a_format_does_not_fit(tmp_path, capsys):
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
    assert main(['show', '../in/digit 0/..']) == 0
    assert capsys.readouterr().out.endswith('The labels are in in_labels.png.\n')
    assert [path.name for path in (tmp_path / 'here').iterdir()] == ['in_labels.png']
    assert main(['show', '../in', '--out', 'a/b.png', '--json']) == 0
    assert json.loads(capsys.readouterr().out) == dict(picture='a/b.png')
    assert (tmp_path / 'here/a/b.png').read_bytes()[1:4] == b'PNG'
    assert tree_of(tmp_path / 'in') == before


@pytest.mark.parametrize('out', ['in/labels.png', 'in/digit 0/000.png', 'in', 'link/labels.png'])
def test_show_writes_nothing_into_the_folder_that_it_reads(tmp_path, capsys, out):
    write_digits(tmp_path / 'in')
    (tmp_path / 'link').symlink_to(tmp_path / 'in')
    before = tree_of(tmp_path)
    assert main(['show', str(tmp_path / 'in'), '--out', str(tmp_path / out)]) == 1
    assert 'which is read; give a path outside of it.' in capsys.readouterr().err
    assert tree_of(tmp_path) == before


def test_check_reads_by_a_layout(tmp_path, capsys):
    write_digits(tmp_path / 'in')
    (tmp_path / 'mine.yaml').write_text("format: folders\nimages: '{class}/{name}.png'\n")
    assert main(['check', str(tmp_path / 'in'), '--layout', str(tmp_path / 'mine.yaml')]) == 0
    assert '3 classes' in capsys.readouterr().out
    (tmp_path / 'mine.yaml').write_text('formt: folders\n')
    assert main(['check', str(tmp_path / 'in'), '--layout', str(tmp_path / 'mine.yaml')]) == 1
    assert 'mine.yaml' in capsys.readouterr().err


def test_control_characters_of_file_names_are_escaped(tmp_path, capsys):
    """The suffix of a file that is left out is part of the finding."""
    (write_digits(tmp_path) / 'notes.\x1b[2Jx').write_text('-')
    assert main(['check', str(tmp_path)]) == 0
    output = capsys.readouterr().out
    assert r'- files left out, .\x1b[2jx: 1, the first is notes.\x1b[2Jx' in output
    assert '\x1b' not in output


def test_sizes_of_equal_area_are_told_apart(tmp_path, capsys):
    for i in range(6):
        path = tmp_path / 'ab'[i // 3] / f'{i}.png'
        path.parent.mkdir(exist_ok=True)
        height, width = (8, 6) if i % 3 == 2 else (6, 8)
        Image.fromarray(np.full((height, width, 3), 40 * i, np.uint8)).save(path)
    assert main(['check', str(tmp_path)]) == 0
    assert 'Sizes from 6 x 8 to 8 x 6 pixels, median 8 x 6.' in capsys.readouterr().out


def test_letters_that_the_output_lacks_are_escaped(tmp_path, monkeypatch):
    (write_digits(tmp_path) / 'digit 0').rename(tmp_path / 'caf\u00e9')
    output = io.TextIOWrapper(io.BytesIO(), encoding='ascii')
    monkeypatch.setattr('sys.stdout', output)
    assert main(['check', str(tmp_path)]) == 0
    output.flush()
    assert b'Classes: caf\\xe9, digit 1, digit 2' in output.buffer.getvalue()
