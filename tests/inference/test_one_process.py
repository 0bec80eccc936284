"""Models of all tasks predict the same in one process as in a process of their own."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

pytest.importorskip('mmdet')
pytest.importorskip('mmseg')
from published_models import transformers_folder

from benchmarks import exported_families

SCRIPT = Path('tests/support/one_process.py')
pytestmark = pytest.mark.filterwarnings('ignore')  # of the frameworks
STRETCH = exported_families.TestSettings([dict(type='Resize', scale=(64, 64), keep_ratio=False)])
FAMILIES = dict(classifier='several labels', detector='Faster R-CNN', segmentor='UPerNet')
DEPTH = exported_families.segmentor(
    exported_families.VIT,
    type='vit_plugin.LinearDepthHead',
    in_channels=[32],
    max_depth=10.0,
    num_bins=8,
)
# Modules that a user may have imported before.
IMPORTED_FIRST = ('mmpretrain', 'mmpretrain.models', 'mmdet.apis', 'mmdet.models', 'mmseg.apis')
PAIR = ('classifier', 'detector')


def saved(families: Iterable[str], folder: Path) -> dict[str, str]:
    """Save a model of each family, and return the paths by name."""
    paths = {name: folder / f'{name}.pth' for name in families}
    for name, path in paths.items():
        exported_families.save(FAMILIES.get(name, name), STRETCH, path)
    return {name: str(path) for name, path in paths.items()}


@pytest.fixture(scope='module')
def pair(tmp_path_factory) -> dict[str, str]:
    """A model of each task of :data:`PAIR`."""
    return saved(PAIR, tmp_path_factory.mktemp('pair'))


@pytest.fixture(scope='module')
def models(pair, tmp_path_factory) -> dict[str, str]:
    """A model of each task, and one in a folder of transformers."""
    folder = tmp_path_factory.mktemp('models')
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(
            exported_families.FAMILIES, 'depth', ('mmseg', dict(DEPTH, type='DepthEstimator'))
        )
        paths = saved(['depth', 'segmentor'], folder)
    content = torch.load(folder / 'depth.pth')
    del content['meta']['dataset_meta']  # depth has no classes
    torch.save(content, folder / 'depth.pth')
    return {**pair, **paths, 'hub': str(transformers_folder(folder / 'hub', 'LwDetr'))}


def predicted(how: str, models: dict[str, str], *imports: str) -> dict[str, str]:
    """Predictions by a function of the script, in a new process that first imports modules."""
    command = [sys.executable, '-W', 'ignore', str(SCRIPT), how, json.dumps(models), *imports]
    # A process forked from one that computed with several threads has one, and rounding depends on
    # their number.
    one_thread = os.environ | {'OMP_NUM_THREADS': '1'}
    done = subprocess.run(command, capture_output=True, text=True, env=one_thread)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope='module')
def alone(models) -> dict[str, str]:
    """The predictions of each model alone; the script also checks them in all orders."""
    return predicted('in_all_orders', models)


def test_a_classifier_and_a_detector_in_all_orders(pair):
    assert predicted('in_all_orders', pair).keys() == pair.keys()


@pytest.mark.nightly
def test_all_tasks_in_all_orders(alone, models):
    assert alone.keys() == models.keys()


@pytest.mark.nightly
@pytest.mark.parametrize('module', [*IMPORTED_FIRST, *filter(find_spec, ['transformers'])])
def test_predictions_after_an_import_that_may_fail(alone, models, module):
    assert predicted('in_order', models, module) == alone


@pytest.mark.nightly
@pytest.mark.parametrize('how', ['in_threads', 'in_fork', 'in_spawn'])
def test_predictions_in_threads_and_child_processes(alone, models, how):
    assert predicted(how, models) == alone
