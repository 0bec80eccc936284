"""A complete checkpoint exists at every moment, and the configured ones are kept."""

import os
import shutil
import threading
from pathlib import Path

import pytest
import torch
from mmengine.hooks import Hook
from mmengine.runner import Runner as PlainRunner
from rejection import rejects

from benchmarks import background_save
from benchmarks.tiny_run import build, differences, tiny_cfg
from vit_plugin.engine import CheckpointHook
from vit_plugin.engine.checkpoints.found_checkpoint import is_complete
from vit_plugin.engine.checkpoints.retention import Retention, remove_leftovers
from vit_plugin.engine.checkpoints.saver import Saver
from vit_plugin.weights.reading.files import read_checkpoint

pytestmark = pytest.mark.filterwarnings('ignore')


def hook_of(runner) -> CheckpointHook:
    return next(hook for hook in runner.hooks if isinstance(hook, CheckpointHook))


class Witness:
    """Records whether the marked checkpoint is complete after each file is removed or renamed."""

    def __init__(self, folder: Path, monkeypatch) -> None:
        self.folder, self.complete = folder, []
        for name in ('remove', 'unlink', 'replace', 'rename', 'rmdir'):
            monkeypatch.setattr(os, name, self.recorded(getattr(os, name)))

    def recorded(self, function):
        def call(*args, **kwargs):
            result = function(*args, **kwargs)
            marker = self.folder / 'last_checkpoint'
            if marker.is_file():
                self.complete.append(is_complete(Path(marker.read_text())))
            return result

        return call


@pytest.mark.parametrize(
    ('checkpoint_format', 'background'),
    [('file', False), pytest.param('folder', True, marks=pytest.mark.nightly)],
)
def test_the_marker_always_names_a_complete_checkpoint(
    tmp_path, monkeypatch, checkpoint_format, background
):
    runner = build(
        tiny_cfg(
            tmp_path,
            **{
                'default_hooks.checkpoint.max_keep_ckpts': 1,
                'default_hooks.checkpoint.format': checkpoint_format,
                'default_hooks.checkpoint.background': background,
            },
        )
    )
    witness = Witness(tmp_path, monkeypatch)
    runner.train()
    assert len(witness.complete) > 8  # otherwise the test witnessed too little
    assert all(witness.complete)


@pytest.mark.parametrize(
    ('options', 'kept'),
    [
        (dict(max_keep_ckpts=1, keep_every=6, format='folder'), {'iter_6', 'iter_12'}),
        (dict(max_keep_ckpts=1, filename_tmpl='at_{}'), {'at_12.pth'}),
        pytest.param(
            dict(max_keep_ckpts=2, keep_every=4, filename_tmpl='at_{:03d}.pth'),
            {'at_004.pth', 'at_008.pth', 'at_010.pth', 'at_012.pth'},
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_configured_checkpoints_are_kept(tmp_path, options, kept):
    options = {f'default_hooks.checkpoint.{name}': value for name, value in options.items()}
    build(tiny_cfg(tmp_path, 'iter', **{'default_hooks.checkpoint.interval': 2}, **options)).train()
    names = {
        path.name
        for path in tmp_path.iterdir()
        if path.name.startswith(('epoch', 'iter', 'at', 'best'))
    }
    assert {name for name in names if not name.startswith('best')} == kept
    assert len(names - kept) == 1  # the best
    assert not list(tmp_path.glob('.*'))


def test_files_have_the_entries_of_mmengine(tmp_path, monkeypatch):
    """The same entries as MMEngine's own method writes, and two more in ``meta``."""
    runner = build(tiny_cfg(tmp_path, **{'train_cfg.max_epochs': 1}))
    runner.train()
    runner.save_checkpoint(str(tmp_path), 'saved.pth')
    PlainRunner.save_checkpoint(runner, str(tmp_path), 'by_mmengine.pth')
    assert not differences(tmp_path / 'saved.pth', tmp_path / 'by_mmengine.pth')
    saved, expected = (
        torch.load(tmp_path / name, weights_only=False) for name in ('saved.pth', 'by_mmengine.pth')
    )
    assert saved.keys() == expected.keys()
    assert saved['meta'].keys() - expected['meta'].keys() == {'run', 'provenance'}
    assert saved['message_hub'].keys() == expected['message_hub'].keys()
    assert saved['state_dict']._metadata == expected['state_dict']._metadata


class SavesAt(Hook):
    """Calls ``save_now`` after an iteration, and records whether the marker names its result."""

    priority = 'LOWEST'

    def __init__(self, iteration: int) -> None:
        self.iteration, self.path = iteration, ''

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None) -> None:
        if runner.iter + 1 == self.iteration:
            self.path = hook_of(runner).save_now(runner)
            marked = Path(runner.work_dir, 'last_checkpoint').read_text()
            self.is_marked = is_complete(Path(self.path)) and marked == self.path


@pytest.mark.parametrize('iteration', [6, 4], ids=['between saves', 'at a save'])
def test_save_now_writes_a_checkpoint_once(tmp_path, monkeypatch, iteration):
    options = {'default_hooks.checkpoint.background': True, 'train_cfg.max_iters': 8}
    runner = build(tiny_cfg(tmp_path, 'iter', **options))
    saving, save, written = SavesAt(iteration), runner.saver.save, []

    def record(out_dir, name, *args, **kwargs):
        written.append(name)
        return save(out_dir, name, *args, **kwargs)

    monkeypatch.setattr(runner.saver, 'save', record)
    runner.register_hook(saving)
    runner.train()
    assert saving.path == str(tmp_path / f'iter_{iteration}.pth')
    assert saving.is_marked
    assert read_checkpoint(saving.path)['meta']['iter'] == iteration
    assert written.count(f'iter_{iteration}.pth') == 1


@pytest.fixture(scope='module')
def plain(tmp_path_factory) -> Path:
    """The folder of a run of two epochs that saves in the foreground."""
    folder = tmp_path_factory.mktemp('plain')
    build(tiny_cfg(folder, **{'train_cfg.max_epochs': 2})).train()
    return folder


@pytest.mark.nightly
def test_closed_stager_is_replaced(plain, tmp_path, monkeypatch):
    from torch.distributed.checkpoint.staging import DefaultStager  # not in the oldest torch

    def stage(self, tensors):
        staged = original(self, tensors)
        self.close()  # as in torch 2.11
        return staged

    original = DefaultStager.stage
    monkeypatch.setattr(DefaultStager, 'stage', stage)
    options = {
        'default_hooks.checkpoint.background': True,
        'default_hooks.checkpoint.format': 'folder',
        'train_cfg.max_epochs': 2,
    }
    build(tiny_cfg(tmp_path, **options)).train()
    assert not differences(plain / 'epoch_2.pth', tmp_path / 'epoch_2')


def test_a_write_that_outlasts_a_wait_is_awaited_later():
    released, saver = threading.Event(), Saver(runner=None)
    thread = saver._thread = threading.Thread(target=released.wait, daemon=True)
    thread.start()
    saver.wait(seconds=0.0)
    threading.Timer(0.2, released.set).start()
    saver.wait()
    assert not thread.is_alive()


def test_full_disk_in_the_background_raises(tmp_path, monkeypatch):
    def fill(state, path):
        Path(path).write_bytes(bytes(100))
        raise OSError(28, 'No space left on device')

    runner = build(tiny_cfg(tmp_path, **{'default_hooks.checkpoint.background': True}))
    monkeypatch.setattr(torch, 'save', fill)
    with rejects('epoch_1.pth.*No space left on device'):
        runner.train()
    assert not list(tmp_path.glob('.*'))


def test_resuming_repairs_a_marker_behind_the_last_save(tmp_path):
    options = {'default_hooks.checkpoint.max_keep_ckpts': 1, 'train_cfg.max_epochs': 2}
    build(tiny_cfg(tmp_path, **options)).train()
    shutil.copy(tmp_path / 'epoch_2.pth', tmp_path / 'epoch_1.pth')
    (tmp_path / 'last_checkpoint').write_text(str(tmp_path / 'epoch_1.pth'))
    path = str(tmp_path / 'epoch_2.pth')
    build(tiny_cfg(tmp_path, resume=True, load_from=path, **options)).train()
    assert (tmp_path / 'last_checkpoint').read_text() == path
    assert not (tmp_path / 'epoch_1.pth').exists()


def test_temporary_files_of_a_killed_run_are_removed(tmp_path):
    (tmp_path / '.best_a_iter_5.saving').mkdir()
    for name in (
        '.epoch_3.0123abcd.pth',
        '.iter_7.0123abcd.pth',
        '.last_checkpoint.0123abcd',
        '.mine.pth',
        '.confusion_matrix.0123abcd.png',
        '.metrics.0123abcd.json',
        '.preempted.0123abcd',
        '.val_worst.0123abcd.png',
        '.results.0123abcd.csv',
        '.classes.0123abcd.md',
    ):
        (tmp_path / name).touch()
    build(tiny_cfg(tmp_path, **{'train_cfg.max_epochs': 1})).train()
    assert {path.name for path in tmp_path.glob('.*')} == {'.mine.pth'}


def test_temporary_files_with_names_of_the_run_are_removed(tmp_path):
    for name in ('.ckpt_3.0123abcd.pth', '..running.0123abcd.json', '.mine_3.0123abcd.pth'):
        (tmp_path / name).touch()
    remove_leftovers([str(tmp_path)], Retention('ckpt_{}.pth', keep_last=-1, keep_every=None))
    assert [path.name for path in tmp_path.iterdir()] == ['.mine_3.0123abcd.pth']


def test_epoch_that_cuts_accumulated_gradients_is_logged(tmp_path):
    """In iteration-based runs the save waits instead; see test_loops.py."""
    build(
        tiny_cfg(tmp_path, **{'optim_wrapper.accumulative_counts': 3, 'train_cfg.max_epochs': 1})
    ).train()
    assert (
        'accumulative_counts=3 does not divide the 4 iterations of an epoch'
        in next(tmp_path.glob('*/*.log')).read_text()
    )


def test_another_runner_raises(tmp_path):
    runner = build(
        tiny_cfg(
            tmp_path,
            runner_type='Runner',
            **{'default_hooks.checkpoint.type': 'vit_plugin.CheckpointHook'},
        )
    )
    with rejects("needs runner_type='vit_plugin.Runner'"):
        runner.train()


@pytest.mark.nightly
def test_saves_are_exact_and_take_little_memory(tmp_path):
    """A short form of benchmarks/background_save.py.

    A background save has the state of its step, and only that takes a copy of the state.
    """
    # A state of 90 MB.
    arch = dict(embed_dims=512, num_layers=2, num_heads=2, feedforward_channels=4096, patch_size=16)
    saving = background_save.measure(tmp_path, 2, arch)
    assert saving.num_exact == 2
    # The largest additional memory of each way to save, in sizes of the state. MMEngine's own save
    # takes a copy.
    peak = {name: max(save.memory) / saving.bytes for name, save in saving.measured.items()}
    assert peak['file'] < 0.2
    assert peak['folder'] < 0.2
    assert peak['background'] < 1.2
    assert peak['MMEngine'] > 0.8


@pytest.mark.parametrize(
    ('options', 'words'),
    [
        (dict(filename_tmpl='{}{}.pth'), 'must be a file name with one place for the number'),
        (dict(filename_tmpl='last.pth'), 'must be a file name with one place'),
        (dict(filename_tmpl='epochs/{}.pth'), 'must be a file name with one place'),
        (dict(filename_tmpl='{0.x}.pth'), 'must be a file name with one place'),
        (dict(filename_tmpl='epoch_{.pth'), 'must be a file name with one place'),
        (dict(save_best='loss', rule='smaller'), "rule='smaller' must be 'greater' or 'less'"),
        (dict(save_best=['a', 'b'], rule=['less', 'smaller']), r"rule\[1\]='smaller' must be"),
        (dict(save_best='mystery'), 'CheckpointHook: Cannot infer the rule for key mystery'),
        (dict(rule=['less', 'less']), 'CheckpointHook: '),
    ],
)
def test_wrong_arguments_raise_at_the_start(options, words):
    with rejects(words):
        CheckpointHook(**options)


def test_best_checkpoint_of_an_unknown_metric_raises():
    hook = CheckpointHook(save_best='auto')
    with rejects('default_hooks.checkpoint: Cannot infer the rule for key mystery'):
        hook._save_best_checkpoint(None, {'mystery': 1.0})


@pytest.mark.parametrize(
    ('out_dir', 'folder'),
    [
        (None, 'runs/x'),
        ('runs/x', 'runs/x'),
        ('all/', 'all/x'),
        (Path('all'), 'all/x'),
        ('s3://all', 's3://all/x'),
    ],
)
def test_checkpoints_are_in_a_folder_of_the_run(out_dir, folder):
    assert CheckpointHook(out_dir=out_dir).folder_of('runs/x') == folder


@pytest.mark.parametrize(
    ('template', 'names', 'outdated'),
    [
        ('epoch_{}.pth', ['epoch_10.pth', 'epoch_11.pth', 'epoch_12.pth'], ['epoch_11.pth']),
        ('epoch_{}', ['epoch_10.pth', 'epoch_11.pth', 'epoch_12'], ['epoch_11.pth']),
        ('epoch_{}.pth', ['epoch_10', 'epoch_11', 'epoch_12.pth'], ['epoch_11']),
    ],
)
def test_checkpoints_to_keep_are_kept_in_either_format(template, names, outdated):
    assert Retention(template, keep_last=1, keep_every=10).outdated(names) == outdated


def test_moved_run_deletes_only_its_own_files(tmp_path):
    """Its last checkpoint names files at the old path, where another run may be by now."""
    options = {'default_hooks.checkpoint.max_keep_ckpts': 1, 'train_cfg.max_epochs': 1}
    before, after = tmp_path / 'before', tmp_path / 'after'
    build(tiny_cfg(before, **options)).train()
    before.rename(after)
    (victim := tmp_path / 'epoch_7.pth').touch()
    (picture := after / 'page_1.png').touch()
    state = torch.load(after / 'epoch_1.pth', weights_only=False)
    info = state['message_hub']['runtime_info']
    began = info['began']
    info['kept_checkpoints'] = ['../epoch_7.pth', str(victim), 'page_1.png', 'epoch_1.pth']
    torch.save(state, after / 'epoch_1.pth')
    options |= {'train_cfg.max_epochs': 2, 'resume': True, 'experiment_name': 'moved'}
    runner = build(tiny_cfg(after, **options))
    runner.train()
    assert victim.is_file()
    assert picture.is_file()
    assert not (after / 'epoch_1.pth').exists()
    assert not before.exists()
    (best,) = after.glob('best_*')
    info = runner.message_hub.runtime_info
    assert (info['best_ckpt'], info['began']) == (str(best), began)


@pytest.mark.parametrize('setting', ['', 'out_dir=elsewhere', 'filename_tmpl=at_{}.pth'])
def test_new_run_in_the_folder_of_another_warns(tmp_path, monkeypatch, capsys, setting):
    """Until the new run has a checkpoint, ``--resume`` would continue the other run."""
    monkeypatch.chdir(tmp_path)
    options = {'train_cfg.max_epochs': 1}
    if setting:
        name, value = setting.split('=')
        options[f'default_hooks.checkpoint.{name}'] = value
        options['default_hooks.checkpoint.save_best'] = None  # its name would show the run
    build(tiny_cfg(tmp_path / 'run', **options)).train()
    assert 'an earlier run' not in capsys.readouterr().out
    # The loggers of MMEngine are kept by this name, with the output of their test.
    name = f'again with {setting}'
    build(tiny_cfg(tmp_path / 'run', **options, experiment_name=name, log_level='WARNING')).train()
    assert 'has checkpoints of an earlier run' in capsys.readouterr().out
