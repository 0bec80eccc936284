"""Build the package, install it into an empty environment, and use it there.

    python benchmarks wheel  # borrows the requirements of this environment: some minutes
    python benchmarks wheel --extras onedl demo   # installed from PyPI: some minutes
    python benchmarks wheel --mim            # also `mim train`, with openmim from PyPI

It builds the source distribution and the wheel by ``python -m build``, and works in an empty
folder, so that no file of the repository is used. After the steps, each command of
``vit-plugin --help`` does its smallest real work, see ``every_command``. It prints a line for each
step and its seconds, and ends with status 1 at the first that fails.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator
from pathlib import Path

from benchmarks.every_command import report

ROOT = Path(__file__).parents[1]
MINI = 'hybrid-vit-mini-p2_1xb16_digits'
SHORT = [
    '--cfg-options',
    'train_cfg.max_epochs=1',
    'train_dataloader.dataset.indices=64',
    'val_dataloader.dataset.indices=30',
    'test_dataloader.dataset.indices=30',
]
# MMPretrain's index of models must list those of the package.
MODEL_INDEX_SCRIPT = f"""
import mmpretrain, vit_plugin
assert 'site-packages' in vit_plugin.__file__, vit_plugin.__file__
vit_plugin.register_models()
assert 'hybrid-vit-base-r50-p16_8xb64-20k_in1k-384px' in mmpretrain.list_models('*r50*')
mmpretrain.get_model('{MINI}')
"""


def steps(folder: Path, extras: list[str], mim: bool) -> Iterator[tuple[str, list[str]]]:
    """The names of the steps, with their commands. Each sees the results of the earlier ones.

    Args:
        folder: the folder of the build, the environment, and ``here``, where the commands run.
        extras: extras to install; empty: the requirements are borrowed.
        mim: whether openmim is installed and used.
    """
    dist, scripts = folder / 'dist', folder / 'env/bin'
    config = f'vit_plugin::hybrid_vit/{MINI}.py'
    yield 'build', [sys.executable, '-m', 'build', '--outdir', str(dist), str(ROOT)]
    (wheel,) = dist.glob('*.whl')
    venv.create(folder / 'env', with_pip=True)
    if extras:
        yield (
            'install',
            [
                str(scripts / 'pip'),
                'install',
                f'{wheel}[{",".join(extras)}]',
                '-c',
                str(ROOT / 'tests/constraints.txt'),
            ],
        )
    else:
        (site,) = (folder / 'env/lib').glob('python*/site-packages')
        # A .pth file adds its lines to sys.path: here the packages of this environment.
        (site / 'borrowed.pth').write_text(
            '\n'.join(path for path in sys.path if path.endswith('site-packages'))
        )
        yield (
            'install',
            [str(scripts / 'pip'), 'install', '--no-deps', '--force-reinstall', str(wheel)],
        )
    yield 'help', [str(scripts / 'vit-plugin'), '--help']
    yield 'train', [str(scripts / 'vit-plugin'), 'train', config, *SHORT]
    (folder / 'here/mine.py').write_text(
        f"_base_ = '{config}'\nmodel = dict(backbone=dict(drop_rate=0.1))\n"
    )
    yield 'inherit', [str(scripts / 'vit-plugin'), 'train', 'mine.py', *SHORT]
    yield 'model index', [str(scripts / 'python'), '-W', 'ignore', '-c', MODEL_INDEX_SCRIPT]
    if mim:
        yield 'install openmim', [str(scripts / 'pip'), 'install', 'openmim', 'setuptools<81']
        yield (
            'mim train',
            [str(scripts / 'python'), '-m', 'mim', 'train', 'vit_plugin', f'{MINI}.py', *SHORT],
        )


def run(extras: list[str], mim: bool) -> int:
    """Go through the steps and the commands. Returns 1 if one fails."""
    variables = {
        name: value
        for name, value in os.environ.items()
        if name not in ('PYTHONPATH', 'VIRTUAL_ENV')
    }
    with tempfile.TemporaryDirectory() as folder:
        here, commands = Path(folder, 'here'), Path(folder, 'commands')
        here.mkdir()
        commands.mkdir()
        for name, command in steps(Path(folder), extras, mim):
            start = time.time()
            done = subprocess.run(command, cwd=here, env=variables, capture_output=True, text=True)
            print(
                f'{name}: {"ok" if not done.returncode else "FAILED"}, {time.time() - start:.0f} s',
                flush=True,
            )
            if done.returncode:
                print(done.stdout[-4000:], done.stderr[-4000:], sep='\n')
                return 1
        return report([f'{folder}/env/bin/vit-plugin'], commands, variables)


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__.partition('\n\n')[0])
    parser.add_argument(
        '--extras',
        nargs='+',
        default=[],
        help='install these extras and all requirements from PyPI',
    )
    parser.add_argument(
        '--mim', action='store_true', help='also install openmim and run `mim train`'
    )
    args = parser.parse_args()
    sys.exit(run(args.extras, args.mim))
