import pytest
from rejection import rejects

from benchmarks.measuring import one_image
from benchmarks.measuring.latency import (
    VARIANTS,
    Latency,
    as_markdown,
    latency,
)


def test_latency_is_the_median_of_the_rounds_after_a_warm_up(monkeypatch):
    now = 0.0
    seconds = iter((50, 50, 50, 1, 9, 2))  # of three calls to warm up, and of three rounds

    def call() -> None:
        nonlocal now
        now += next(seconds)

    monkeypatch.setitem(one_image.RUNTIMES, 'eager', lambda *args: call)
    monkeypatch.setattr(one_image, 'perf_counter', lambda: now)
    result = one_image.measure('eager', 'B/16', 224, 1, 3)
    assert result['ms'] == 2000
    assert 10 < result['mib'] < 1e6


def test_rows_are_formatted_as_markdown():
    row = Latency(
        'B/16', 224, 86_000_000, dict.fromkeys(VARIANTS, 12.34), dict.fromkeys(VARIANTS, 512.6)
    )
    assert as_markdown([row]).splitlines() == [
        '| model | pixels | M parameters | eager, ms | ONNX, ms | int8, ms '
        '| eager, MiB | ONNX, MiB | int8, MiB |',
        '|---|--:|--:|--:|--:|--:|--:|--:|--:|',
        '| `B/16` | 224 | 86.0 | 12.3 | 12.3 | 12.3 | 513 | 513 | 513 |',
    ]


@pytest.mark.nightly
@pytest.mark.filterwarnings('ignore')
def test_each_runtime_is_measured_in_its_own_process():
    pytest.importorskip('onnxruntime')
    result = latency('timm://test_vit', 32, threads=1, rounds=2)
    assert result.parameters > 300_000
    assert result.ms.keys() == result.mib.keys() == VARIANTS.keys()
    assert all(0 < value < 1e4 for value in result.ms.values())
    assert result.mib['ONNX'] < result.mib['eager']


def test_a_failing_process_raises_one_sentence(monkeypatch, tmp_path):
    pytest.importorskip('onnxruntime')
    monkeypatch.setattr('benchmarks.measuring.latency.export', lambda *args: None)
    monkeypatch.setitem(VARIANTS, 'eager', ('onnx', 'float32'))
    with rejects('--latency: .*float32.onnx by onnx ended with status 1'):
        latency('timm://test_vit', 32, threads=1, rounds=1)
