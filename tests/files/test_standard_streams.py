"""Commands with outputs that are not read to the end, closed, full, or of another encoding."""

import os
import signal
import subprocess
import sys

import pytest

# A program that prints, does some work, and prints again.
PROGRAM = """
import os, sys, time
from vit_plugin.files.standard_streams import is_read, set_up_streams
set_up_streams()
print('begins', flush=True)
{}
print('ends', flush=True)
open(os.environ['RESULT'], 'w').write(repr((is_read(), sys.stdout.fileno(), sys.stderr.fileno())))
"""


def shell(tmp_path, command: str, work: str = '', **env: str) -> subprocess.CompletedProcess:
    """Run the program with this work in place of ``{}`` in a command of bash."""
    (tmp_path / 'program.py').write_text(PROGRAM.format(work))
    env = {**os.environ, 'PYTHONPATH': os.getcwd(), 'RESULT': str(tmp_path / 'result'), **env}
    line = f'set -o pipefail; {command.format(f"{sys.executable} {tmp_path}/program.py")}'
    return subprocess.run(['bash', '-c', line], capture_output=True, env=env, timeout=60)


@pytest.mark.parametrize('unbuffered', ['', '1'])
def test_a_command_continues_after_its_reader_has_ended(tmp_path, unbuffered):
    work = 'time.sleep(0.5); print("x" * 100_000, flush=True)'
    done = shell(tmp_path, '{} | head -1', work, PYTHONUNBUFFERED=unbuffered)
    assert (done.returncode, done.stdout, done.stderr) == (0, b'begins\n', b'')
    assert (tmp_path / 'result').read_text() == '(False, 1, 2)'


@pytest.mark.parametrize('closed', ['>&-', '2>&-', '>&- 2>&-'])
def test_closed_outputs_are_replaced_by_null_devices(tmp_path, closed):
    work = 'file = open(sys.argv[0]); assert file.fileno() > 2; sys.stderr.write("message")'
    done = shell(tmp_path, f'{{}} {closed}', work)
    assert done.returncode == 0, done.stderr
    assert done.stdout == (b'begins\nends\n' if closed == '2>&-' else b'')
    assert done.stderr == (b'message' if closed == '>&-' else b'')
    assert (tmp_path / 'result').read_text() == '(True, 1, 2)'


@pytest.mark.parametrize('encoding', ['ascii', 'utf-8', 'latin-1'])
def test_letters_outside_the_encoding_are_escaped(tmp_path, encoding):
    work = r'print("ü 猫 \udcff")'
    done = shell(tmp_path, '{}', work, PYTHONIOENCODING=encoding)
    assert done.returncode == 0, done.stderr
    expected = 'ü 猫 \udcff'.encode(encoding, 'backslashreplace')
    assert done.stdout.splitlines()[1] == expected


@pytest.mark.skipif(not os.path.exists('/dev/full'), reason='needs /dev/full')
def test_a_full_disk_raises(tmp_path):
    done = shell(tmp_path, '{} > /dev/full')
    assert done.returncode
    assert b'No space left' in done.stderr


def test_vit_plugin_sets_up_its_streams(tmp_path):
    line = f'set -o pipefail; {sys.executable} -m vit_plugin --help | head -1'
    done = subprocess.run(['bash', '-c', line], capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, b'')


# A module of a command with this work.
COMMAND = """
import os, signal, sys
from vit_plugin.commands.entry import run_command
from vit_plugin.errors import ConfigError
from vit_plugin.files.standard_streams import set_up_streams

def add_arguments(parser):
    pass

def main(args):
    {}

def needs_torch(args):
    return {}

set_up_streams()
run_command(sys.modules[__name__])
"""


@pytest.mark.parametrize('needs_torch', [False, pytest.param(True, marks=pytest.mark.nightly)])
@pytest.mark.parametrize(
    ('work', 'status', 'message'),
    [
        ('os.kill(os.getpid(), signal.SIGINT)', 128 + signal.SIGINT, 'Interrupted.\n'),
        (
            r'raise ConfigError("a\x1b[2J\udcff is wrong.")',
            1,
            'Error: a\\x1b[2J\\udcff is wrong.\n',
        ),
    ],
)
def test_interrupts_and_errors_end_a_command(tmp_path, work, status, message, needs_torch):
    (tmp_path / 'command.py').write_text(COMMAND.format(work, needs_torch))
    done = subprocess.run(
        [sys.executable, str(tmp_path / 'command.py')],
        env={**os.environ, 'PYTHONPATH': os.getcwd()},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (status, message)
