"""The pixels of a config are compared with those that its weights expect."""

from types import SimpleNamespace

import pytest

from vit_plugin.doctor.pixel_checks import wrong_normalization

HALF = [127.5] * 3


@pytest.mark.parametrize(
    ('pixels', 'normalizes', 'words'),
    [
        (dict(mean=HALF, std=[127.5]), False, ''),  # one deviation is that of all channels
        (dict(mean=HALF, std=[58.0]), False, 'where vit.pth expects mean=[127.5, 127.5, 127.5]'),
        (dict(mean=127.5, std=127.5), False, ''),
        (dict(mean=HALF, std=[58.0] * 2), False, ''),  # no model can be built with it
        (dict(mean=[0.0] * 3, std=[1.0] * 3), True, ''),  # the preprocessor changes nothing
        (dict(mean=[0.0] * 3, std=[255.0] * 3), True, 'normalized twice'),
    ],
)
def test_mean_and_deviation_may_be_written_in_several_ways(pixels, normalizes, words, monkeypatch):
    half = dict(mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5))
    monkeypatch.setattr('vit_plugin.doctor.pixel_checks.known_mean_std', lambda *_: half)
    examined = SimpleNamespace(
        backbone=dict(arch='B/16'),
        preprocessor=pixels,
        find_sources=lambda module: [SimpleNamespace(checkpoint=None, name='vit.pth')],
        pipeline=lambda split: [dict(type='mmcv.Normalize')] if normalizes else [],
    )
    findings = [fault for fault, _ in wrong_normalization(examined)]
    assert bool(findings) == bool(words)
    assert words in ' '.join(findings)


@pytest.mark.parametrize(
    ('backbone', 'arch'),
    [({}, None), (dict(arch='S/16'), 'S/16'), (dict(model_name='resnet50'), 'timm://resnet50')],
)
def test_only_a_model_name_is_taken_for_one_of_timm(backbone, arch, monkeypatch):
    """A backbone with neither has the default arch, which says nothing about pixels."""
    asked: list[str | None] = []
    monkeypatch.setattr(
        'vit_plugin.doctor.pixel_checks.known_mean_std', lambda name, _: asked.append(name) or {}
    )
    examined = SimpleNamespace(
        backbone=backbone,
        preprocessor=dict(mean=HALF, std=HALF),
        find_sources=lambda module: [SimpleNamespace(checkpoint=None, name='vit.npz')],
        pipeline=lambda split: [],
    )
    assert [*wrong_normalization(examined)] == []
    assert asked == [arch]
