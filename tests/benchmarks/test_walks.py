"""Counts of calls between files, for a known module, and calls between layers."""

from pathlib import Path

from benchmarks import walks
from benchmarks.walks import CallCounter, climbs, row

MODULE = """
def outer(n):
    return [*inner(n)]

def inner(n):
    for i in range(n):
        yield leaf(i)

def leaf(i):
    return i
"""


def module_at(path: Path) -> dict:
    """The functions of MODULE, as if it were this file."""
    names: dict = {}
    path.parent.mkdir(exist_ok=True)
    path.write_text(MODULE)
    exec(compile(MODULE, str(path), 'exec'), names)
    return names


def test_calls_are_counted_by_the_files_of_caller_and_callee(tmp_path, monkeypatch):
    monkeypatch.setattr(walks, 'ROOT', tmp_path)
    upper, lower = (
        module_at(tmp_path / f'vit_plugin/{name}.py') for name in ('commands', 'weights')
    )
    upper['leaf'] = lower['outer']
    counter = CallCounter()
    with counter:
        upper['outer'](2)
    commands, weights = files = 'vit_plugin/commands.py', 'vit_plugin/weights.py'
    assert counter.pairs == {
        ('', commands): 1,
        (commands, commands): 1,  # a generator, which is resumed twice
        (commands, weights): 2,
        (weights, weights): 2 + 1,  # twice a generator, and once its leaf
    }
    monkeypatch.undo()
    pairs = [[*pair, count] for pair, count in counter.pairs.items()]
    assert row('x', dict(imported=[*files], pairs=pairs))[0] == ['x', '2', '2', '3', '4', '0']


def test_calls_from_a_lower_layer_to_an_upper_one_climb():
    layers = walks.read_layers()
    assert climbs('vit_plugin/weights/hub.py', 'vit_plugin/engine/runner.py', layers)
    assert not climbs('vit_plugin/engine/runner.py', 'vit_plugin/weights/hub.py', layers)
    assert not climbs('vit_plugin/weights/hub.py', 'vit_plugin/weights/lora.py', layers)
    assert climbs('anyfolder/reading.py', 'vit_plugin/errors.py', layers)
    assert not climbs('', 'vit_plugin/commands/train.py', layers)
