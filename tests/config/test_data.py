"""Data sets in configs."""

import mmpretrain.datasets  # noqa: F401  # registers the steps
import pytest
from mmengine.config import ConfigDict
from mmengine.registry import DefaultScope

from vit_plugin.apps.images import ConfigPixels
from vit_plugin.config import read_config, with_pipeline
from vit_plugin.errors import ConfigError

PLAIN = ConfigDict(type='CustomDataset', pipeline=[])


@pytest.mark.parametrize('dataset', [
    PLAIN, ConfigDict(type='vit_plugin.stratified_subset', dataset=PLAIN),
    ConfigDict(type='RepeatDataset', dataset=dict(type='vit_plugin.stratified_subset', dataset=PLAIN))])
def test_the_pipeline_is_that_of_the_innermost_data_set(dataset):
    assert with_pipeline(dataset) == PLAIN


def test_several_data_sets_have_no_single_pipeline():
    with pytest.raises(ConfigError, match="'ConcatDataset' has no pipeline of its own; give a plain data set"):
        with_pipeline(ConfigDict(type='ConcatDataset', datasets=[PLAIN]))


def test_images_go_through_the_pipeline_inside_a_wrapper():
    cfg = read_config('configs/vit/vit-d6-w144-p4_1xb256-16e_cifar10-folder-choice.py')
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        steps = ConfigPixels(cfg).from_file.transforms
    assert [type(step).__name__ for step in steps] == ['LoadImageFromFile', 'PackInputs']
