"""Models of all tasks in one process give the answers that each gives alone."""

import json
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
STRETCH = exported_families.Test([dict(type='Resize', scale=(64, 64), keep_ratio=False)])
FAMILIES = dict(classifier='several labels', detector='Faster R-CNN', segmentor='UPerNet')
DEPTH = exported_families.segmentor(
    exported_families.VIT,
    type='vit_plugin.LinearDepthHead',
    in_channels=[32],
    max_depth=10.0,
    num_bins=8,
)
FIRST = ('mmpretrain', 'mmpretrain.models', 'mmdet.apis', 'mmdet.models', 'mmseg.apis')


PAIR = ('classifier', 'detector')


def saved(families: Iterable[str], folder: Path) -> dict[str, str]:
    """Files of models of these families, by the name of their task."""
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
        found = saved(['depth', 'segmentor'], folder)
    content = torch.load(folder / 'depth.pth')
    del content['meta']['dataset_meta']  # depth has no classes
    torch.save(content, folder / 'depth.pth')
    return {**pair, **found, 'hub': str(transformers_folder(folder / 'hub', 'LwDetr'))}


def predicted(how: str, models: dict[str, str], *first: str) -> dict[str, str]:
    command = [sys.executable, '-W', 'ignore', str(SCRIPT), how, json.dumps(models), *first]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope='module')
def alone(models) -> dict[str, str]:
    """What each predicts in a process of its own, which every order ends in, too."""
    return predicted('in_all_orders', models)


def test_a_classifier_and_a_detector(pair):
    assert predicted('in_all_orders', pair).keys() == pair.keys()


@pytest.mark.nightly
def test_in_every_order(alone, models):
    assert alone.keys() == models.keys()


@pytest.mark.nightly
@pytest.mark.parametrize('module', [*FIRST, *filter(find_spec, ['transformers'])])
def test_after_an_import_also_one_that_fails(alone, models, module):
    assert predicted('in_order', models, module) == alone


@pytest.mark.nightly
@pytest.mark.parametrize('how', ['in_threads', 'in_fork', 'in_spawn'])
def test_at_the_same_time_and_in_children(alone, models, how):
    assert predicted(how, models) == alone
