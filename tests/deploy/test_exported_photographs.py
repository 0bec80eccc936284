"""An exported file and its checkpoint give the same answers for photographs of several shapes."""

from pathlib import Path
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
import torch
from rejection import rejects

from vit_plugin.deploy import exported_photographs
from vit_plugin.deploy.exported_photographs import PHOTOGRAPH_SIZES, compare_photographs
from vit_plugin.deploy.input_sizes import padding_of
from vit_plugin.models import VisionTransformer

SHRUNK = 5  # factor by which the pipeline reduces the sides
PATCH = 16


class Model:
    """A model that reduces images and returns a score; an exported file if its score is another."""

    channels, outputs_predictions, facts = 3, True, dict(patch=PATCH)
    prediction_class = SimpleNamespace(has_threshold=False)

    def __init__(self, tiny: dict, score: float = 0.5, unit: int = 1) -> None:
        arch = dict(tiny['arch'], patch_size=PATCH)
        self.model = SimpleNamespace(
            backbone=VisionTransformer(**dict(tiny, arch=arch)),
            data_preprocessor=SimpleNamespace(pad_size_divisor=unit),
        )
        self.score = score

    def apply_pipeline(self, image: np.ndarray) -> SimpleNamespace:
        return SimpleNamespace(pixels=cv2.resize(image, None, fx=1 / SHRUNK, fy=1 / SHRUNK))

    def sample(self, path: str) -> dict:
        pixels = self.apply_pipeline(exported_photographs.read_image(path)).pixels
        return dict(inputs=torch.from_numpy(pixels).permute(2, 0, 1))

    def __call__(self, image: str | np.ndarray) -> SimpleNamespace:
        if isinstance(image, str):
            image = exported_photographs.read_image(image)
        size = padding_of(self.model).padded_size(self.apply_pipeline(image).pixels.shape[:2])
        self.model.backbone.patch_embed.check_image_size(size)
        return SimpleNamespace(
            score=self.score, difference_from=lambda other: abs(other.score - self.score)
        )


@pytest.fixture
def compare(tiny, monkeypatch):
    def compare(score: float = 0.5, unit: int = 1) -> str:
        exported = Model(tiny, score, unit)
        monkeypatch.setattr(exported_photographs, 'ExportedModel', lambda file: exported)
        return compare_photographs(Model(tiny, unit=unit), Path('model.onnx'))

    return compare


def test_photographs_smaller_than_a_patch_are_left_out(compare):
    large = [size for size in PHOTOGRAPH_SIZES if round(min(size) / SHRUNK) >= PATCH]
    assert 0 < len(large) < len(PHOTOGRAPH_SIZES)
    assert f'On {len(large)} photographs of several shapes, its pixels differ' in compare()
    # A preprocessor that pads enlarges them.
    assert f'On {len(PHOTOGRAPH_SIZES)} photographs' in compare(unit=PATCH)


def test_other_answers_raise(compare):
    with rejects('does not match the checkpoint: .* its answers by up to 10.00%; nothing was'):
        compare(0.6)
