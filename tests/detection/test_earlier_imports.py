"""Modules that were imported before our ops get them afterward. Each test has its own process."""

import subprocess
import sys
from importlib.util import find_spec

import pytest

pytest.importorskip('mmdet')
pytest.importorskip('mmseg')
# Hides the ops of a compiled mmcv, which are in mmcv._ext.
HIDE_OPS = """if True:
    import sys
    sys.modules.pop('mmcv._ext', None)
    from importlib.machinery import PathFinder
    find = PathFinder.find_spec
    PathFinder.find_spec = lambda name, *args: None if name == 'mmcv._ext' else find(name, *args)
"""


def run(*lines: str) -> str:
    """Run lines of Python in a new process without mmcv's ops."""
    script = '\n    '.join([HIDE_OPS.rstrip(), *lines])
    done = subprocess.run(
        [sys.executable, '-W', 'ignore', '-c', script], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.nightly
def test_functions_that_raise_are_replaced_by_ops():
    run(
        'import mmdet.structures.mask.structures as masks',
        'before = masks.roi_align',
        'import vit_plugin.detection, mmcv.ops',
        'assert masks.roi_align is mmcv.ops.roi_align is not before',
    )


@pytest.mark.nightly
def test_classes_that_mmcv_leaves_out_are_added():
    run(
        'import mmcv.cnn.bricks.transformer, vit_plugin.detection',
        'from mmcv.cnn.bricks.transformer import MultiScaleDeformableAttention',
    )


@pytest.mark.nightly
def test_placeholders_and_base_classes_are_replaced_in_place():
    """Also after an import that failed halfway, as with transformers 5."""
    run(
        'from contextlib import suppress',
        'with suppress(Exception):',
        '    import mmseg.models',
        'import mmseg.models.decode_heads as heads',
        'before = heads.Mask2FormerHead',
        'import vit_plugin.detection, mmcv.ops, mmdet.models, mmpretrain.models',
        'import mmpretrain.models.utils as utils',
        'assert heads.point_head.point_sample is mmcv.ops.point_sample',
        'assert heads.Mask2FormerHead is before',
        'assert issubclass(before, mmdet.models.Mask2FormerHead)',
        'assert utils.ResLayerExtraNorm is utils.res_layer_extra_norm.ResLayerExtraNorm',
        'assert issubclass(utils.ResLayerExtraNorm, mmdet.models.ResLayer)',
        # A function of MMDetection of the same name, which is not an op.
        'from mmdet.structures.bbox import bbox_overlaps',
        'assert bbox_overlaps is not mmcv.ops.bbox_overlaps',
    )


@pytest.mark.nightly
@pytest.mark.skipif(not find_spec('transformers'), reason='the import does not fail')
def test_classes_registered_by_a_failed_import_are_registered_again():
    out = run(
        'from contextlib import suppress',
        'with suppress(Exception):',
        '    import mmpretrain.models',
        'from vit_plugin.importable import make_importable',
        'make_importable()',
        'import mmpretrain.models',
        'from mmpretrain.registry import MODELS',
        'print(MODELS.get("BlipCaption").__name__, MODELS.get("ImageClassifier").__name__)',
    )
    assert out.splitlines()[-1].split()[-1] == 'ImageClassifier'
