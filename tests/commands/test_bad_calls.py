"""Invalid calls of each tool end in one sentence that names the mistake."""

import resource
import socket
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from bad_calls import Call, calls, prepare

TOOLS = ('train', 'test', 'infer', 'convert', 'export')
QUICK_CALLS = 15  # number of calls, spread over all, in the test that does not run only nightly


@pytest.fixture(scope='module')
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp('bad')
    prepare(folder)
    return folder


@pytest.fixture
def taken_port() -> Iterator[str]:
    with socket.socket() as listener:
        listener.bind(('127.0.0.1', 0))
        listener.listen()
        yield str(listener.getsockname()[1])


@pytest.fixture
def outcome(run_command, monkeypatch, taken_port) -> Callable[[Call], tuple[str, str]]:
    """A function that runs a call, and returns how it ends and its last line.

    It ends in a 'sentence' with the expected word, a 'vague' one without it, a 'traceback', or, if
    there is no error at all, it 'ran on'.
    """

    def run(call: Call) -> tuple[str, str]:
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        with monkeypatch.context() as patch:
            for name, value in call.environment.items():
                patch.setenv(name, value.format(taken=taken_port))
            try:
                if call.full_disk:
                    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 14, limits[1]))
                done = run_command(call.tool, *call.arguments)
            except BaseException as error:  # what a user would see as a traceback
                return 'traceback', f'{type(error).__name__}: {error}'
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        if done.returncode == 0:
            return 'ran on', done.stdout[-200:]
        last = (done.stderr.strip() or ' ').splitlines()[-1]
        is_sentence = last.startswith('Error: ') or (done.returncode == 2 and 'error: ' in last)
        if not is_sentence:
            return 'traceback', last
        return 'sentence' if call.word in last else 'vague', last

    return run


@pytest.mark.filterwarnings('ignore')
def test_some_bad_calls_end_in_one_sentence(folder, outcome):
    quick_tools = TOOLS[:4]  # without export
    all_calls = list(calls(folder, quick_tools))
    for call in all_calls[7 :: len(all_calls) // QUICK_CALLS]:
        assert outcome(call)[0] == 'sentence', (str(call), outcome(call))


@pytest.mark.nightly
@pytest.mark.filterwarnings('ignore')
def test_bad_calls_end_in_one_sentence(folder, outcome):
    counts, others = {tool: Counter() for tool in TOOLS}, []
    for call in calls(folder, TOOLS):
        result, last = outcome(call)
        counts[call.tool][result] += 1
        if result != 'sentence':
            others.append(f'{result}: {call}: {last}')
            print(others[-1], file=sys.__stdout__, flush=True)
    for tool, count in counts.items():
        print(f'{tool}: {dict(count)}', file=sys.__stdout__)
    total = sum(counts.values(), Counter())
    print(f'all: {dict(total)}', file=sys.__stdout__, flush=True)
    assert total.total() >= 126  # no call was left out
    assert total['sentence'] >= 0.95 * total.total(), '\n'.join(others)
