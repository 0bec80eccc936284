"""Boxes of a file in different runtimes, and the errors of runtimes that fail."""

from importlib.util import find_spec
from pathlib import Path

import cv2
import numpy as np
import pytest

from vit_plugin.deploy.exported_model import ExportedModel
from vit_plugin.deploy.runtimes import InOnnxruntime
from vit_plugin.inference.demo_model import DEMO_IMAGES, DEMO_ONNX

if not find_spec('onnxruntime'):
    pytest.skip('onnxruntime is not installed', allow_module_level=True)
from benchmarks import runtimes


def test_a_runtime_gives_the_boxes_of_the_file():
    image = cv2.imread(str(min(DEMO_IMAGES.iterdir())))
    prediction = ExportedModel(DEMO_ONNX, InOnnxruntime(DEMO_ONNX, threads=1))(image)
    expected = ExportedModel(DEMO_ONNX)(image)
    np.testing.assert_allclose(prediction.boxes, expected.boxes, atol=0.1)
    assert prediction.names == expected.names


def test_a_row_has_times_or_the_error():
    inputs = runtimes.inputs_of(ExportedModel(DEMO_ONNX), np.zeros((240, 320, 3), np.uint8))
    row = runtimes.time_runtime('mine', DEMO_ONNX, InOnnxruntime, 1, inputs, lambda model: 50.0)
    assert row.ms > 0
    assert str(row).startswith('| mine | ')
    assert str(row).endswith(' | 50.0 |')

    def broken(file: Path, threads: int) -> None:
        raise RuntimeError('no such layer\nmore')

    def silent(file: Path, threads: int) -> None:
        raise AssertionError

    assert runtimes.time_runtime('other', DEMO_ONNX, broken, 1, inputs, None) == (
        'other: RuntimeError: no such layer'
    )
    assert (
        runtimes.time_runtime('other', DEMO_ONNX, silent, 1, inputs, None)
        == 'other: AssertionError: '
    )


def test_random_inputs_are_images_and_their_sizes():
    inputs = runtimes.random_inputs(DEMO_ONNX)
    images, sizes = inputs.values()
    assert images.shape[2:] == tuple(sizes[0])
    InOnnxruntime(DEMO_ONNX, threads=1)(inputs)
