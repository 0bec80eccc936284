"""Test transforms of classifiers follow the preprocessing of the weights."""

from types import SimpleNamespace

import pytest

from vit_plugin.from_folder import classifier_images
from vit_plugin.from_folder.classifier_images import evaluation_pipeline


@pytest.mark.parametrize(
    ('crop_mode', 'steps', 'warned'),
    [
        ('center', ['ResizeEdge', 'CenterCrop'], False),
        ('squash', ['Resize', 'CenterCrop'], False),
        ('border', ['ResizeEdge', 'CenterCrop'], True),
    ],
)
def test_a_crop_mode_that_pads_is_replaced_with_a_warning(monkeypatch, crop_mode, steps, warned):
    lines: list[str] = []
    monkeypatch.setattr(classifier_images, 'print_log', lambda text, *_: lines.append(text))
    start = SimpleNamespace(pixels=dict(crop_mode=crop_mode, crop_pct=0.5, interpolation='bicubic'))
    pipeline = evaluation_pipeline(start, 32)
    assert [step['type'] for step in pipeline[1:-1]] == steps
    assert [line for line in lines if 'crop_mode border' in line] == lines
    assert bool(lines) == warned
