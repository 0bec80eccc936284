"""The Python of a row of the campaign ``matrix``, and its copy of the tree."""

import subprocess

from benchmarks import matrix


def test_the_newest_python_is_taken_by_its_numbers(tmp_path):
    for version in ('3.12.9', '3.12.10', '3.13.1'):
        program = tmp_path / version / 'bin' / f'python{version.rpartition(".")[0]}'
        program.parent.mkdir(parents=True)
        program.touch()
    assert matrix.interpreter(tmp_path, '3.12') == tmp_path / '3.12.10/bin/python3.12'


def test_removed_files_are_not_copied(tmp_path, monkeypatch):
    root = tmp_path / 'root'
    root.mkdir()
    for name in ('kept', 'removed'):
        (root / name).touch()
    for command in (('init', '-q'), ('add', '.')):
        subprocess.run(['git', *command], cwd=root, check=True)
    (root / 'removed').unlink()
    monkeypatch.setattr(matrix, 'ROOT', root)
    matrix.copy_tree(tmp_path / 'copy')
    assert [path.name for path in (tmp_path / 'copy').iterdir()] == ['kept']
