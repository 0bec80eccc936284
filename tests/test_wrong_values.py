"""Wrong values for the arguments of every registered class; see support/wrong_values.py."""

from collections import Counter

import pytest
from wrong_values import RIGHT, cls_of, outcome, wrong_calls

from vit_plugin import registry

CALLS = list(wrong_calls())


def test_every_registered_class_is_tried():
    names = {
        name
        for value in vars(registry).values()
        if isinstance(value, registry.Registry)
        for name, cls in {
            **value.module_dict,
            **{name: value.get(name) for name in value.lazy_modules},
        }.items()
        if cls.__module__.startswith('vit_plugin.') and isinstance(cls, type)
    }
    # Classes that are tested elsewhere. The arguments of the runner are a whole config, whose
    # values tests/support/bad_calls.py spoils.
    names -= {'Runner'}
    # These need files, and a run: tests/data, tests/from_folder.
    names -= {'DepthMaps', 'HuggingFaceImages', 'TiledCocoDataset', 'VolumeSlices'}
    names -= {'SlicedTestLoop', 'SlicedValLoop'}
    names -= {'FasterCocoMetric'}  # takes the arguments of MMDetection's CocoMetric
    names -= {'TransformersBackbone'}  # needs transformers: tests/projects/transformers_models
    assert {cls_of(name).__name__ for name in RIGHT} == names


@pytest.mark.parametrize('name', RIGHT)
def test_valid_values_work(name):
    assert outcome(name, RIGHT[name]) == ('works', '')


@pytest.mark.parametrize(
    'numbers',  # every 23rd call takes seconds
    [range(0, len(CALLS), 23), pytest.param(range(len(CALLS)), marks=pytest.mark.nightly)],
)
def test_wrong_values_raise_one_sentence(numbers):
    counts, others = Counter(), []
    for name, field, kwargs in (CALLS[number] for number in numbers):
        result, text = outcome(name, kwargs)
        counts[result] += 1
        if result not in ('sentence', 'works'):
            others.append(f'{name}({field}): {result}, {text}')
    assert not others
    # Some of the values are valid for some arguments.
    assert counts['sentence'] >= 0.95 * len(numbers)
