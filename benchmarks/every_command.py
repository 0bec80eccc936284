"""Run every command of ``vit-plugin --help`` as a user would, each on its smallest real task.

    python benchmarks every_command    # this tree: some minutes
    python benchmarks wheel            # the same calls, from the installed wheel

Each command is a process of its own in one empty folder, and sees what the earlier ones have made.
A call passes if it succeeds and has written its result, or if it names the extra that is not
installed. Prints a line for each, and ends with status 1 if one is wrong.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.error import URLError
from urllib.request import urlopen

import numpy as np
from PIL import Image

TIMEOUT = 600.0  # seconds for one command
PORT = 7861  # of the demo
CONFIG, RUN, IMAGE = 'work_dirs/images/config.py', 'work_dirs/images', 'images/dark/0.png'
ARCH = '--arch timm://test_vit --img-size 32 --epochs 1'


class Call(NamedTuple):
    """A call of a command.

    Attributes:
        arguments: its arguments.
        made: the file that it makes.
        printed: words that it prints.
    """

    arguments: str
    made: str = ''
    printed: str = ''


CALLS = {
    'train': Call(f'--data images {ARCH}', f'{RUN}/epoch_1.pth'),
    'test': Call(f'{RUN} --out scores.json --out-item metrics', 'scores.json'),
    'infer': Call(f'{RUN} {IMAGE} --out found.json --out pictures', 'pictures/0.png'),
    'embed': Call(f'{RUN} images --out features.npz', 'features.npz'),
    'probe': Call(f'{RUN} --probes linear --out probed.json', 'probed.json'),
    'convert': Call(f'{RUN} model.safetensors', 'model.safetensors'),
    'export': Call(f'{RUN} model.onnx', 'model.onnx'),
    'visualize': Call(f'{RUN} attention {IMAGE} --out drawn', 'drawn/0_attention.png'),
    'pretrain': Call(f'--data images {ARCH} --work-dir pretrained', 'pretrained/epoch_1.pth'),
    'plan': Call(f'{CONFIG} --gpus 1 --gpu-memory 8 --out plan.json', 'plan.json'),
    'doctor': Call(RUN, printed='checks found nothing'),
    'zoo': Call('vit_tiny_patch16*', printed='vit_tiny_patch16_224'),
    'demo': Call(f'{RUN} --port {PORT}', printed='Interrupted.'),  # by finish()
}


def write_images(folder: Path) -> None:
    """Two classes of eight images of noise, light and dark."""
    rng = np.random.default_rng(0)
    for name, level in (('light', 130), ('dark', 0)):
        (folder / name).mkdir(parents=True)
        for number in range(8):
            pixels = rng.integers(level, level + 120, (24, 24, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / name / f'{number}.png')


def finish(process: subprocess.Popen, command: str) -> tuple[int, str]:
    """Wait for a command. Returns its exit status, 124 after a time-out, and its output.

    A demo does not end by itself: once its page answers, it is interrupted like by Ctrl+C.
    """
    end = time.monotonic() + TIMEOUT
    while command == 'demo' and process.poll() is None and time.monotonic() < end:
        try:
            with urlopen(f'http://127.0.0.1:{PORT}', timeout=10) as page:
                assert page.status == 200
        except (URLError, OSError):
            time.sleep(0.5)
        else:
            process.send_signal(signal.SIGINT)
            break
    try:
        output = process.communicate(timeout=max(end - time.monotonic(), 1))[0]
    except subprocess.TimeoutExpired:
        process.kill()
        return 124, process.communicate()[0]
    ended_by_us = command == 'demo' and process.returncode == 130
    return 0 if ended_by_us else process.returncode, output


def outcomes(
    program: Sequence[str], folder: Path, env: Mapping[str, str]
) -> Iterator[tuple[str, str, str]]:
    """Run all calls in order. Yields each command with its outcome and its output.

    Args:
        program: the words before a command, such as ``['vit-plugin']``.
        folder: an empty folder for the commands' files.
        env: environment variables.
    """
    write_images(folder / 'images')
    for command, call in CALLS.items():
        process = subprocess.Popen(
            [*program, command, *call.arguments.split()],
            cwd=folder,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        status, output = finish(process, command)
        is_made = (folder / call.made).exists() and call.printed in output
        if 'is not installed; ' in output and status == 1:
            yield command, 'says which extra it needs', output
        else:
            yield command, 'ok' if status == 0 and is_made else f'FAILED, status {status}', output


def report(program: Sequence[str], folder: Path, env: Mapping[str, str]) -> int:
    """Print the outcome of each command. Returns 1 if one fails."""
    failed = 0
    for command, outcome, output in outcomes(program, folder, env):
        print(f'{command}: {outcome}', flush=True)
        if outcome.startswith('FAILED'):
            print(output[-4000:])
            failed = 1
    return failed


if __name__ == '__main__':
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(report([sys.executable, '-m', 'vit_plugin'], Path(folder), os.environ))
