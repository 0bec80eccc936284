"""The programs of docs/deployment.md, on exported files, against the predictions of ``infer``."""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
import pages
import pytest

from anyfolder.pixels.images import read_image
from benchmarks import exported_families as families
from benchmarks.exported_answers import CLASSIFIERS_TESTS, KEEP, STRETCH
from vit_plugin.__main__ import main as command
from vit_plugin.deploy.exported_model import ExportedModel

PAGE = 'docs/deployment.md'
SHAPES = [(96, 128), (128, 96), (100, 100), (61, 300)]
SCORE_THR = 0.3
PADDED = dict(size_divisor=32)
# The crop leaves out 3 pixels, an odd number, which transformers rounds down.
OF_TRANSFORMERS = [
    dict(type='ResizeEdge', scale=67),
    dict(type='vit_plugin.FloorCenterCrop', crop_size=64),
]
# Families of models, and the test pipeline of each.
CASES = {
    'RetinaNet, stretched': ('RetinaNet', families.TestSettings(STRETCH)),
    'RetinaNet, stretched and padded': ('RetinaNet', families.TestSettings(STRETCH, PADDED)),
    'RetinaNet': ('RetinaNet', families.TestSettings(KEEP, PADDED)),
    'RF-DETR': ('RF-DETR', families.TestSettings(STRETCH)),
    'classifier': ('class token', CLASSIFIERS_TESTS['edge and crop']),
    'classifier of transformers': ('class token', families.TestSettings(OF_TRANSFORMERS)),
    'SegFormer': ('SegFormer', families.TestSettings(KEEP, PADDED)),
    'depth': ('depth', families.TestSettings(KEEP, PADDED)),
}
TASK_OF_FAMILY = {'class token': 'classifier', 'SegFormer': 'segmentor', 'depth': 'depth'}
HEADER_FOLDERS = '/usr/include/onnxruntime', '/usr/include/opencv4'  # Debian's
LIBRARIES = 'onnxruntime', 'opencv_imgcodecs', 'opencv_imgproc', 'opencv_core'

pytestmark = [
    pytest.mark.filterwarnings('ignore'),  # of the frameworks
    pytest.mark.nightly,
    pytest.mark.skipif(
        not all(map(find_spec, ('mmdet', 'mmseg', 'onnxruntime', 'onnxscript'))),
        reason='needs MMDetection, MMSegmentation and the extra export',
    ),
]


class Programs(NamedTuple):
    """The page's Python: a common beginning, the end for each task, and the line of each runtime.

    A program is the beginning, in which the line of a runtime replaces onnxruntime's, and an end.
    """

    beginning: str
    ends: dict[str, str]
    runtimes: dict[str, str]

    def of(self, task: str, runtime: str) -> str:
        run = self.runtimes['onnxruntime']
        assert run in self.beginning
        return self.beginning.replace(run, self.runtimes[runtime]) + self.ends[task]


def programs() -> Programs:
    """Read the page, whose blocks of Python come in the order of the names below."""
    beginning, *others = (block.text for block in pages.blocks(PAGE, 'python'))
    ends = dict(zip(('detector', 'classifier', 'segmentor', 'depth'), others[:4], strict=True))
    lines = ['found = session.run(None, given)\n', *others[4:]]
    runtimes = dict(zip(('onnxruntime', 'openvino', 'cv2'), lines, strict=True))
    return Programs(beginning, ends, runtimes)


@pytest.fixture(scope='module', params=CASES)
def exported(request, tmp_path_factory) -> tuple[str, Path]:
    """The task and the file of a model, for images of one size."""
    folder = tmp_path_factory.mktemp('exported')
    family, test = CASES[request.param]
    checkpoint, file = families.save(family, test, folder / 'epoch_1.pth'), folder / 'model.onnx'
    assert command(['export', str(checkpoint), '--out', str(file)]) == 0
    return TASK_OF_FAMILY.get(family, 'detector'), file


def write_photographs(folder: Path) -> list[Path]:
    """Write images of the sizes in SHAPES."""
    rng = np.random.default_rng(0)
    paths = []
    for number, shape in enumerate(SHAPES):
        image = cv2.resize(rng.integers(0, 256, (5, 6, 3), np.uint8), shape[::-1])
        paths.append(folder / f'{number}.png')
        cv2.imwrite(str(paths[-1]), image)
    return paths


def output_lines(program: list[str], folder: Path) -> list[str]:
    """Run a program, and return the lines that it prints."""
    return subprocess.run(
        program,
        cwd=folder,
        env=dict(os.environ, OMP_NUM_THREADS='1'),
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()


@pytest.mark.parametrize('runtime', ['onnxruntime', 'openvino', 'cv2'])
def test_programs_predict_as_infer(exported, tmp_path, runtime, request):
    if not find_spec(runtime) or (runtime == 'cv2' and cv2.__version__ < '5'):
        pytest.skip(f'needs {runtime}')
    if runtime == 'cv2' and request.node.callspec.params['exported'] == 'RF-DETR':
        pytest.skip('OpenCV 5.0 reads this graph and cannot run it, as the page says')
    task, file = exported
    model = ExportedModel(file)
    (tmp_path / 'program.py').write_text(programs().of(task, runtime))
    for path in write_photographs(tmp_path):
        lines = output_lines([sys.executable, 'program.py', str(file), path.name], tmp_path)
        COMPARE[task](model, path, lines)


def compare_boxes(model: ExportedModel, path: Path, lines: list[str]) -> None:
    """Compare printed boxes with those of the model."""
    rows = [line.rsplit(maxsplit=5) for line in lines]
    expected = model(read_image(path))
    likely = expected.scores >= SCORE_THR
    assert len(rows) == likely.sum() > 0
    boxes = np.array([[float(value) for value in row[2:]] for row in rows])
    distances = np.abs(boxes[:, None] - expected.boxes[likely]).max(-1)  # in pixels
    names = np.array([model.classes[label] for label in expected.labels[likely]])
    distances[np.array([name for name, *_ in rows])[:, None] != names] = np.inf
    # Each box is near one of the others. Boxes of equal scores may come in another order.
    assert max(distances.min(0).max(), distances.min(1).max()) < 0.2


def compare_classes(model: ExportedModel, path: Path, lines: list[str]) -> None:
    scores = {name: float(score) for name, score in (line.rsplit(maxsplit=1) for line in lines)}
    rows = model(read_image(path)).rows()
    assert scores == {row['class']: pytest.approx(row['score'], abs=2e-3) for row in rows}


def compare_maps(model: ExportedModel, path: Path, lines: list[str]) -> None:
    labels = cv2.imread(str(path.with_name('labels.png')), cv2.IMREAD_UNCHANGED)
    expected = model(read_image(path)).map
    assert labels.shape == expected.shape
    assert np.mean(labels != expected) < 1e-3


def compare_depths(model: ExportedModel, path: Path, lines: list[str]) -> None:
    expected = model(read_image(path)).depth
    np.testing.assert_allclose(np.load(path.with_name('depth.npy')), expected, rtol=1e-3)


COMPARE = dict(
    detector=compare_boxes, classifier=compare_classes, segmentor=compare_maps, depth=compare_depths
)


@pytest.fixture(scope='module')
def compiled(tmp_path_factory) -> str:
    """The compiled C++ program. CPPFLAGS and LDFLAGS may name further headers and libraries."""
    folder = tmp_path_factory.mktemp('compiled')
    [block] = pages.blocks(PAGE, 'cpp')
    (folder / 'detect.cpp').write_text(block.text)
    headers, library_folders = (
        os.environ.get(name, '').split() for name in ('CPPFLAGS', 'LDFLAGS')
    )
    compiler = ['g++', '-std=c++17', *headers, *(f'-I{folder}' for folder in HEADER_FOLDERS)]
    if (
        not shutil.which('g++')
        or subprocess.run(
            [*compiler, '-E', 'detect.cpp'], cwd=folder, capture_output=True, check=False
        ).returncode
    ):
        pytest.skip('needs g++ and the headers of onnxruntime and OpenCV')
    libraries = [f'-l{name}' for name in LIBRARIES]
    subprocess.run(
        [*compiler, 'detect.cpp', '-o', 'detect', *library_folders, *libraries],
        cwd=folder,
        check=True,
    )
    return str(folder / 'detect')


def test_the_cpp_program_predicts_as_infer(exported, compiled, tmp_path):
    task, file = exported
    if task != 'detector':
        pytest.skip('the program is for detectors')
    for path in write_photographs(tmp_path):
        compare_boxes(
            ExportedModel(file), path, output_lines([compiled, str(file), path.name], tmp_path)
        )
