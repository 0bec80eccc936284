"""Pre-training on a tree of images without labels, and training from its result."""

from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from image_folders import write_digits
from mmengine.dataset import default_collate
from mmengine.logging import MessageHub
from mmengine.registry import DATASETS, MODELS, init_default_scope
from PIL import Image
from published_models import roboflow_file
from safetensors.torch import save_file
from tiny_models import TINY_SIZES

from vit_plugin.config import read_config
from vit_plugin.config.runnable import check_config
from vit_plugin.from_folder.choices import CONTINUATIONS
from vit_plugin.from_folder.feature_comparison import FeatureComparison
from vit_plugin.from_folder.methods import METHODS
from vit_plugin.from_folder.pretraining import Pretraining, write_original
from vit_plugin.from_folder.request import PRETRAINING, Request
from vit_plugin.from_folder.write import write_config
from vit_plugin.models import VisionTransformer
from vit_plugin.weights import FORMATS, open_checkpoint

pytestmark = pytest.mark.filterwarnings('ignore')
TEACHER = 'timm://test_convnext.r160_in1k'


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    """The working directory with images of digits; models of timm get random weights."""
    import timm

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        'vit_plugin.weights.opening.download_timm',
        lambda name: timm.create_model(name).state_dict(),
    )
    write_digits(tmp_path / 'digits', per_class=12)
    return tmp_path


def request_for(**arguments: Any) -> Request:
    return Request(**{'data': 'digits', 'task': PRETRAINING, **arguments})


def first_loss(cfg: Any, loads_weights: bool = False) -> tuple[Any, torch.Tensor]:
    """The model of a config, with its weights if asked, and its loss for the first images."""
    init_default_scope('mmpretrain')
    MessageHub.get_current_instance().update_info('max_iters', 10)
    data = DATASETS.build(cfg.train_dataloader.dataset)
    model = MODELS.build(dict(cfg.model, data_preprocessor=cfg.data_preprocessor)).train()
    if loads_weights:
        model.init_weights()
    batch = model.data_preprocessor(default_collate([data[i] for i in range(4)]), True)
    return model, model.parse_losses(model(**batch, mode='loss'))[0]


QUICK = ('mae', '')  # the method and arch that are tried in each run of the tests


@pytest.mark.parametrize(
    ('method', 'arch'),
    [
        pytest.param(*row, marks=() if row == QUICK else pytest.mark.nightly)
        for row in product(METHODS, ('', 'timm://test_vit'))
        if not METHODS[row[0]].continues
    ],
)
def test_every_method_pretrains_and_is_fine_tuned(folder, method, arch):
    teacher = dict(teacher=TEACHER) if method == 'distill' else {}
    request = request_for(method=method, arch=arch, work_dir='first', **teacher)
    cfg = read_config(str(write_config(request)))
    check_config(cfg, ['train_dataloader'])
    assert len(Path('first/train.txt').read_text().splitlines()) == 36
    model, loss = first_loss(cfg)
    loss.backward()
    parameters = dict(model.named_parameters())
    trained = {name for name, parameter in parameters.items() if parameter.requires_grad}
    assert trained == {name for name, parameter in parameters.items() if parameter.grad is not None}
    assert torch.isfinite(loss)
    text = cfg.pretty_text
    torch.save(dict(meta=dict(cfg=text), state_dict=model.state_dict()), 'first/epoch_1.pth')

    second = Request('digits', weights='first/epoch_1.pth', work_dir='second')
    cfg = read_config(str(write_config(second)))
    check_config(cfg)
    classifier, _ = first_loss(cfg)
    assert not arch or all(parameter.requires_grad for parameter in classifier.parameters())
    missing = classifier.load_state_dict(model.state_dict(), strict=False).missing_keys
    assert {name.partition('.')[0] for name in missing} <= {'head'}
    comparison = FeatureComparison(Pretraining(request), 'first/epoch_1.pth')
    comparison.draw(Path('first/features.png'))
    assert Image.open('first/features.png').size[0] > 1000
    scores = comparison.nearest_neighbors()
    assert len(scores) == 2
    assert all(0 <= score <= 100 for score in scores)


CONTINUED = ['timm', 'file', 'run', 'folder', 'detector']  # kinds of weights to continue


def weights_of(kind: str, folder: Path) -> dict[str, str]:
    """Write weights of a tiny model for one of the kinds, and return the flags that name them."""
    import timm

    name = 'timm://test_vit'
    state = timm.create_model('test_vit').state_dict()
    if kind == 'timm':
        return dict(weights=name)
    if kind == 'file':
        torch.save(state, 'original.pth')
        return dict(weights='original.pth', arch=name)
    if kind == 'run':
        backbone = dict(type='vit_plugin.VisionTransformer', arch=name, img_size=160)
        text = f'model = dict(type="ImageClassifier", backbone={backbone})'
        model = MODELS.build(backbone)
        state = {f'backbone.{key}': value for key, value in model.state_dict().items()}
        torch.save(dict(meta=dict(cfg=text), state_dict=state), 'original.pth')
        return dict(weights='original.pth')
    if kind == 'detector':
        return dict(weights=str(roboflow_file(folder / 'original.pth')))
    model = VisionTransformer(
        dict(TINY_SIZES, patch_size=8),
        img_size=32,
        numerics='timm',
        encoder=dict(layer_scale_init_value=0.1),
    )
    (folder / 'original').mkdir()
    weights = FORMATS['hf_dinov2'].export(model.state_dict(), 2)[0]
    save_file(weights, folder / 'original/model.safetensors')
    config = '{"model_type": "dinov2", "num_attention_heads": 2}'
    (folder / 'original/config.json').write_text(config)
    return dict(weights=str(folder / 'original'))


@pytest.mark.parametrize('method', CONTINUATIONS)
@pytest.mark.parametrize(
    'kind',
    [
        pytest.param(kind, marks=() if kind == 'folder' else pytest.mark.nightly)
        for kind in CONTINUED
    ],
)
def test_continued_weights_are_written_in_the_original_layout(folder, method, kind, monkeypatch):
    """No tensor differs from the original without a training step; later only changed ones do."""
    import timm

    original = timm.create_model('test_vit').state_dict()
    monkeypatch.setattr('vit_plugin.weights.opening.download_timm', lambda name: dict(original))
    request = request_for(
        method=method, img_size=32, batch_size=2, work_dir='first', **weights_of(kind, folder)
    )
    cfg = read_config(str(write_config(request)))
    assert cfg.lora == dict(r=8, alpha=16.0)
    assert cfg.train_pipeline[1].transforms[0][0].scale == 32
    model, loss = first_loss(cfg, loads_weights=True)
    loss.backward()
    if kind != 'detector':
        assert model.backbone.img_size == ((160, 160) if kind != 'folder' else (32, 32))
    torch.save(dict(meta=dict(cfg=cfg.pretty_text), state_dict=model.state_dict()), 'first/1.pth')
    message = write_original(request.weights, 'first/1.pth', Path('first'))
    assert ': 0 of the ' in message
    written, _, _ = message.partition(': ')
    before = open_checkpoint(request.weights).weights
    after = open_checkpoint(written).weights
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], value) for name, value in after.items())
    name = 'backbone.blocks.0.attn.proj.weight'
    state = dict(model.state_dict(), **{name: model.state_dict()[name] + 1})
    torch.save(dict(meta=dict(cfg=cfg.pretty_text), state_dict=state), 'first/1.pth')
    assert ': 1 of the ' in write_original(request.weights, 'first/1.pth', Path('first'))
    FeatureComparison(Pretraining(request), 'first/1.pth').draw(Path('first/features.png'))


def test_tree_without_classes_is_pretrained_but_not_probed(folder, capsys):
    deep = folder / 'photos' / 'a' / 'b'
    deep.mkdir(parents=True)
    for i, path in enumerate(sorted((folder / 'digits').rglob('*.png'))[:30]):
        path.rename((deep if i % 2 else folder / 'photos') / f'{i}.png')
    (folder / 'photos/val').mkdir()
    (folder / 'photos/0.png').rename(folder / 'photos/val/0.png')
    (folder / 'photos/broken.png').write_bytes(b'no image')
    request = request_for(data='photos')
    config = write_config(request)
    assert config.read_text().startswith(
        '"""A small hybrid on photos, 29 images.\n\n    vit-plugin pret'
    )
    shown = capsys.readouterr().out
    assert shown.startswith('photos: 29 images without labels, by ')
    assert 'class' not in shown.partition('Sizes')[0].partition('All images have')[0]
    assert 'a/b/1.png' in (config.parent / 'train.txt').read_text().splitlines()
    report = (config.parent / 'data_report.md').read_text()
    assert 'images of validation and test splits, left out: 1' in report
    assert 'cannot be read: 1' in report
    assert FeatureComparison(Pretraining(request), 'none.pth').nearest_neighbors() == []


def test_teacher_with_the_same_classes_teaches_logits_and_others_features(folder):
    classes = ['digit 0', 'digit 1', 'digit 2']
    text = read_config(str(write_config(Request('digits', work_dir='cnn')))).pretty_text
    for names, losses in ((classes, ['Logit']), (classes[::-1], ['Vector', 'Map'])):
        meta = dict(cfg=text, dataset_meta=dict(classes=names))
        torch.save(dict(meta=meta, state_dict=dict(weight=torch.zeros(1))), 'cnn.pth')
        request = Request('digits', teacher='cnn.pth', work_dir=f'by_{losses[0]}')
        cfg = read_config(str(write_config(request)))
        assert cfg.model.type == 'vit_plugin.Distiller'
        assert cfg.model.teacher == str(folder / 'cnn.pth')
        types = [loss.type for loss in cfg.model.losses]
        assert types == [f'vit_plugin.{name}Distillation' for name in losses]
    cfg.model.teacher = TEACHER  # in the last config, which compares features
    check_config(cfg)
    assert set(first_loss(cfg)[0].losses) == {'vector', 'map'}
