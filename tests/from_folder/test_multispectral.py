"""Folders of images with several bands: configs, training and prediction."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from image_folders import save_bands, write_bands, write_coco, write_digits, write_masks
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmengine.registry import DATASETS, MODELS, DefaultScope, init_default_scope
from rejection import rejects

from anyfolder.pixels.bands import read_bands
from anyfolder.pixels.images import read_image
from vit_plugin.config import read_config
from vit_plugin.config.runnable import check_config
from vit_plugin.data.image_reader import use_our_image_reader
from vit_plugin.deploy.exported_photographs import write_photographs
from vit_plugin.deploy.pipeline_steps import steps_of
from vit_plugin.deploy.pixel_steps import apply_steps
from vit_plugin.from_folder.continued import ContinuedModel, adapt_model
from vit_plugin.from_folder.multispectral import multispectral_backbone
from vit_plugin.from_folder.request import Request
from vit_plugin.from_folder.write import write_config
from vit_plugin.inference.image_transforms import PipelineTransform
from vit_plugin.inference.trained_model import TrainedModel
from vit_plugin.report.pictures import draw_data

ARCH = 'timm://test_vit'


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def config_of(data: Path, **arguments):
    """The checked config of a training on a folder."""
    cfg = read_config(str(write_config(Request(str(data), **{'arch': ARCH, **arguments}))))
    init_default_scope(cfg.default_scope)
    check_config(cfg)
    return cfg


def model_of(cfg):
    return MODELS.build(
        dict(cfg.model, data_preprocessor=cfg.model.get('data_preprocessor', cfg.data_preprocessor))
    )


def loss_of(cfg) -> float:
    """The loss of a new model for two images, which must have six bands."""
    dataset, model = DATASETS.build(cfg.train_dataloader.dataset), model_of(cfg)
    data = model.data_preprocessor(pseudo_collate([dataset[0], dataset[4]]), True)
    assert data['inputs'].shape[1] == 6
    return sum(value.item() for name, value in model(**data, mode='loss').items() if 'loss' in name)


@pytest.mark.parametrize('suffix', ['.tif', '.npy'])
def test_classifier_takes_the_bands_of_its_folder(folder, suffix, capsys):
    write_bands(folder / 'fields', suffix=suffix)
    cfg = config_of(folder / 'fields', img_size=32, epochs=400)
    assert 'Images of 6 bands' in capsys.readouterr().out
    values = [read_bands(file) for file in Path('fields').rglob(f'*{suffix}')]
    train = {
        line.split()[0] for line in Path('work_dirs/fields/train.txt').read_text().splitlines()
    }
    assert len(train) == 6
    assert len(values) == 8
    images = [read_bands(folder / 'fields' / name).reshape(-1, 6) for name in train]
    pixels = np.concatenate(images).astype(float)
    np.testing.assert_allclose(cfg.data_preprocessor['mean'], pixels.mean(0), rtol=1e-4)
    np.testing.assert_allclose(cfg.data_preprocessor['std'], pixels.std(0), rtol=1e-4)
    assert cfg.model.backbone.patch_embed == dict(in_channels=6)
    # There are enough steps for RandAugment, but its operations need colors.
    assert 'RandAugment' not in str(cfg.train_pipeline)
    assert np.isfinite(loss_of(cfg))


def test_photographs_get_no_settings_for_bands(folder):
    write_digits(folder / 'digits', per_class=10)
    cfg = config_of(folder / 'digits', img_size=32, epochs=2000)
    assert 'RandAugment' in str(cfg.train_pipeline)
    assert cfg.test_pipeline[0] == dict(type='LoadImageFromFile')
    assert 'patch_embed' not in cfg.model.backbone


def test_small_hybrid_whitens_all_bands(folder):
    cfg = config_of(write_bands(folder / 'fields'), arch='')
    assert cfg.model.backbone.patch_embed.channels[0] == 48
    assert np.isfinite(loss_of(cfg))
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        train, val = (
            DATASETS.build(use_our_image_reader(cfg[f'{split}_dataloader'].dataset))
            for split in ('train', 'val')
        )
        assert len(draw_data(train, folder, val)) == 2


def test_segmentation_takes_bands(folder):
    write_masks(folder / 'scenes')
    for image in Path('scenes/images').iterdir():
        save_bands(image.with_suffix('.npy'), read_image(image).repeat(2, axis=2))
        image.unlink()
    cfg = config_of(folder / 'scenes', task='segmentation', arch='')
    assert len(cfg.model.data_preprocessor['mean']) == 6
    dataset = DATASETS.build(cfg.train_dataloader.dataset)
    assert dataset[0]['inputs'].shape[0] == 6


@pytest.mark.filterwarnings('ignore')  # warnings of pycocotools
@pytest.mark.parametrize(('task', 'model'), [('detection', 'retinanet'), ('instance', 'eomt')])
@pytest.mark.parametrize('bands', [4, 8])
def test_detection_takes_bands(folder, task, model, bands):
    pytest.importorskip('mmdet')
    write_coco(folder / 'shapes', count=4, polygons=True)
    annotations = next(folder.glob('shapes/annotations/*.json'))
    annotations.write_text(annotations.read_text().replace('.jpg', '.tif'))
    for image in (folder / 'shapes').rglob('*.jpg'):
        values = read_image(image).repeat(3, axis=2)[..., :bands].astype(np.uint16) * 16
        save_bands(image.with_suffix('.tif'), values)
        image.unlink()
    tiles = 48 if task == 'detection' else None
    cfg = config_of(folder / 'shapes', task=task, model=model, arch='', epochs=1, tiles=tiles)
    assert len(cfg.model.data_preprocessor['mean']) == bands
    assert cfg.test_pipeline[0].bands == bands
    import mmdet.datasets  # noqa: F401

    dataset, detector = DATASETS.build(cfg.train_dataloader.dataset), MODELS.build(cfg.model)
    data = detector.data_preprocessor(pseudo_collate([dataset[0]]), True)
    assert data['inputs'].shape[1] == bands
    assert abs(data['inputs'].mean()) < 1
    assert abs(data['inputs'].std() - 1) < 0.5
    loss, _ = detector.parse_losses(detector(**data, mode='loss'))
    assert torch.isfinite(loss)
    trained = TrainedModel(detector, cfg, dict(classes=cfg.classes))
    assert trained(next((folder / 'shapes').rglob('*.tif'))).boxes.shape[1] == 4


def test_complete_model_needs_the_same_number_of_bands():
    cfg = Config(dict(model=dict(data_preprocessor=dict(mean=[1.0] * 4))))
    saved = ContinuedModel(cfg, ['a'], ('detection',))
    listing = SimpleNamespace(bands=4, classes=('a',), stuff=None)
    assert adapt_model(saved, listing) == cfg.model.to_dict()
    listing.bands = 0
    with rejects('takes images of 4 bands, but the images have 3'):
        adapt_model(saved, listing)


def test_stem_that_a_saved_config_states_as_none_takes_bands():
    saved = dict(arch='B/16', patch_embed=None)
    start = SimpleNamespace(backbone=lambda size: saved, wrapped={})
    adapted = multispectral_backbone(start, 64, 5)
    assert adapted == dict(arch='B/16', patch_embed=dict(in_channels=5))


def test_constant_band_has_a_std_of_one(folder):
    for name in ('a', 'b'):
        (folder / 'fields' / name).mkdir(parents=True)
        for i in range(3):
            values = np.random.default_rng(i).normal(5, 2, (8, 9, 4))
            values[..., 2] = 7
            np.save(folder / 'fields' / name / f'{i}.npy', values)
    cfg = config_of(folder / 'fields', img_size=32)
    assert cfg.data_preprocessor['std'][2] == 1.0
    assert cfg.data_preprocessor['mean'][2] == 7.0


def test_files_and_arrays_are_predicted(folder):
    cfg = config_of(write_bands(folder / 'fields'), img_size=32)
    trained = TrainedModel(model_of(cfg), cfg, dict(classes=cfg.classes))
    path = 'fields/wet/0.tif'
    expected = trained(path)
    assert expected.names
    np.testing.assert_array_equal(trained(read_image(path)).scores, expected.scores)
    assert trained.prepare(path).image.shape == (32, 48, 3)  # the whole image, in complete patches
    with rejects('An image has 3 bands or colors, but the model takes 6'):
        trained(np.zeros((20, 24, 3), np.uint8))


def test_exported_pixel_steps_give_the_same_pixels(folder):
    cfg = config_of(write_bands(folder / 'fields'), img_size=32)
    pixels = PipelineTransform(cfg)
    steps = json.loads(json.dumps(steps_of(pixels.transforms)))
    for path in write_photographs(folder, 6):
        expected = pixels(path)['inputs']
        actual = torch.from_numpy(apply_steps(steps, read_image(path)).pixels).permute(2, 0, 1)
        assert expected.shape == (6, 32, 32)
        assert torch.equal(actual, expected)
