import pytest
from rejection import rejects

from benchmarks.measuring import one_image
from benchmarks.measuring.latency import (
    WAYS,
    Latency,
    as_markdown,
    latency,
)


def test_the_median_of_the_rounds_after_a_warm_up(monkeypatch):
    now, calls = [0.0], []

    def call() -> None:
        calls.append(1)
        # Seconds of the warm-up, then of three rounds.
        now[0] += (50, 50, 50, 1, 9, 2)[len(calls) - 1]

    monkeypatch.setitem(one_image.RUNTIMES, 'eager', lambda *given: call)
    monkeypatch.setattr(one_image, 'perf_counter', lambda: now[0])
    found = one_image.measure('eager', 'B/16', 224, 1, 3)
    assert found['ms'] == 2000
    assert 10 < found['mib'] < 1e6


def test_table():
    row = Latency('B/16', 224, 86_000_000, dict.fromkeys(WAYS, 12.34), dict.fromkeys(WAYS, 512.6))
    assert as_markdown([row]).splitlines() == [
        '| model | pixels | M parameters | eager, ms | ONNX, ms | int8, ms '
        '| eager, MiB | ONNX, MiB | int8, MiB |',
        '|---|--:|--:|--:|--:|--:|--:|--:|--:|',
        '| `B/16` | 224 | 86.0 | 12.3 | 12.3 | 12.3 | 513 | 513 | 513 |',
    ]


@pytest.mark.nightly
@pytest.mark.filterwarnings('ignore')
def test_each_way_runs_in_its_process():
    pytest.importorskip('onnxruntime')
    found = latency('timm://test_vit', 32, threads=1, rounds=2)
    assert found.parameters > 300_000
    assert found.ms.keys() == found.mib.keys() == WAYS.keys()
    assert all(0 < value < 1e4 for value in found.ms.values())
    assert found.mib['ONNX'] < found.mib['eager']


def test_a_process_that_fails_is_a_sentence(monkeypatch, tmp_path):
    pytest.importorskip('onnxruntime')
    monkeypatch.setattr('benchmarks.measuring.latency.export', lambda *given: None)
    monkeypatch.setitem(WAYS, 'eager', ('onnx', 'float32'))
    with rejects('--latency: .*float32.onnx by onnx ended with status 1'):
        latency('timm://test_vit', 32, threads=1, rounds=1)
