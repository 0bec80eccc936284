"""``train`` and ``test`` as a user runs them, in processes of their own."""

import json
import os
import pickle
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from mmengine.config import Config
from rejection import rejects

from vit_plugin.commands.test import apply_test_flags, apply_tta, check_all_read
from vit_plugin.commands.train import apply_train_flags

CONFIG = 'configs/hybrid_vit/hybrid-vit-mini-p2_1xb16_digits.py'
SHORT = [
    'train_cfg.max_epochs=3',
    'train_dataloader.dataset.indices=64',
    'val_dataloader.dataset.indices=30',
    'test_dataloader.dataset.indices=30',
    'default_hooks.logger.interval=2',
]


def command(tool: str, *arguments: str) -> list[str]:
    return [sys.executable, f'tools/{tool}.py', *map(str, arguments)]


@pytest.fixture(scope='module')
def trained(tmp_path_factory) -> tuple[Path, str]:
    """A work directory after three epochs in bfloat16, and what was printed."""
    folder = tmp_path_factory.mktemp('work')
    done = subprocess.run(
        [
            *command('train', CONFIG, '--work-dir', folder, '--amp', '--auto-scale-lr'),
            '--cfg-options',
            *SHORT,
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return folder, done.stdout + done.stderr


@pytest.mark.nightly
def test_training_prints_its_progress_and_writes_its_results(trained):
    folder, output = trained
    assert 'eta:' in output
    assert 'accuracy/top1' in output
    names = {path.name for path in folder.iterdir()}
    assert {
        'epoch_3.pth',
        'metrics.json',
        'learning_curve.png',
        'confusion_matrix.png',
        'last_checkpoint',
    } <= names


@pytest.mark.nightly
def test_resume_continues_the_training(run_command, trained, tmp_path):
    folder, _ = trained
    done = run_command(
        f'train {CONFIG} --work-dir {tmp_path} --resume {folder}/epoch_3.pth --amp '
        '--no-validate --no-pin-memory --no-persistent-workers --cfg-options',
        *SHORT,
        'train_cfg.max_epochs=4',
    )
    assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.glob('epoch_*')} == {'epoch_4.pth'}
    # Four epochs of 64 images in batches of 16.
    assert torch.load(tmp_path / 'epoch_4.pth', weights_only=False)['meta']['iter'] == 16


@pytest.mark.nightly
def test_test_repeats_the_metrics_and_writes_predictions(run_command, trained, tmp_path):
    folder, _ = trained
    done = run_command(
        f'test {CONFIG} {folder}/epoch_3.pth --work-dir {tmp_path} --out '
        f'{tmp_path}/out.json --out-item metrics --cfg-options',
        *SHORT,
    )
    assert done.returncode == 0, done.stderr
    metrics = json.loads((tmp_path / 'out.json').read_text())
    assert metrics == json.loads((folder / 'metrics.json').read_text())['last']

    done = run_command(
        f'test {CONFIG} {folder}/epoch_3.pth --work-dir {tmp_path} --out '
        f'{tmp_path}/out.pkl --tta --cfg-options',
        *SHORT,
    )
    assert done.returncode == 0, done.stderr
    predictions = pickle.loads((tmp_path / 'out.pkl').read_bytes())
    assert len(predictions) == 30
    assert predictions[0]['pred_score'].shape == (10,)


@pytest.mark.parametrize(
    ('arguments', 'options', 'words'),
    [
        ([CONFIG, '--work-dir', '/dev/null/x'], [], "work_dir '/dev/null/x' cannot be written"),
        (
            [CONFIG],
            ['model.head.in_channels=97'],
            'model.head.in_channels=97 does not fit the backbone',
        ),
        (
            ['configs/vit/vit-d6-w256-p4_1xb256-180e_cifar10-folder.py', '--auto-scale-lr'],
            [],
            '--auto-scale-lr does not reach OneCycleLR',
        ),
        ([CONFIG], ['model.backbone.out_indices=7'], 'Invalid out_indices 7'),
        (
            ['configs/vit/vit-d6-w256-p4_1xb256-180e_cifar10-folder.py'],
            ['train_dataloader.dataset.data_root=none'],
            "train_dataloader.dataset: there is no folder 'none/train'",
        ),
    ],
)
def test_invalid_calls_raise(run_command, tmp_path, arguments, options, words):
    if '--work-dir' not in arguments:
        arguments = [*arguments, '--work-dir', tmp_path]
    done = run_command('train', *arguments, *(['--cfg-options', *options] if options else []))
    assert done.returncode == 1
    assert words in done.stderr.splitlines()[-1]


@pytest.mark.parametrize('section', [3, dict(enable=False), None])
def test_flags_of_train_leave_wrong_sections_to_the_check_of_the_config(section):
    flags = dict(no_validate=False, auto_scale_lr=False, no_persistent_workers=True)
    cfg = Config(dict(auto_scale_lr=section, train_dataloader=3))
    apply_train_flags(cfg, SimpleNamespace(**flags))
    assert cfg.train_dataloader == 3
    with rejects(r'^--auto-scale-lr needs auto_scale_lr=dict\(base_batch_size'):
        apply_train_flags(cfg, SimpleNamespace(**dict(flags, auto_scale_lr=True)))


def args_of_test(**changes) -> SimpleNamespace:
    """The flags that ``apply_test_flags`` reads."""
    flags = dict(config=None, checkpoint='x.pth', out=None, amp=False, tta=False)
    shown = dict(show=False, show_dir=None, interval=1, wait_time=2)
    return SimpleNamespace(**{**flags, **shown, **changes})


@pytest.mark.parametrize('scope', ['mmdet', 'mmseg'])
def test_an_interval_that_the_framework_ignores_raises(scope):
    cfg = Config(
        dict(default_scope=scope, test_cfg={}, test_dataloader=dict(dataset=dict(type='A')))
    )
    with rejects(f'^--interval 2: {scope} shows every image of a test; leave it out'):
        apply_test_flags(cfg, args_of_test(show_dir='shown', interval=2))


def test_a_config_without_a_test_raises():
    cfg = Config(dict(test_dataloader=dict(dataset=dict(type='A'))))
    with rejects(r'^The config of the checkpoint has no test_cfg; add test_cfg=dict\(\)'):
        apply_test_flags(cfg, args_of_test(amp=True))
    with rejects("^The config 'x.py' has no test_dataloader; add one"):
        apply_test_flags(Config(), args_of_test(config='x.py'))


def test_pictures_need_a_visualizer_of_the_framework():
    test = dict(test_cfg={}, test_dataloader=dict(dataset=dict(type='A')))
    cfg = Config(dict(default_scope='mmseg', **test))
    apply_test_flags(cfg, args_of_test(show_dir='shown'))
    assert (cfg.visualizer.type, cfg.visualizer.save_dir) == ('SegLocalVisualizer', 'shown')
    cfg = Config(dict(default_scope='mmdet', visualizer=dict(type='Own'), **test))
    apply_test_flags(cfg, args_of_test(show_dir='shown'))
    assert cfg.visualizer.type == 'Own'


def test_views_of_a_config_need_no_known_framework():
    dataset = dict(type='A', pipeline=[])
    views = dict(tta_model=dict(type='Mean'), tta_pipeline=[dict(type='Views')])
    cfg = Config(dict(model=dict(type='M'), test_dataloader=dict(dataset=dataset), **views))
    apply_tta(cfg)
    assert cfg.model == dict(type='Mean', module=dict(type='M'))
    assert cfg.test_dataloader.dataset.pipeline == views['tta_pipeline']


def test_a_flip_needs_a_pipeline():
    dataset = dict(type='A', pipeline=[])
    cfg = Config(dict(default_scope='mmdet', test_dataloader=dict(dataset=dataset)))
    with rejects('^--tta: the pipeline of the test_dataloader has no steps'):
        apply_tta(cfg)


def test_images_that_were_left_out_raise_after_a_test():
    loader = SimpleNamespace(dataset=range(5))
    check_all_read(SimpleNamespace(test_dataloader=loader))  # another runner, which has no list
    unreadable = SimpleNamespace(left_out=frozenset())
    check_all_read(SimpleNamespace(test_dataloader=loader, unreadable=unreadable))
    unreadable.left_out = frozenset({3})
    with rejects('^1 of 5 images could not be read'):
        check_all_read(SimpleNamespace(test_dataloader=loader, unreadable=unreadable))


@pytest.mark.nightly
def test_two_processes_end_with_the_same_weights(tmp_path):
    config = tmp_path / 'config.py'
    config.write_text(
        f"_base_ = '{Path(CONFIG).resolve()}'\ncustom_imports = dict(imports=['rank_dump'])\n"
    )
    environment = dict(
        os.environ,
        PORT='29617',
        OMP_NUM_THREADS='1',
        RANK_DUMP=str(tmp_path),
        PYTHONPATH=f'{Path.cwd()}:{Path(__file__).parent}',
        PATH=f'{Path(sys.executable).parent}:{os.environ["PATH"]}',
    )
    done = subprocess.run(
        [
            'tools/dist_train.sh',
            str(config),
            '2',
            '--work-dir',
            str(tmp_path),
            '--cfg-options',
            *SHORT,
        ],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    first, second = (
        torch.load(tmp_path / f'rank_{rank}.pt', weights_only=True) for rank in range(2)
    )
    assert first['steps'] == second['steps'] == 6  # 64 images over 2 x 16, three times
    for name, value in first['state'].items():
        assert torch.equal(value, second['state'][name]), name


def test_a_taken_port_raises_one_sentence():
    with socket.socket() as listener:
        listener.bind(('127.0.0.1', 0))
        listener.listen()
        port = listener.getsockname()[1]
        done = subprocess.run(
            ['tools/dist_train.sh', CONFIG, '2'],
            capture_output=True,
            text=True,
            env=dict(os.environ, PORT=str(port)),
        )
    assert done.returncode == 1
    assert done.stderr == (
        f'Error: the port {port} is taken by another program; give another, such as '
        f'PORT={port + 1}.\n'
    )
