"""From a command line to a runner."""

import os
import re
import signal
from types import SimpleNamespace

import pytest
from mmengine.registry import Registry
from rejection import rejects

from vit_plugin.commands.command_line import build_runner, report_interrupt
from vit_plugin.commands.one_sentence import TrainingError, one_sentence_errors


def test_an_unknown_error_is_a_sentence_unless_asked_for_the_traceback():
    for traceback, kind in ((False, SystemExit), (True, ZeroDivisionError)):
        with pytest.raises(kind) as error, one_sentence_errors(traceback):
            print(1 / 0)
    with (
        pytest.raises(
            SystemExit, match='^Error: ZeroDivisionError: division by zero; give --traceback'
        ),
        one_sentence_errors(),
    ):
        print(1 / 0)
    assert error.type is ZeroDivisionError


@pytest.mark.parametrize(
    ('error', 'iteration', 'raised'),
    [
        (ZeroDivisionError(), 3, TrainingError),
        (ZeroDivisionError(), 0, SystemExit),
        (OSError(28, os.strerror(28)), 3, SystemExit),
        (OSError(28, os.strerror(28), 'log.json'), 3, SystemExit),
    ],
)
def test_in_the_midst_of_training_an_unknown_error_keeps_its_traceback(error, iteration, raised):
    runner = SimpleNamespace(iter=iteration, work_dir='run')
    with pytest.raises(raised) as found, one_sentence_errors(), report_interrupt(runner):
        raise error
    if isinstance(error, OSError):
        assert str(found.value).startswith(
            f'Error: {error.filename!r} cannot be written (No space left'
        )
        assert error.filename in ('run', 'log.json')
    assert found.value.__cause__ is error


@pytest.mark.parametrize('saved', ['', 'epoch_3.pth'])
def test_an_interrupted_training_names_its_last_checkpoint(tmp_path, capsys, saved):
    if saved:
        (tmp_path / 'last_checkpoint').write_text(saved)
    runner = SimpleNamespace(iter=7, work_dir=str(tmp_path))
    words = f'{saved}; continue with --resume' if saved else 'no checkpoint yet'
    with pytest.raises(SystemExit) as end, report_interrupt(runner):
        signal.raise_signal(signal.SIGINT)
    assert end.value.code == 128 + signal.SIGINT
    assert re.match(f'Interrupted after 7 iterations: .* {words}', capsys.readouterr().err)


@pytest.mark.parametrize('kind', ['FlexibleRunner', 'Runner'])
def test_a_runner_that_does_not_scale_schedules_is_told(digits_config, kind):
    digits_config.merge_from_dict(dict(runner_type=kind, launcher='none'))
    with rejects(
        rf'train_cfg.max_epochs=3, .*schedule_length=25, .* and {kind} does not; '
        'leave runner_type out'
    ):
        build_runner(digits_config)


@pytest.mark.parametrize('kind', ['ImportError', 'AssertionError'])
def test_a_framework_that_cannot_be_imported_says_why(tmp_path, monkeypatch, kind):
    name = f'broken_by_{kind}'
    (tmp_path / f'{name}.py').write_text(f"raise {kind}('needs something<1.0, but found 2.0')")
    monkeypatch.syspath_prepend(tmp_path)
    registry = Registry('model', scope=name, locations=[name])
    with pytest.raises(SystemExit) as error, one_sentence_errors():
        registry.build(dict(type='Classifier'))
    assert str(error.value).startswith(
        f'Error: {kind}: needs something<1.0, but found 2.0; give --traceback'
    )
