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
            **{name: value.get(name) for name in value.later},
        }.items()
        if cls.__module__.startswith('vit_plugin.') and isinstance(cls, type)
    }
    # Its arguments are those of MMEngine's, a whole config: tests/support/bad_calls.py.
    names -= {'Runner'}
    # These need files, and a run: tests/data, tests/from_folder.
    names -= {'DepthMaps', 'HuggingFaceImages', 'TiledCocoDataset', 'VolumeSlices'}
    names -= {'SlicedTestLoop', 'SlicedValLoop'}
    names -= {'FasterCocoMetric'}  # whose arguments are those of MMDetection's
    names -= {'TransformersBackbone'}  # needs transformers: tests/projects/transformers_models
    assert {cls_of(name).__name__ for name in RIGHT} == names


@pytest.mark.parametrize('name', RIGHT)
def test_right_values_are_taken(name):
    assert outcome(name, RIGHT[name]) == ('works', '')


@pytest.mark.parametrize(
    'part', [range(0, len(CALLS), 23), pytest.param(range(len(CALLS)), marks=pytest.mark.nightly)]
)
def test_wrong_values_get_one_sentence(part):
    counts, others = Counter(), []
    for name, field, kwargs in (CALLS[i] for i in part):
        result, text = outcome(name, kwargs)
        counts[result] += 1
        if result not in ('sentence', 'works'):
            others.append(f'{name}({field}): {result}, {text}')
    assert not others
    assert counts['sentence'] >= 0.95 * len(part)
