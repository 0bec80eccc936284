"""Errors and Ctrl-C during a training as one sentence, and checks before a runner is built."""

import os
import re
import signal
from types import SimpleNamespace

import pytest
from mmengine.config import Config
from mmengine.registry import Registry
from rejection import rejects

from vit_plugin.commands.command_line import (
    apply_training_flags,
    build_runner,
    load_config,
    report_interrupt,
)
from vit_plugin.commands.one_sentence import TrainingError, one_sentence_errors


def test_unknown_errors_become_a_sentence_without_traceback():
    words = '^Error: ZeroDivisionError: division by zero; give --traceback'
    with pytest.raises(SystemExit, match=words), one_sentence_errors():
        print(1 / 0)
    with pytest.raises(ZeroDivisionError), one_sentence_errors(True):
        print(1 / 0)


@pytest.mark.parametrize(
    ('error', 'iteration', 'raised'),
    [
        (ZeroDivisionError(), 3, TrainingError),
        (ZeroDivisionError(), 0, SystemExit),
        (OSError(28, os.strerror(28)), 3, SystemExit),
        (OSError(28, os.strerror(28), 'log.json'), 3, SystemExit),
    ],
)
def test_unknown_errors_during_training_keep_their_traceback(error, iteration, raised):
    runner = SimpleNamespace(iter=iteration, work_dir='run')
    with pytest.raises(raised) as caught, one_sentence_errors(), report_interrupt(runner):
        raise error
    if isinstance(error, OSError):
        assert str(caught.value).startswith(
            f'Error: {error.filename!r} cannot be written (No space left'
        )
        assert error.filename in ('run', 'log.json')  # the work directory if the error has none
    assert caught.value.__cause__ is error


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


@pytest.mark.parametrize('runner_type', ['FlexibleRunner', 'Runner'])
def test_runners_that_do_not_scale_schedules_raise(digits_config, runner_type):
    digits_config.merge_from_dict(dict(runner_type=runner_type, launcher='none'))
    with rejects(
        rf'train_cfg.max_epochs=3, .*schedule_length=25, .* and {runner_type} does not; '
        'leave runner_type out'
    ):
        build_runner(digits_config)


@pytest.mark.parametrize('error_type', ['ImportError', 'AssertionError'])
def test_errors_at_the_import_of_a_framework_are_reported(tmp_path, monkeypatch, error_type):
    name = f'broken_by_{error_type}'
    (tmp_path / f'{name}.py').write_text(
        f"raise {error_type}('needs something<1.0, but found 2.0')"
    )
    monkeypatch.syspath_prepend(tmp_path)
    registry = Registry('model', scope=name, locations=[name])
    with pytest.raises(SystemExit) as error, one_sentence_errors():
        registry.build(dict(type='Classifier'))
    assert str(error.value).startswith(
        f'Error: {error_type}: needs something<1.0, but found 2.0; give --traceback'
    )


@pytest.mark.parametrize('settings', [{}, dict(optim_wrapper=3)])
def test_amp_leaves_a_wrong_optimizer_to_the_check_of_the_config(settings):
    cfg = Config(settings)
    apply_training_flags(cfg, SimpleNamespace(amp=True, resume=None, resume_changed=False))
    assert cfg.get('optim_wrapper') == settings.get('optim_wrapper')


@pytest.mark.parametrize(
    ('source', 'folder'),
    [
        ('runs/a/epoch_3.pth', 'runs/a'),
        ('hf://me/pets', 'work_dirs/pets'),
        ('https://there.org/b/model.pth?signature=a.b', 'work_dirs/model'),
    ],
)
def test_logs_of_a_checkpoint_go_to_a_local_folder(monkeypatch, source, folder):
    monkeypatch.setenv('LOCAL_RANK', '0')
    flags = dict(config=None, work_dir=None, launcher='none', no_pin_memory=False, verbose=False)
    saved = SimpleNamespace(checkpoint=SimpleNamespace(source=source), cfg=Config())
    assert load_config(SimpleNamespace(**flags, local_rank=0), saved).work_dir == folder
    saved.cfg.work_dir = 'own'  # by --cfg-options
    assert load_config(SimpleNamespace(**flags, local_rank=0), saved).work_dir == 'own'


def test_a_checkpoint_to_resume_excludes_other_weights():
    flags = dict(amp=False, resume_changed=False, cfg_options=dict(load_from='b.pth'))
    cfg = Config(dict(load_from='b.pth'))
    with rejects('^--resume a.pth does not go with --cfg-options load_from'):
        apply_training_flags(cfg, SimpleNamespace(resume='a.pth', **flags))
    apply_training_flags(cfg, SimpleNamespace(resume='auto', **flags))
    assert (cfg.load_from, cfg.begin_from) == (None, 'b.pth')
