"""A detector goes back into a folder that transformers reads, or a sentence says why not.

``test_published_d_fine.py`` compares with transformers.
"""

import vit_plugin.detection  # noqa: F401  isort: skip  before mmdet

import json

import pytest
from rejection import rejects
from safetensors.torch import load_file

from benchmarks import exported_families
from vit_plugin.deploy.hub.publishing import publish
from vit_plugin.weights.hub import HUB_CONFIG, HUB_WEIGHTS

pytestmark = pytest.mark.filterwarnings('ignore')
NEEDED = {'DEIMv2': 'deimv2', 'ECDet': 'ecdet', 'LW-DETR': 'lw_detr'}  # projects of families
STRETCH = exported_families.Test([dict(type='Resize', scale=(128, 64), keep_ratio=False)])


def checkpoint(family: str, folder, **changes) -> str:
    if family in NEEDED:
        pytest.importorskip(f'vit_plugin.projects.{NEEDED[family]}')
    test = STRETCH._replace(model=dict(model=changes))
    return str(exported_families.save(family, test, folder / 'epoch_1.pth'))


def test_a_folder_has_config_processor_and_weights(tmp_path):
    """It is read as a published one before it is there, and its outputs are compared."""
    said = publish(checkpoint('D-FINE', tmp_path), str(tmp_path / 'folder'), 'hf')
    assert 'read by vit_plugin and transformers, whose logits differ by up to' in said
    config = json.loads((tmp_path / 'folder' / HUB_CONFIG).read_text())
    assert config['architectures'] == ['DFineForObjectDetection']
    assert config['id2label'] == {'0': 'class 0', '1': 'class 1', '2': 'class 2'}
    assert config['decoder_n_points'] == [1, 2, 1]
    assert config['backbone_config']['out_indices'] == [2, 3, 4]
    processor = json.loads((tmp_path / 'folder' / 'preprocessor_config.json').read_text())
    assert processor['image_processor_type'] == 'RTDetrImageProcessor'
    assert processor['size'] == dict(height=64, width=128)
    names = load_file(tmp_path / 'folder' / HUB_WEIGHTS)
    assert 'model.decoder.layers.0.self_attn.q_proj.weight' in names


@pytest.mark.parametrize(
    ('family', 'words'),
    [
        ('DEIMv2', "has no decoder 'deimv2' on a SpatialTuningAdapter, as d_fine on HGNetV2, "),
        ('ECDet', "has no decoder 'ecdet' on a ECViT"),
        ('RT-DETR', "has no decoder 'rt_detr' on a HGNetV2"),
        ('LW-DETR', 'this is a detector with a LWDETRHead, whose folder is not written'),
    ],
)
def test_what_transformers_does_not_have_is_named(family, words, tmp_path):
    with rejects(f'--to hf: .*{words}'):
        publish(checkpoint(family, tmp_path), str(tmp_path / 'folder'), 'hf')
    assert not (tmp_path / 'folder').exists()


def test_timm_has_no_detectors_and_ours_always_has(tmp_path):
    source = checkpoint('ECDet', tmp_path)
    with rejects('--to timm: timm has no detectors'):
        publish(source, str(tmp_path / 'folder'), 'timm')
    assert 'by no other library' in publish(source, str(tmp_path / 'folder'))


def test_images_that_keep_their_ratio_are_named(tmp_path):
    test = exported_families.Test([dict(type='Resize', scale=(128, 64), keep_ratio=True)])
    source = str(exported_families.save('D-FINE', test, tmp_path / 'epoch_1.pth'))
    with rejects('--to hf: its pipeline .* is not a resize'):
        publish(source, str(tmp_path / 'folder'), 'hf')
