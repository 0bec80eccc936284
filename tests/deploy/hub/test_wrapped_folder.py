"""Write trained modules of other libraries as folders that these libraries read.

Each test writes a model of the library, trains it here, and publishes the run.
"""

import json

import pytest
import timm
import torch
from rejection import rejects
from timm.models import save_for_hf

from vit_plugin.deploy.hub.hub_folder import hub_outputs
from vit_plugin.deploy.hub.publishing import publish
from vit_plugin.inference.load import load

pytestmark = pytest.mark.filterwarnings('ignore')
NAMES = ['cat', 'dog', 'rabbit']
ONES = [1, 1, 1, 1]  # blocks per stage
SWIN = dict(image_size=64, window_size=2, embed_dim=24, depths=ONES, num_heads=[2] * 4)
CONFIGS = {
    'Swin': SWIN,
    'ConvNextV2': dict(image_size=64, depths=ONES, hidden_sizes=[8, 16, 24, 32]),
    'ResNet': dict(embedding_size=8, depths=ONES, hidden_sizes=[8, 16, 24, 32]),
    'SwiftFormer': dict(depths=ONES, embed_dims=[8, 16, 24, 32]),  # with two classifiers
}


def train_folder(folder, path):
    """Write the checkpoint of a run that has changed the weights of a folder's model.

    Returns its path, in the new folder ``path``.
    """
    trained = load(folder, device='cpu')
    torch.manual_seed(1)
    for name, value in trained.model.named_parameters():
        start = float('norm' in name and name.endswith('weight'))
        torch.nn.init.normal_(value, start, 0.1)

    meta = dict(cfg=trained.cfg.pretty_text, dataset_meta=dict(classes=NAMES))
    path.mkdir()
    torch.save(dict(meta=meta, state_dict=trained.model.state_dict()), path / 'epoch_1.pth')
    return str(path / 'epoch_1.pth')


def logits(source, images):
    trained = load(source, device='cpu')
    assert trained.classes == NAMES
    with torch.no_grad():
        return hub_outputs(trained, images)


@pytest.mark.parametrize(
    'class_name',
    [*list(CONFIGS)[:-1], pytest.param('SwiftFormer', marks=pytest.mark.nightly)],
)
def test_transformers_reads_the_trained_model(class_name, tmp_path):
    transformers = pytest.importorskip('transformers', minversion='5')
    names = dict(enumerate(['a', 'b', 'c']))
    config = getattr(transformers, f'{class_name}Config')(**CONFIGS[class_name], id2label=names)
    model_class = getattr(transformers, f'{class_name}ForImageClassification')
    model_class(config).save_pretrained(tmp_path / 'original')
    checkpoint = train_folder(tmp_path / 'original', tmp_path / 'run')
    summary = publish(checkpoint, str(tmp_path / 'folder'))
    assert 'read by vit_plugin and transformers, whose logits differ by up to ' in summary
    model, loading = model_class.from_pretrained(tmp_path / 'folder', output_loading_info=True)
    assert not any(loading.values())
    assert [*model.config.id2label.values()] == NAMES
    images = torch.randn(2, 3, 64, 64)
    expected = logits(checkpoint, images)
    with torch.no_grad():
        torch.testing.assert_close(model.eval()(images).logits, expected)
    torch.testing.assert_close(logits(tmp_path / 'folder', images), expected)
    assert transformers.AutoImageProcessor.from_pretrained(tmp_path / 'folder')


@pytest.mark.parametrize(
    ('name', 'options'),
    [
        ('test_resnet', {}),
        ('test_convnext', {}),
        pytest.param('swin_tiny_patch4_window7_224', dict(img_size=64), marks=pytest.mark.nightly),
    ],
)
def test_timm_reads_the_trained_model(name, options, tmp_path):
    original = timm.create_model(name, num_classes=3, **options)
    labels = dict(label_names=['a', 'b', 'c'], model_args=options)
    save_for_hf(original, str(tmp_path / 'original'), safe_serialization=True, model_config=labels)
    checkpoint = train_folder(tmp_path / 'original', tmp_path / 'run')
    assert 'read by vit_plugin and timm' in publish(checkpoint, str(tmp_path / 'folder'), 'timm')
    model = timm.create_model(f'local-dir:{tmp_path / "folder"}', pretrained=True).eval()
    size = options.get('img_size', original.pretrained_cfg['input_size'][-1])
    images = torch.randn(2, 3, size, size)
    expected = logits(checkpoint, images)
    with torch.no_grad():
        torch.testing.assert_close(model(images), expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(logits(tmp_path / 'folder', images), expected)
    content = json.loads((tmp_path / 'folder/config.json').read_text())
    assert content['label_names'] == NAMES
    assert content['architecture'] == name


def test_models_that_the_library_lacks_raise(tmp_path):
    original = timm.create_model('test_resnet', num_classes=3)
    labels = dict(label_names=['a', 'b', 'c'])
    save_for_hf(original, str(tmp_path / 'original'), safe_serialization=True, model_config=labels)
    checkpoint = train_folder(tmp_path / 'original', tmp_path / 'run')
    with rejects('--to hf: its TimmBackbone holds a model of timm; leave --to out'):
        publish(checkpoint, str(tmp_path / 'folder'), 'hf')
    content = torch.load(checkpoint)
    content['meta']['cfg'] = content['meta']['cfg'].replace(
        "out_type='pooled'", "out_type='featmap'"
    )
    assert "'featmap'" in content['meta']['cfg']
    torch.save(content, checkpoint)
    with rejects('--to timm: timm has no such classifier on the maps of its TimmBackbone'):
        publish(checkpoint, str(tmp_path / 'folder'), 'timm')
