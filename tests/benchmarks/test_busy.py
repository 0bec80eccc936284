from pathlib import Path

import pytest

from benchmarks import busy
from benchmarks.busy_trainings import WARM_UP, Finished, Meter


def test_the_table_compares_rates_with_all_and_half_of_the_idle_rate():
    rates = {
        busy.BEFORE: dict(idle=[90, 100, 110], loop=[20]),
        'new': dict(idle=[98], loop=[40]),
        'timm': dict(idle=[200], loop=[50]),
    }
    # In parentheses the median idle rate, or half of it under load, over the median rate. Our rows
    # are compared with the first one.
    assert [*busy.table(rates)][2:] == [
        '| as it is | 100 (1.00) | 20 (2.50) |',
        '| new | 98 (1.02) | 40 (1.25) |',
        '| timm | 200 (1.00) | 50 (2.00) |',
    ]
    without_idle = [*busy.table({busy.BEFORE: dict(loop=[20])})]
    assert without_idle[2:] == ['| as it is | 20 |']


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
    ways = busy.ways_of(busy.KINDS['boxes'], [8000], 'python-of-theirs')
    assert [*ways] == ['as it is', 'new', '8,000 spins', 'one thread', 'ultralytics, yolo11n']
    assert ways['new'].environment == {}
    assert 'timm' in busy.ways_of(busy.KINDS['small'], [], None)


@pytest.mark.nightly
@pytest.mark.parametrize(('name', 'library'), [('small', 'vit_plugin'), ('digits', 'timm')])
def test_trainings_of_both_libraries_are_measured(name, library, tmp_path):
    kind = busy.KINDS[name]
    data = busy.write_data(name, Path(tmp_path, 'data'), None)
    flags = kind.flags if library == 'vit_plugin' else kind.timm
    job = busy.Job(library, str(data), 0, 0.1, flags)
    ways = [way for way in busy.ways_of(kind, [], None).values() if way.library == library]
    assert busy.images_per_second('training', ways[0], job) > 0
