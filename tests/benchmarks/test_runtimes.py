"""A file's boxes from another runtime, and the sentence of one that does not run."""

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
    found = ExportedModel(DEMO_ONNX, InOnnxruntime(DEMO_ONNX, threads=1))(image)
    wanted = ExportedModel(DEMO_ONNX)(image)
    np.testing.assert_allclose(found.boxes, wanted.boxes, atol=0.1)
    assert found.names == wanted.names


def test_a_row_has_its_time_and_size_or_its_error():
    given = runtimes.inputs_of(ExportedModel(DEMO_ONNX), np.zeros((240, 320, 3), np.uint8))
    row = runtimes.timed('mine', DEMO_ONNX, InOnnxruntime, 1, given, lambda model: 50.0)
    assert row.ms > 0
    assert str(row).startswith('| mine | ')
    assert str(row).endswith(' | 50.0 |')

    def broken(file: Path, threads: int) -> None:
        raise RuntimeError('no such layer\nmore')

    assert runtimes.timed('other', DEMO_ONNX, broken, 1, given, None) == (
        'other: RuntimeError: no such layer'
    )


def test_other_files_get_images_and_their_sizes():
    given = runtimes.random_inputs(DEMO_ONNX)
    images, sizes = given.values()
    assert images.shape[2:] == tuple(sizes[0])
    InOnnxruntime(DEMO_ONNX, threads=1)(given)
