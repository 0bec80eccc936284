"""The counts of a walk, on calls that are known."""

from pathlib import Path

from benchmarks import walks
from benchmarks.walks import Walk, climbs, row

MODULE = """
def outer(n):
    return [*inner(n)]

def inner(n):
    for i in range(n):
        yield leaf(i)

def leaf(i):
    return i
"""


def called_from(path: Path) -> dict:
    names: dict = {}
    path.parent.mkdir(exist_ok=True)
    path.write_text(MODULE)
    exec(compile(MODULE, str(path), 'exec'), names)
    return names


def test_calls_are_counted_once_by_the_files_of_both_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(walks, 'ROOT', tmp_path)
    upper, lower = (
        called_from(tmp_path / f'vit_plugin/{name}.py') for name in ('commands', 'weights')
    )
    upper['leaf'] = lower['outer']
    walk = Walk()
    with walk:
        upper['outer'](2)
    files = 'vit_plugin/commands.py', 'vit_plugin/weights.py'
    assert walk.pairs == {
        ('', files[0]): 1,
        (files[0], files[0]): 1,  # a generator, which is resumed twice
        (files[0], files[1]): 2,
        (files[1], files[1]): 2 + 1,  # twice a generator, and once its leaf
    }
    monkeypatch.undo()
    found = dict(imported=[*files], pairs=[[*pair, count] for pair, count in walk.pairs.items()])
    assert row('x', found)[0] == ['x', '2', '2', '3', '4', '0']


def test_what_climbs_is_called_by_a_lower_room():
    rooms = walks.floors()
    assert climbs('vit_plugin/weights/hub.py', 'vit_plugin/engine/runner.py', rooms)
    assert not climbs('vit_plugin/engine/runner.py', 'vit_plugin/weights/hub.py', rooms)
    assert not climbs('vit_plugin/weights/hub.py', 'vit_plugin/weights/lora.py', rooms)
    assert climbs('anyfolder/reading.py', 'vit_plugin/errors.py', rooms)
    assert not climbs('', 'vit_plugin/commands/train.py', rooms)
