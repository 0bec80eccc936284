"""Reading a checkpoint to resume a run or to start from its weights, without running its code."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from rejection import rejects

from benchmarks.tiny_run import build, tiny_cfg
from vit_plugin.commands.command_line import build_runner
from vit_plugin.config import apply_loader_defaults, read_config
from vit_plugin.engine.checkpoints.newest import newest_checkpoint
from vit_plugin.weights import reading_safely

pytestmark = pytest.mark.filterwarnings('ignore')


def changed(cfg: Config, name: str, **options: object) -> Config:
    """A copy of a config with a new name for its run."""
    cfg = cfg.copy()
    cfg.merge_from_dict({'experiment_name': name, **options})
    return cfg


@pytest.fixture(scope='module')
def run(tmp_path_factory) -> Config:
    """The config of a run of two epochs."""
    cfg = tiny_cfg(tmp_path_factory.mktemp('run') / 'work', **{'train_cfg.max_epochs': 2})
    build_runner(cfg).train()
    return cfg


@pytest.fixture
def trained(run, tmp_path) -> Config:
    """The config of that run in a copy of its folder."""
    folder = tmp_path / 'work'
    shutil.copytree(run.work_dir, folder)
    (folder / 'last_checkpoint').write_text(str(folder / 'epoch_2.pth'))
    return changed(run, 'copy', work_dir=str(folder))


@pytest.mark.parametrize(
    'runner_type', ['vit_plugin.Runner', pytest.param('Runner', marks=pytest.mark.nightly)]
)
def test_code_in_the_saved_config_is_not_run(trained, tmp_path, runner_type):
    # The code would create this file.
    canary, path = tmp_path / 'canary', Path(trained.work_dir, 'epoch_2.pth')
    checkpoint = torch.load(path, weights_only=False)
    checkpoint['meta']['config'] = f"gpu_ids = [0]\nopen({str(canary)!r}, 'w').close()\n"
    torch.save(checkpoint, path)
    runner = build_runner(
        changed(
            trained,
            runner_type,
            **{
                'train_cfg.max_epochs': 3,
                'resume': True,
                'load_from': str(path),
                'runner_type': runner_type,
            },
        )
    )
    with reading_safely():  # as the tools do
        runner.train()
    assert runner.epoch == 3
    assert not canary.exists()


@pytest.mark.parametrize('classes', [list('0123456789'), list('abcdefghij')])
def test_classifier_is_loaded_only_for_the_same_classes(trained, classes, monkeypatch):
    path = Path(trained.work_dir, 'epoch_2.pth')
    checkpoint = torch.load(path, weights_only=False)
    checkpoint['meta']['dataset_meta']['classes'] = classes
    torch.save(checkpoint, path)
    runner = build_runner(
        changed(
            trained, f'new_{classes[0]}', work_dir=str(path.parent / 'new'), load_from=str(path)
        )
    )
    runner._train_loop = runner.build_train_loop(runner._train_loop)
    runner.call_hook('before_run')
    messages: list[str] = []
    monkeypatch.setattr(runner.logger, 'info', messages.append)
    runner.load_or_resume()
    saved, loaded = checkpoint['ema_state_dict'], runner.model.state_dict()
    has_same_classes = classes[0] == '0'  # as in the run's data
    assert torch.equal(loaded['backbone.pos_embed'], saved['module.backbone.pos_embed'])
    assert (
        torch.equal(loaded['head.layers.head.weight'], saved['module.head.layers.head.weight'])
        == has_same_classes
    )
    assert (f'has other classes ({classes[0]}' in ''.join(messages)) != has_same_classes


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1000])


def zero(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def flip_bits(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 255
    path.write_bytes(content)


def empty(path: Path) -> None:
    path.write_bytes(b'')


@pytest.mark.parametrize('damage', [cut, zero, flip_bits, empty, Path.unlink])
def test_damaged_newest_checkpoint_is_passed_over(trained, damage, caplog):
    folder = Path(trained.work_dir)
    damage(folder / 'epoch_2.pth')
    assert newest_checkpoint(folder) == str(folder / 'epoch_1.pth')
    damage(folder / 'epoch_1.pth')
    words = (
        'names .*epoch_2.pth.*not there'
        if damage is Path.unlink
        else 'No checkpoint in .* can be read to its end'
    )
    with rejects(words):
        newest_checkpoint(folder)


def test_resuming_from_weights_alone_raises(trained, tmp_path):
    torch.save(
        dict(
            state_dict=torch.load(Path(trained.work_dir, 'epoch_2.pth'), weights_only=False)[
                'state_dict'
            ]
        ),
        tmp_path / 'weights.pth',
    )
    runner = build_runner(
        changed(trained, 'weights', resume=True, load_from=str(tmp_path / 'weights.pth'))
    )
    with rejects("no 'meta'.*give --cfg-options load_from=FILE"):
        runner.train()


def without_a_block(state: dict) -> dict:
    return {
        name: value for name, value in state.items() if not name.startswith('backbone.blocks.0.')
    }


def with_integers(state: dict, name: str) -> dict:
    return {**state, name: (state[name] * 30).to(torch.int8)}


@pytest.mark.parametrize(
    'part', ['state_dict', pytest.param('ema_state_dict', marks=pytest.mark.nightly)]
)
@pytest.mark.parametrize(
    ('change', 'words'),
    [
        (without_a_block, 'lacks blocks.0.norm1.weight.*in load_weights or init_cfg'),
        (
            lambda state: with_integers(state, 'backbone.pos_embed'),
            'has backbone.pos_embed as int8',
        ),
        (
            lambda state: with_integers(state, 'head.layers.head.weight'),
            'has head.layers.head.weight as int8',
        ),
    ],
)
def test_incomplete_and_integer_weights_raise(trained, tmp_path, change, words, part):
    path = Path(trained.work_dir, 'epoch_2.pth')
    checkpoint = torch.load(path, weights_only=False)
    weights = change(checkpoint['state_dict'])
    if part == 'ema_state_dict':
        weights = {f'module.{name}': value for name, value in weights.items()}
    checkpoint[part] = weights
    torch.save(checkpoint, tmp_path / 'x.pth')
    runner = build_runner(
        changed(trained, 'new', work_dir=str(tmp_path / 'new'), load_from=str(tmp_path / 'x.pth'))
    )
    before = {name: value.clone() for name, value in runner.model.state_dict().items()}
    with rejects(words):
        runner.load_or_resume()
    assert all(
        torch.equal(value, before[name]) for name, value in runner.model.state_dict().items()
    )
    if change is not without_a_block:  # test_same_run.py resumes with missing weights
        runner = build_runner(
            changed(trained, 'resumed', resume=True, load_from=str(tmp_path / 'x.pth'))
        )
        with rejects(words):
            runner.train()


def test_full_disk_keeps_the_last_checkpoint(trained, monkeypatch):
    folder = Path(trained.work_dir)
    before = (folder / 'epoch_2.pth').read_bytes()
    runner = build_runner(changed(trained, 'full', **{'train_cfg.max_epochs': 3, 'resume': True}))

    def fill(state, path):
        Path(path).write_bytes(bytes(100))
        raise OSError(28, 'No space left on device')

    monkeypatch.setattr(torch, 'save', fill)
    with rejects(r'epoch_3.pth. cannot be written \(No space left on device\)'):
        runner.train()
    assert (folder / 'epoch_2.pth').read_bytes() == before
    assert not (folder / 'epoch_3.pth').exists()
    assert not list(folder.glob('.epoch*'))
    assert newest_checkpoint(folder) == str(folder / 'epoch_2.pth')


@pytest.mark.nightly
def test_damaged_record_is_restored_from_the_checkpoint(trained):
    path = Path(trained.work_dir, 'metrics.json')
    before = json.loads(path.read_text())['history']
    path.write_text('torn')
    build_runner(changed(trained, 'torn', **{'train_cfg.max_epochs': 3, 'resume': True})).train()
    history = json.loads(path.read_text())['history']
    assert [epoch for epoch, _ in history['accuracy/top1']] == [1, 2, 3]
    assert history['accuracy/top1'][:2] == before['accuracy/top1']


@pytest.mark.nightly
def test_flexible_runner_trains_and_resumes(trained, tmp_path):
    canary = tmp_path / 'canary'
    cfg = read_config(
        'configs/hybrid_vit/hybrid-vit-mini-p2_1xb16_digits.py',
        {
            'train_dataloader.dataset.indices': 32,
            'val_dataloader.dataset.indices': 30,
            'train_cfg.max_epochs': 1,
            'log_level': 'WARNING',
        },
    )
    cfg.merge_from_dict(
        dict(
            runner_type='FlexibleRunner',
            strategy=dict(type='SingleDeviceStrategy'),
            work_dir=str(tmp_path / 'flexible'),
            launcher='none',
            experiment_name='flexible',
        )
    )
    apply_loader_defaults(cfg)
    cfg.custom_hooks, cfg.param_scheduler = [], None
    build_runner(cfg.copy()).train()
    path = tmp_path / 'flexible/epoch_1.pth'
    checkpoint = torch.load(path, weights_only=False)
    checkpoint['meta']['config'] = f"open({str(canary)!r}, 'w').close()"
    torch.save(checkpoint, path)
    cfg.merge_from_dict(
        {
            'resume': True,
            'load_from': str(path),
            'train_cfg.max_epochs': 2,
            'experiment_name': 'flexible2',
        }
    )
    with reading_safely():
        build_runner(cfg).train()
    assert not canary.exists()


def test_resume_without_a_checkpoint_starts_from_begin_from(tmp_path, monkeypatch):
    first = build(tiny_cfg(tmp_path / 'first'))
    weights = {name: value.clone() for name, value in first.model.state_dict().items()}
    torch.save(dict(state_dict=weights), tmp_path / 'weights.pth')
    runner = build(
        tiny_cfg(
            tmp_path / 'second',
            resume=True,
            begin_from=str(tmp_path / 'weights.pth'),
            randomness=dict(seed=8),
            custom_hooks=[],
        )
    )
    messages: list[str] = []
    monkeypatch.setattr(runner.logger, 'info', messages.append)
    runner.load_or_resume()
    assert f'training starts with the weights of {tmp_path / "weights.pth"}.' in messages[0]
    assert all(
        torch.equal(value, weights[name]) for name, value in runner.model.state_dict().items()
    )


def test_resume_flag_turns_load_from_into_begin_from():
    from vit_plugin.commands import entry, train
    from vit_plugin.commands.command_line import apply_training_flags

    cfg = Config(dict(load_from='weights.pth', resume=False))
    apply_training_flags(cfg, entry.build_parser(train).parse_args(['config.py', '--resume']))
    assert (cfg.resume, cfg.load_from, cfg.begin_from) == (True, None, 'weights.pth')
    cfg = Config(dict(load_from='a.pth'))
    apply_training_flags(
        cfg, entry.build_parser(train).parse_args(['config.py', '--resume-changed'])
    )
    assert (cfg.resume, cfg.resume_changed, cfg.load_from) == (True, True, None)
