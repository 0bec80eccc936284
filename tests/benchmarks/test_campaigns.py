"""``python benchmarks`` lists the campaigns, and runs one by its name."""

import signal
import subprocess
import sys
from argparse import Namespace
from importlib import import_module

import pytest

from benchmarks import gpu


def run_benchmarks(*arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, 'benchmarks', *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_campaigns_are_listed_with_a_line_each():
    lines = run_benchmarks().stdout.splitlines()
    names = [line.split()[0] for line in lines]
    assert {'parity', 'kills', 'zoo'} <= set(names)
    assert not {'test_parity', 'slurm_cluster'} & set(names)  # modules without a program
    assert not {'label_readers', 'hub_reference'} & set(names)  # programs that others run
    assert all(len(line.split()) > 5 for line in lines)


@pytest.mark.parametrize('name', ['defaults', 'slices'])
def test_a_campaign_can_import_the_helpers_of_the_tests(name):
    assert f'usage: {name}.py' in run_benchmarks(name, '--help').stdout


def test_unknown_names_raise():
    done = run_benchmarks('parrity')
    assert done.returncode == 1
    assert "no campaign 'parrity'" in done.stderr


# Packages that a campaign imports, and that some rows of ``benchmarks matrix`` lack.
NEEDED = dict(exported=('onnx', 'onnxruntime'), depth=('skimage', 'mmseg'))


@pytest.mark.parametrize(
    ('line', 'words'),
    [
        ('kills --launches fsdp', "invalid choice: 'fsdp'"),
        ('limit --modes training', "invalid choice: 'training'"),
        ('gpu eagr', "there is no part 'eagr'; give some of tests, eager"),
        ('plan --only none', '--only none: the settings are S/16, FSDP2;'),
        ('zoo --names none*', '--names none*: no name of timm matches it'),
        ('busy --only boxes', '--only boxes reads the folder of --boxes'),
        ('exported --others x.onnx', '--others x.onnx=.: give NAME=FILE'),
        ('depth --picture none/x.png', '--picture none/x.png: give a name like x.png'),
        ('defaults few x', 'few takes two folders, the source first'),
        ('defaults scenes x y', 'scenes takes one folder'),
        ('defaults thin x --seed 1', '--seed is of few, and not of thin'),
        ('defaults few x y --hold-out', '--hold-out is of coco, and not of few'),
    ],
)
@pytest.mark.filterwarnings('ignore')
def test_arguments_without_an_effect_raise(line, words, monkeypatch, capsys):
    name, *arguments = line.split()
    for package in NEEDED.get(name, ()):
        pytest.importorskip(package)
    monkeypatch.setattr(sys, 'argv', [name, *arguments])
    with pytest.raises(SystemExit) as end:
        import_module(f'benchmarks.{name}').main()
    assert end.value.code == 2
    assert words in capsys.readouterr().err


def test_trainings_on_a_gpu_take_their_data_from_the_folder_of_the_flag():
    (command,) = gpu.PARTS['cifar10']
    for words in (command.argv, command.tiny):
        for split in ('train', 'val', 'test'):
            assert f'{split}_dataloader.dataset.data_root={{data}}/cifar10-jpeg' in words


def test_a_command_on_a_gpu_that_does_not_end_by_sigterm_is_killed(monkeypatch, tmp_path):
    monkeypatch.setattr(gpu, 'TIMEOUT', 0.1)
    monkeypatch.setattr(gpu, 'GRACE', 0.1)
    command = gpu.Command('sleep', ('-c', 'import time; time.sleep(60)'))
    handler = signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the command inherits it
    try:
        text = gpu.run(command, 'sleep', Namespace(out=tmp_path, data=tmp_path, tiny=False))
    finally:
        signal.signal(signal.SIGTERM, handler)
    assert text.startswith('ended with status -9')
