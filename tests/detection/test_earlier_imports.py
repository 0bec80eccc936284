"""What was imported before the ops has them afterward, in processes of their own."""

import subprocess
import sys
from importlib.util import find_spec

import pytest

pytest.importorskip('mmdet')
pytest.importorskip('mmseg')
# The test hides a compiled mmcv: without this module it has no ops.
BEFORE = """if True:
    import sys
    sys.modules.pop('mmcv._ext', None)
    from importlib.machinery import PathFinder
    find = PathFinder.find_spec
    PathFinder.find_spec = lambda name, *rest: None if name == 'mmcv._ext' else find(name, *rest)
"""


def run(*lines: str) -> str:
    script = '\n    '.join([BEFORE.rstrip(), *lines])
    done = subprocess.run(
        [sys.executable, '-W', 'ignore', '-c', script], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.nightly
def test_a_function_that_raises_becomes_the_op():
    run(
        'import mmdet.structures.mask.structures as masks',
        'before = masks.roi_align',
        'import vit_plugin.detection, mmcv.ops',
        'assert masks.roi_align is mmcv.ops.roi_align is not before',
    )


@pytest.mark.nightly
def test_what_mmcv_itself_lacks_is_there():
    run(
        'import mmcv.cnn.bricks.transformer, vit_plugin.detection',
        'from mmcv.cnn.bricks.transformer import MultiScaleDeformableAttention',
    )


@pytest.mark.nightly
def test_none_and_other_base_classes_are_replaced_and_classes_stay_the_same():
    """Also where an import has failed halfway, as beside transformers 5."""
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
        # Its own function, which is not an op.
        'from mmdet.structures.bbox import bbox_overlaps',
        'assert bbox_overlaps is not mmcv.ops.bbox_overlaps',
    )


@pytest.mark.nightly
@pytest.mark.skipif(not find_spec('transformers'), reason='nothing is left out')
def test_what_an_import_had_registered_before_it_failed_is_registered_again():
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
