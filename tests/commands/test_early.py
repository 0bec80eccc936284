"""Help and errors of command lines are printed without importing torch."""

import argparse
import json
import logging
import os
import subprocess
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path

import pytest
from rejection import rejects

from vit_plugin.commands import COMMANDS
from vit_plugin.commands.early import TIMM_STARTS, check_checkpoints, check_flags
from vit_plugin.commands.entry import silence_false_alarms
from vit_plugin.from_folder import methods
from vit_plugin.from_folder.choices import METHOD_NAMES
from vit_plugin.weights.published_run import TIMM_ADDRESSES

HEAVY = ['torch', 'mmengine', 'matplotlib', 'timm', 'torchao']
# Command line -> its status, and words of its output, where '.*' stands for other words. CONFIG
# stands for an existing file.
EXPECTED: dict[str, tuple[int, str]] = {
    '': (0, 'usage: vit-plugin COMMAND'),
    '--help': (0, 'usage: vit-plugin COMMAND'),
    **{f'{name} --help': (0, f'usage: vit-plugin {name}') for name in COMMANDS},
    'trian': (2, 'did you mean train?'),
    'qqq': (2, "no command 'qqq'; there are convert, "),
    'train': (1, 'Give a config, or --data with a folder of images.'),
    'train CONFIG --data .': (1, 'CONFIG does not go with --data; both say what to train'),
    'train --data . --patience 2 --no-validate': (1, '--patience does not go with --no-validate'),
    'train --data . --tiles 64': (1, '--tiles needs --task detection or instance'),
    'train --data . --arch= --epochs 1': (2, '--arch is empty; give a value, or leave it out'),
    'infer . --out=  x': (2, '--out is empty; give a value, or leave it out'),
    'train CONFIG --task detection': (1, '--task needs --data; change a config with'),
    'train --data . --epohcs 3': (2, '--epohcs; did you mean --epochs?'),
    'train --data . --epohcs=3': (2, '--epohcs; did you mean --epochs?'),
    'train --data . --zzz': (2, 'unrecognized arguments: --zzz\n'),
    'train --data . --task detecton': (1, 'pretraining; did you mean detection?'),
    'train --data . --task x': (1, "--task 'x' is not one of classification, .*, pretraining.\n"),
    'train --data . --task detection --model retinane': (1, 'did you mean retinanet?'),
    'train --data . --task detection --model mask-rcnn': (1, 'mask-rcnn is for --task instance'),
    'train --data . --model dino': (1, 'classification has one model around its backbone'),
    'train CONFIG --model dino': (1, '--model needs --data; change a config with'),
    'train CONFIG --batch-size 3': (1, '--batch-size needs --data'),
    'train CONFIG --check': (1, '--check needs --data'),
    'train --data not/there': (1, "--data: there is no folder 'not/there'."),
    'train --data doc': (1, "there is no folder 'doc'; did you mean 'docs'?"),
    'train --data README.md': (1, "--data: 'README.md' is a file; give the folder of the images"),
    'train --data /dev/null': (1, "--data: '/dev/null' is a file; give the folder of the images"),
    'train --data . --launcher pytorch': (1, 'has no RANK, so that this process was not started'),
    'train --data . --launcher slurm': (1, 'has no SLURM_PROCID, so that this process was not'),
    'test CONFIG . --launcher mpi': (1, 'has no OMPI_COMM_WORLD_RANK, so that this process was'),
    'train --data . --weights not/there': (1, "There is no checkpoint file 'not/there'."),
    'train --data . --teacher READMEmd': (1, "file 'READMEmd'; did you mean 'README.md'?"),
    'train CONFIG --resume not/there': (1, "There is no checkpoint file 'not/there'."),
    'train tests': (1, "'tests' is not a config, which is a file that ends in .py"),
    'train not_there.py': (1, "There is no config file 'not_there.py'"),
    'pretrain --data not/there': (1, "--data: there is no folder 'not/there'."),
    'pretrain --data . --method din': (1, 'did you mean dino?'),
    'plan CONFIG --gpus 8 --gpu-memry 80': (2, '--gpu-memry; did you mean --gpu-memory?'),
    'test not/there': (1, "There is no checkpoint file 'not/there'."),
    'test CONFIG not/there': (1, "There is no checkpoint file 'not/there'."),
    'test not_there.yml .': (1, "There is no config file 'not_there.yml'"),
    'export not/there --out x.onnx': (1, "There is no checkpoint file 'not/there'."),
    'probe not/there': (1, "There is no checkpoint file 'not/there'."),
    # Python 3.14 calls a file with such a name missing.
    f'infer {"x" * 300} setup.py': (1, "Error: .*xx'"),
    'test . --out x.json': (1, '--out-item pred is written as .pkl or .pickle'),
    'test . --out-item metrics': (1, '--out-item needs --out; leave it out'),
    'export . --out x.pt': (2, "'x.pt' must end in .pt2, .onnx or .xml"),
    'export . --out x.ONNX': (2, "'x.ONNX' must end in .pt2, .onnx or .xml"),
    'convert . --to timm --num-heads 7 --out x.npz': (1, '--num-heads needs --to jax'),
    'convert . --into not/there --out x.pth': (1, "There is no checkpoint file 'not/there'."),
    'infer . setup.py --out x.xyz': (
        2,
        "'x.xyz' ends in .xyz, which cannot be written; give a file in",
    ),
    'visualize . cam setup.py --out x.png': (2, 'give a folder, with a / at the end'),
    'plan CONFIG --gpus 0 --gpu-memory 8': (2, '--gpus: 0 is not 1 or more'),
    'plan CONFIG --gpus 1 --gpu-memory 1e300': (2, '1e300 is not between 0.1 and 1000000'),
    'plan CONFIG --gpus 1 --gpu-memory 8 --out x.csv': (2, "'x.csv' must end in .json"),
    'probe --config CONFIG --out x.txt': (2, "'x.txt' must end in .json"),
    'probe a b --config CONFIG': (1, 'probe takes one checkpoint'),
    'probe --config CONFIG --checkpoint best': (
        1,
        '--checkpoint needs CHECKPOINT; give the folder',
    ),
    # Images are looked for, too.
    'infer not/there none.jpg': (1, "There is no image 'none.jpg'."),
    'embed not/there none.jpg --out x.npz': (1, "There is no image 'none.jpg'."),
    'visualize not/there attention none.jpg --out x': (1, "There is no image 'none.jpg'."),
}
# Runs all command lines in one process, and prints their status, output and heavy imports.
RUN_ALL = """
import contextlib, io, json, sys
from vit_plugin.__main__ import main
results = {}
for line in json.load(sys.stdin):
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            status = main(line.replace('CONFIG', 'setup.py').split())
        except SystemExit as end:
            status = end.code or 0
    if isinstance(status, str):
        status, text = 1, status
    else:
        text = out.getvalue()
    results[line] = status, text, [name for name in HEAVY if name in sys.modules]
print(json.dumps(results))
"""


@pytest.fixture(scope='module')
def results() -> dict[str, list]:
    """The status, the output and the heavy imports of each command line, in a new process."""
    done = subprocess.run(
        [sys.executable, '-c', f'HEAVY = {HEAVY}\n{RUN_ALL}'],
        input=json.dumps([*EXPECTED]),
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize('line', EXPECTED)
def test_help_and_errors_need_no_torch(results, line):
    status, text, heavy_imports = results[line]
    expected_status, words = EXPECTED[line]
    assert (status, heavy_imports) == (expected_status, []), text
    assert words.partition('.*')[0] in f'{text}\n'
    assert words.rpartition('.*')[2] in f'{text}\n'


def test_a_removed_working_directory_raises_one_sentence(tmp_path):
    line = f'mkdir gone && cd gone && rmdir ../gone && {sys.executable} -m vit_plugin zoo'
    env = {**os.environ, 'PYTHONPATH': str(Path.cwd())}
    done = subprocess.run(line, shell=True, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith('Error: the working directory cannot be used (No such file')
    assert done.stderr.count('\n') == 1


def test_addresses_of_timm_equal_those_of_the_readers():
    assert (*TIMM_ADDRESSES,) == TIMM_STARTS


def test_names_of_methods_equal_those_of_the_table():
    assert (*methods.METHODS,) == METHOD_NAMES


@pytest.mark.parametrize(
    'path',
    [
        'timm://vit',
        'https://there.org/a.pth',
        f'https://there.org/a.pth?signature={"x" * 300}',
        'a.py',
        'vit_plugin::a.py',
        'README.md',
        'detector',
        *TIMM_STARTS,
    ],
)
def test_addresses_and_existing_files_pass_the_early_check(path, monkeypatch):
    monkeypatch.setattr('vit_plugin.commands.early.declared_rows', lambda table: ['detector'])
    for checkpoint in (path, [path]):
        check_checkpoints(argparse.Namespace(checkpoint=checkpoint, weights=None, resume='auto'))
    with rejects('no checkpoint file'):
        check_checkpoints(argparse.Namespace(checkpoint=[path, 'nope']))
    with rejects("'detectr'; did you mean 'detector'"):
        check_checkpoints(argparse.Namespace(checkpoint='detectr'))


def test_checkpoints_in_the_home_directory_pass_the_early_check(tmp_path, monkeypatch):
    """The shell does not expand ``--weights=~/model.pth``, and the readers of checkpoints do."""
    monkeypatch.setenv('HOME', str(tmp_path))
    (tmp_path / 'model.pth').touch()
    check_checkpoints(argparse.Namespace(weights='~/model.pth'))
    with rejects("no checkpoint file '~/other.pt'"):
        check_checkpoints(argparse.Namespace(weights='~/other.pt'))


@pytest.mark.nightly
@pytest.mark.skipif(not find_spec('torchao'), reason='torchao is not installed')
def test_torchao_is_imported_without_its_false_alarm():
    code = (
        'from vit_plugin.commands.entry import silence_false_alarms; silence_false_alarms(); '
        'import torchao'
    )
    done = subprocess.run([sys.executable, '-c', code], check=True, capture_output=True, text=True)
    assert 'KernelPreference' not in done.stderr


def test_other_messages_of_the_same_logger_are_kept(caplog):
    silence_false_alarms()
    logger = logging.getLogger('torch.utils._pytree')
    logger.warning('%s is an Enum subclass and is now natively supported', 'Kind')
    logger.warning('another')
    # Tests raise warnings as errors, unless they are filtered.
    warnings.warn('For binary segmentation, we suggest using', stacklevel=1)
    assert caplog.messages == ['another']


@pytest.mark.parametrize('words', [['--data', ''], ['--data', '  '], ['--data=  ']])
def test_blank_values_are_reported_with_their_flag(capsys, words):
    parser = argparse.ArgumentParser()
    parser.add_argument('--data')
    with pytest.raises(SystemExit):
        check_flags(parser, words)
    assert 'error: --data is empty; give a value' in capsys.readouterr().err
