"""Errors of timm models that cannot be built name what asked for the model."""

import pytest
import timm
from rejection import rejects
from torch import nn

from vit_plugin.zoo.feature_maps import build_timm


@pytest.mark.parametrize(
    ('options', 'words'),
    [
        ({}, r"Distiller: teacher='a': timm cannot build this model \(no such argument\)"),
        (dict(in_chans=1), r"Distiller: teacher='a' rejects one of in_chans \(no such argument\)"),
    ],
)
def test_rejected_options_are_named_only_if_given(monkeypatch, options, words):
    def create_model(*args, **kwargs):
        raise TypeError('no such argument')

    monkeypatch.setattr(timm, 'create_model', create_model)
    with rejects(words):
        build_timm('a', 'Distiller: teacher', **options)


def test_a_model_without_feature_maps_names_the_subject(monkeypatch):
    monkeypatch.setattr(timm, 'create_model', lambda *args, **kwargs: nn.Identity())
    with rejects("^stem of arch='a': this model of timm .* does not return feature maps"):
        build_timm('a', 'stem of arch')


def test_a_hub_that_cannot_be_read_is_named(monkeypatch):
    def create_model(*args, **kwargs):
        raise OSError('401 Client Error')

    monkeypatch.setattr(timm, 'create_model', create_model)
    with rejects(r"^TimmBackbone: model_name='hf-hub:a/b': 401 Client Error; timm"):
        build_timm('hf-hub:a/b')
