"""A detector is published as a folder for transformers, or an error says why it cannot be.

``test_published_d_fine.py`` compares with transformers.
"""

import vit_plugin.detection  # noqa: F401  isort: skip  before mmdet

import json
from types import SimpleNamespace

import pytest
from extras import needs_task
from mmengine.registry import MODELS
from rejection import rejects
from safetensors.torch import load_file
from torch import nn

from benchmarks import exported_families
from vit_plugin.deploy.hub.publishing import publish
from vit_plugin.projects.d_fine.d_fine_head import DFINEHead
from vit_plugin.projects.d_fine.to_transformers import BACKBONE_WRITERS, real_time_folder
from vit_plugin.weights.hub_files import HUB_CONFIG, HUB_WEIGHTS

pytestmark = [needs_task('detection'), pytest.mark.filterwarnings('ignore')]
# Families in `exported_families` -> their projects, other than d_fine. A project may be removed.
PROJECTS = {'DEIMv2': 'deimv2', 'ECDet': 'ecdet', 'LW-DETR': 'lw_detr'}
STRETCH = exported_families.TestSettings([dict(type='Resize', scale=(128, 64), keep_ratio=False)])


def checkpoint(family: str, folder) -> str:
    """Save a small detector of a family as a checkpoint, and return its path."""
    if family in PROJECTS:
        pytest.importorskip(f'vit_plugin.projects.{PROJECTS[family]}')
    return str(exported_families.save(family, STRETCH, folder / 'epoch_1.pth'))


def test_published_folder_has_config_processor_and_weights(tmp_path):
    """It is read and its outputs are compared before it gets its name."""
    message = publish(checkpoint('D-FINE', tmp_path), str(tmp_path / 'folder'), 'hf')
    assert 'read by vit_plugin and transformers, whose logits differ by up to' in message
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
        ('DEIMv2', "has no decoder 'deimv2' on SpatialTuningAdapter; it has d_fine on HGNetV2, "),
        ('ECDet', "has no decoder 'ecdet' on ECViT"),
        ('RT-DETR', "has no decoder 'rt_detr' on HGNetV2"),
        ('LW-DETR', 'a detector with a LWDETRHead cannot be written'),
        ('Faster R-CNN', 'a detector with a FasterRCNN cannot be written'),
    ],
)
def test_detectors_that_cannot_be_written_for_transformers_raise(family, words, tmp_path):
    with rejects(f'--to hf: .*{words}'):
        publish(checkpoint(family, tmp_path), str(tmp_path / 'folder'), 'hf')
    assert not (tmp_path / 'folder').exists()


def test_detectors_raise_for_timm_and_are_published_as_ours(tmp_path):
    source = checkpoint('ECDet', tmp_path)
    with rejects('--to timm: timm has no detection models'):
        publish(source, str(tmp_path / 'folder'), 'timm')
    assert 'by no other library' in publish(source, str(tmp_path / 'folder'))


def test_resize_that_keeps_the_ratio_raises(tmp_path):
    test = exported_families.TestSettings([dict(type='Resize', scale=(128, 64), keep_ratio=True)])
    source = str(exported_families.save('D-FINE', test, tmp_path / 'epoch_1.pth'))
    with rejects('--to hf: its pipeline .* is not a resize'):
        publish(source, str(tmp_path / 'folder'), 'hf')


def test_default_arguments_are_those_of_the_neck():
    """``LiteEncoder`` has other defaults than ``HybridEncoder``."""
    lite_encoder = pytest.importorskip('vit_plugin.projects.deimv2.lite_encoder')
    options = dict(num_classes=3, variant='deimv2_transformers', in_channels=(128, 128))
    model = nn.Module()
    model.backbone = MODELS.build(dict(exported_families.HGNET, out_indices=[3]))
    model.neck = lite_encoder.LiteEncoder([16])
    model.bbox_head = DFINEHead(**options, embed_dims=16, decoder=dict(num_layers=1, num_heads=2))
    section = dict(
        backbone=exported_families.HGNET,
        neck=dict(type='vit_plugin.LiteEncoder', in_channels=[16]),
        bbox_head=options,
    )
    fields, weight_format = real_time_folder(model, section, lambda *_: {})
    assert weight_format == 'hf_deimv2_cnn'
    assert (fields['encoder_type'], fields['encoder_hidden_dim']) == ('lite', 128)
    del model.neck
    with rejects('only on the maps of HybridEncoder or LiteEncoder'):
        real_time_folder(model, section, lambda *_: {})


def test_blocks_of_an_adapter_are_those_of_the_built_one():
    """The config may leave ``out_indices`` out, or have a number."""
    backbone = SimpleNamespace(out_indices=(3,), detail=[SimpleNamespace(conv=nn.Conv2d(3, 4, 3))])
    fields = BACKBONE_WRITERS['SpatialTuningAdapter'](backbone, {}, lambda *_: {})
    assert fields['backbone_config']['out_indices'] == [4]
