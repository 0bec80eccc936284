"""The comparison of trainings on a busy machine: its table, its meter and its trainings."""

from pathlib import Path

import pytest

from benchmarks import busy
from benchmarks.busy_trainings import WARM_UP, Finished, Meter


def test_rates_are_compared_with_the_idle_rate_or_half_of_it():
    rates = {
        busy.RUNTIME_DEFAULT: dict(idle=[90, 100, 110], loop=[20]),
        'ours': dict(idle=[98], loop=[40]),
        'timm': dict(idle=[200], loop=[50]),
    }
    # In parentheses the median idle rate, or half of it under load, over the median rate. Our rows
    # are compared with the first one.
    assert [*busy.table(rates)][2:] == [
        '| default of the runtime | 100 (1.00) | 20 (2.50) |',
        '| ours | 98 (1.02) | 40 (1.25) |',
        '| timm | 200 (1.00) | 50 (2.00) |',
    ]
    without_idle = [*busy.table({busy.RUNTIME_DEFAULT: dict(loop=[20])})]
    assert without_idle[2:] == ['| default of the runtime | 20 |']


def test_images_are_counted_after_the_warm_up(monkeypatch, capsys):
    # The start, the end of the warm-up, a step, and a step after more than five seconds.
    clock = iter([10.0, 10.0 + WARM_UP, 15.0, 17.0 + WARM_UP])
    monkeypatch.setattr('time.perf_counter', lambda: next(clock))
    meter = Meter(5.0)
    for _ in range(3):
        meter.step(14)
    with pytest.raises(Finished):
        meter.step(14)
    begun, rate = capsys.readouterr().out.split()
    assert (begun, float(rate)) == ('begun', 28 / 7)


def test_rows_of_our_trainings_differ_in_the_environment():
    variants = busy.variants_of(busy.KINDS['boxes'], [8000], 'python-of-ultralytics')
    assert [*variants] == [
        'default of the runtime',
        'ours',
        '8,000 spins',
        'one thread',
        'ultralytics, yolo11n',
    ]
    assert variants['ours'].environment == {}
    assert 'timm' in busy.variants_of(busy.KINDS['small'], [], None)


@pytest.mark.nightly
@pytest.mark.parametrize(('name', 'library'), [('small', 'vit_plugin'), ('digits', 'timm')])
def test_trainings_of_both_libraries_are_measured(name, library, tmp_path):
    kind = busy.KINDS[name]
    data = busy.write_data(name, Path(tmp_path, 'data'), None)
    flags = kind.flags if library == 'vit_plugin' else kind.timm
    job = busy.Job(library, str(data), 0, 0.1, flags)
    variants = busy.variants_of(kind, [], None).values()
    variant = next(variant for variant in variants if variant.library == library)
    assert busy.images_per_second('training', variant, job) > 0
