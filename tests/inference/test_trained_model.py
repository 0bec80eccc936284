"""Loaded models have classes and preprocessing."""

import copy
import multiprocessing
import pickle
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.dataset import Compose
from mmengine.registry import MODELS, DefaultScope
from mmengine.runner import CheckpointLoader
from PIL import Image
from rejection import rejects
from safetensors.torch import save_file
from tiny_models import classifier
from trained_models import tiny_classifier

import vit_plugin
from vit_plugin.config import read_config
from vit_plugin.data import LoadImage
from vit_plugin.inference.image_transforms import PipelineTransform
from vit_plugin.inference.inputs import Frame, Input
from vit_plugin.inference.load import load
from vit_plugin.inference.saved_model import saved_config
from vit_plugin.inference.trained_model import TrainedModel
from vit_plugin.inference.unusual_sizes import SHOWN_SENTENCES
from vit_plugin.report.pictures.pictures import draw_maps
from vit_plugin.untrusted import IMPORTABLE_MODULES
from vit_plugin.weights import Checkpoint

pytest.importorskip('mmpretrain')
DIGITS = 'configs/vit/vit-mini-p2_1xb16_digits.py'
NAMES = [f'digit {i}' for i in range(10)]


@pytest.fixture
def digits(tmp_path) -> str:
    """The folder of a run whose classifier predicts a seven for any image."""
    cfg = read_config(DIGITS)
    model = MODELS.build(dict(cfg.model, type='mmpretrain.ImageClassifier', data_preprocessor=None))
    model.head.layers.head.bias.data[7] = 2
    meta = dict(cfg=cfg.pretty_text, dataset_meta=dict(classes=NAMES))
    (tmp_path / 'run').mkdir()
    torch.save(
        dict(state_dict=model.state_dict(), meta=dict(meta, epoch=3, iter=9)),
        tmp_path / 'run/epoch_3.pth',
    )
    (tmp_path / 'run/last_checkpoint').write_text(str(tmp_path / 'run/epoch_3.pth'))
    return str(tmp_path / 'run')


@pytest.mark.parametrize('name', ['', '/epoch_3.pth'])
def test_a_checkpoint_needs_no_config(digits, photo, name):
    model = vit_plugin.load(digits + name, device='cpu')
    assert (model.task, model.classes) == ('classification', NAMES)
    prediction = model(photo)
    assert prediction.names[0] == 'digit 7'
    assert prediction.scores[0] == pytest.approx(np.exp(2) / (np.exp(2) + 9))
    from_pixels = model(cv2.imread(photo))
    assert from_pixels.names[0] == 'digit 7'
    assert model.features([model.sample(photo)]).shape == (1, model.model.backbone.embed_dims)


def test_a_data_set_may_have_no_metainfo(digits):
    options = {'test_dataloader.dataset.metainfo': None}  # MMEngine's default
    assert load(digits, device='cpu', cfg_options=options).classes == NAMES


def test_names_of_classes_may_be_in_a_file(digits, tmp_path):
    """As MMEngine reads it; a checkpoint without a record of its data has no other names."""
    (tmp_path / 'names.txt').write_text('\n'.join(NAMES))
    saved = torch.load(f'{digits}/epoch_3.pth')
    del saved['meta']['dataset_meta']
    torch.save(saved, tmp_path / 'bare.pth')
    options = {'test_dataloader.dataset.metainfo': dict(classes=str(tmp_path / 'names.txt'))}
    assert load(tmp_path / 'bare.pth', device='cpu', cfg_options=options).classes == NAMES


def test_files_and_pixels_give_the_same_sample(tmp_path, digits):
    pixels = np.random.default_rng(1).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    cv2.imwrite(str(tmp_path / 'a.bmp'), pixels)
    model = load(digits, device='cpu')
    samples = model.sample(tmp_path / 'a.bmp'), model.sample(pixels)
    assert torch.equal(*(sample['inputs'] for sample in samples))


@pytest.mark.parametrize(
    ('backbone', 'reader', 'channels'),
    [
        (None, {}, 3),
        (dict(patch_embed=None), {}, 3),
        (dict(patch_embed=dict(in_channels=1)), {}, 1),
        (dict(in_channels=1), {}, 1),
        ({}, dict(color_type='grayscale'), 1),
    ],
)
def test_gray_images_are_those_of_the_pipeline(backbone, reader, channels):
    pytest.importorskip('mmpretrain.datasets')  # registers the transforms
    pipeline = [dict(type='LoadImageFromFile', **reader), dict(type='PackInputs')]
    loader = dict(dataset=dict(pipeline=pipeline))
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        pixels = PipelineTransform(
            Config(dict(model=dict(backbone=backbone), test_dataloader=loader))
        )
    assert pixels.custom_reader is None
    assert pixels(np.zeros((4, 6, 3), np.uint8))['inputs'].shape == (channels, 4, 6)


def test_types_of_steps_may_be_classes():
    from mmpretrain.datasets.transforms import PackInputs

    pipeline = [dict(type=LoadImage), dict(type=PackInputs)]
    loader = dict(dataset=dict(pipeline=pipeline))
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        pixels = PipelineTransform(Config(dict(model=dict(backbone={}), test_dataloader=loader)))
    assert pixels.custom_reader is None
    assert pixels(np.zeros((4, 6, 3), np.uint8))['inputs'].shape == (3, 4, 6)


def test_images_are_resized_to_the_training_size(digits, capsys):
    """The recipe's pipeline does not resize, so an image of 2,048 pixels would take minutes."""
    SHOWN_SENTENCES.clear()
    model = load(digits, device='cpu')
    for shape in ((40, 60, 3), (2, 3, 3)):
        assert model.sample(np.zeros(shape, np.uint8))['inputs'].shape == (1, 8, 8)
    assert capsys.readouterr().err.count('resized to 8 x 8 pixels') == 1


def test_pixels_that_the_configs_reader_cannot_read_are_announced(digits, capsys):
    SHOWN_SENTENCES.clear()
    model, pixels = load(digits, device='cpu'), np.zeros((8, 8, 3), np.uint8)
    model._pixels = SimpleNamespace(custom_reader=Compose([LoadImage(window=(0, 4095))]))
    capsys.readouterr()  # which checkpoint was chosen
    file, url = Input('a.tif'), Input('https://example.org/a.tif', reader='url')
    assert model.sample_argument(Frame(file, None, pixels)) == 'a.tif'
    assert not capsys.readouterr().err
    assert model.sample_argument(Frame(url, None, pixels)) is pixels
    err = capsys.readouterr().err
    assert err.startswith('https://example.org/a.tif: LoadImage of the config reads only files')


def test_slices_of_a_few_pixels_raise(digits):
    model = load(digits, device='cpu')
    assert model.slices is None
    for side in (1, 'a'):
        model.cfg.test_cfg = dict(side=side)
        with rejects(rf'test_cfg.side={side!r}: .* from 16 on'):
            _ = model.slices


def test_very_large_images_are_announced_once(digits, capsys):
    model = load(digits, device='cpu')
    del model.cfg.model.backbone['img_size']  # else images are resized to it
    image, words = np.zeros((33, 32, 3), np.uint8), '32 x 33 pixels go into the model, 16 times'
    model.features([model.sample(image)])
    assert f'\n{words} those of 8 x 8' in capsys.readouterr().err
    model.predict([image], ['a.png'])
    assert not capsys.readouterr().err
    SHOWN_SENTENCES.clear()
    model.predict([image[:8], image], ['b.png', 'c.png'])
    assert capsys.readouterr().err.startswith(f'c.png: {words}')


def test_concurrent_threads_build_the_pipeline_once(digits, monkeypatch):
    """They share MMEngine's default scope, within which ``PackInputs`` is found."""
    model, built, barrier = load(digits, device='cpu'), [], Barrier(4)
    init = PipelineTransform.__init__

    def slow_init(self, *args) -> None:
        built.append(self)
        time.sleep(0.05)  # so that the other threads need it meanwhile
        init(self, *args)

    def sample(number: int) -> None:
        barrier.wait()
        model.sample(np.zeros((8, 8, 3), dtype=np.uint8), number)

    monkeypatch.setattr(PipelineTransform, '__init__', slow_init)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(sample, range(4)))
    assert len(built) == 1


def test_load_runs_no_code(tmp_path, monkeypatch):
    """MMEngine would fall back to unpickling what torch refuses."""
    torch.save(dict(state_dict={}, meta=Path(tmp_path, 'x')), tmp_path / 'x.pth')
    before = CheckpointLoader.__dict__['load_checkpoint']
    with rejects('could run code'):
        load(tmp_path / 'x.pth', device='cpu')
    assert CheckpointLoader.__dict__['load_checkpoint'] is before
    monkeypatch.setattr(
        'vit_plugin.inference.load.open_model',
        lambda *args, **kwargs: CheckpointLoader.load_checkpoint('x.pth'),
    )
    monkeypatch.chdir(tmp_path)
    with rejects('could run code'):  # also if MMEngine itself reads a file, as for an init_cfg
        load('x.pth', device='cpu')


def test_a_given_config_replaces_that_of_the_checkpoint(tmp_path, digits):
    (tmp_path / 'other.py').write_text(
        f"_base_ = '{Path(DIGITS).resolve()}'\nmodel = dict(backbone=dict(arch=dict(num_layers=2)))"
    )
    with rejects('arch with more blocks'):
        load(digits, str(tmp_path / 'other.py'), device='cpu')
    with rejects('num_classes'):
        load(digits, device='cpu', cfg_options={'model.head.num_clases': 3})


@pytest.mark.parametrize(
    ('text', 'words'),
    [
        (
            "model = dict(type='os.system', command='touch canary')",
            "at model.type 'os.system' as a part of a model",
        ),
        ("model = dict(type='mmengine.utils.path.os.system')", 'as a part of a model'),
        ("model = dict(type='A')\ncustom_imports = dict(imports=['no_such_module'])", 'to import'),
        ("model = dict(type='A')\ncustom_imports = dict(imports=5)", r'imports=5, where names of'),
        ("model = dict(type='A')\ncustom_imports = dict(imports=[5])", r'imports=\[5\], where'),
        ("model = print('canary')", 'holds no config'),
        ('', 'holds no config'),
        (None, 'holds no config'),
    ],
)
def test_configs_in_checkpoints_with_code_raise(tmp_path, text, words):
    torch.save(dict(state_dict=dict(a=torch.zeros(1)), meta=dict(cfg=text)), tmp_path / 'x.pth')
    with rejects(f'{words}.*--config'):
        load(tmp_path / 'x.pth', device='cpu')


def test_unsupported_models_of_transformers_raise(tmp_path):
    save_file(dict(a=torch.zeros(1)), tmp_path / 'model.safetensors')
    (tmp_path / 'config.json').write_text('{"architectures": ["DetrForObjectDetection"]}')
    with rejects(
        r"its config.json has architectures=\['DetrForObjectDetection'\], and it has no model_type"
    ):
        load(tmp_path, device='cpu')


def test_checkpoints_may_import_what_the_recipes_import(tmp_path, monkeypatch):
    """Detectors with queries need both modules, which prediction does not import by itself."""
    imported = []
    monkeypatch.setattr('vit_plugin.inference.saved_model.import_module', imported.append)
    for name in IMPORTABLE_MODULES:
        monkeypatch.setitem(sys.modules, name, sys)
    model_type = 'mmpretrain.ImageClassifier'
    imports = [*IMPORTABLE_MODULES[::-1]]
    text = f"model = dict(type='{model_type}')\ncustom_imports = dict(imports={imports})"
    assert saved_config(Checkpoint('x.pth', dict(meta=dict(cfg=text)))).model.type == model_type
    assert imported == ['vit_plugin.detection', 'mmdet.models']  # the ops come first


def test_invalid_checkpoints_raise(tmp_path):
    for arguments, words in (
        (['x.pth', 'a.py', 'B/16'], 'give one of them'),
        ([DIGITS], 'is a config'),
        ([tmp_path], 'has no manifest.json'),
        (['none.pth'], 'no checkpoint file'),
    ):
        with rejects(words):
            load(*arguments, device='cpu')


@pytest.mark.parametrize(
    ('steps', 'size'),
    [
        ([dict(type='Resize', scale=(24, 24))], (24, 24)),
        ([dict(type='ResizeEdge', scale=32), dict(type='CenterCrop', crop_size=24)], (32, 56)),
        (
            [
                dict(type='ResizeEdge', scale=32, backend='pillow'),
                dict(type='CenterCrop', crop_size=(32, 24)),
            ],
            (32, 56),
        ),
        ([dict(type='CenterCrop', crop_size=40)], (120, 200)),
    ],
)
def test_pictures_show_the_complete_photograph(tiny, steps, size):
    """At its own resolution, while the model gets it at the scale of the test pipeline."""
    pipeline = [dict(type='LoadImageFromFile'), *steps, dict(type='PackInputs')]
    cfg = Config(
        dict(
            default_scope='mmpretrain',
            model=dict(backbone={}),
            test_dataloader=dict(dataset=dict(type='BaseDataset', pipeline=pipeline)),
        )
    )
    y, x = np.indices((120, 200), dtype=np.uint8)  # each pixel states its position
    prepared = TrainedModel(classifier(tiny), cfg, {}).prepare(np.stack((x, y, y), axis=-1))
    shown = prepared.photograph[..., ::-1].astype(int)
    assert prepared.input_size == size
    assert (shown[..., 0] == x).all()
    assert (shown[..., 1] == y).all()
    figure = draw_maps(prepared, [torch.rand(4, 4)], ['map'])
    assert figure.axes[1].images[1].get_array().shape == shown.shape[:2]


def test_pictures_have_the_pixels_of_the_configs_reader(tiny, tmp_path):
    window = dict(type='vit_plugin.LoadImage', window=(0, 4095))
    pipeline = [window, dict(type='Resize', scale=(32, 32)), dict(type='PackInputs')]
    cfg = Config(
        dict(
            default_scope='mmpretrain',
            model=dict(backbone={}),
            test_dataloader=dict(dataset=dict(type='BaseDataset', pipeline=pipeline)),
        )
    )
    path = tmp_path / 'a.png'
    cv2.imwrite(str(path), np.full((40, 60, 3), 4095, np.uint16))
    model = TrainedModel(classifier(tiny), cfg, {})
    for size in (None, 32):
        assert (model.prepare(path, size).image == 255).all()


@pytest.fixture
def trained(tiny) -> TrainedModel:
    """A classifier with a test pipeline, which is built at its first use."""
    steps = [dict(type='Resize', scale=(32, 32)), dict(type='PackInputs')]
    dataset = dict(type='BaseDataset', pipeline=[dict(type='LoadImageFromFile'), *steps])
    cfg = dict(default_scope='mmpretrain', model=dict(backbone={}))
    model = tiny_classifier(tiny, NAMES[:3])
    model.cfg = Config(dict(cfg, test_dataloader=dict(dataset=dataset)))
    return model


def pickled(model: TrainedModel) -> TrainedModel:
    return pickle.loads(pickle.dumps(model))


@pytest.mark.parametrize('copied', [copy.copy, copy.deepcopy, pickled])
@pytest.mark.parametrize('state', ['new', 'used', 'optimized'])
def test_a_copy_predicts_the_same(trained, photo, copied, state):
    expected = trained(photo).scores if state != 'new' else None
    model = copied(trained.optimized() if state == 'optimized' else trained)
    np.testing.assert_array_equal(model(photo).scores, trained(photo).scores)
    assert expected is None or np.allclose(expected, model(photo).scores, atol=1e-6)
    assert (model.classes, model.task) == (trained.classes, trained.task)


@pytest.mark.nightly
def test_a_spawned_pool_takes_a_model(trained, photo):
    with multiprocessing.get_context('spawn').Pool(1) as pool:
        (prediction,) = pool.map_async(trained, [photo]).get(timeout=120)
    np.testing.assert_array_equal(prediction.scores, trained(photo).scores)


@pytest.mark.parametrize(
    ('image', 'words'),
    [
        (np.zeros((8, 8, 3)), r'pixels of float64, .*as uint8'),
        (np.zeros((8, 8, 3), np.uint16), r'pixels of uint16, .*as uint8'),
        (np.zeros((8, 8, 3), bool), r'\(8, 8, 3\) of bool .*as uint8'),
        (np.zeros((8, 8, 3), np.float32), r'pixels of float32, .*as uint8'),
        (np.zeros((0, 8, 3), np.uint8), r'\(0, 8, 3\) of uint8 is not an image'),
        (np.empty(0), r'\(0,\) of float64 is not an image'),
        (np.zeros((8, 8, 4), np.uint8), r'has 4 bands or colors, but the model takes 3'),
        (None, 'NoneType is not an image; give a file, or pixels'),
        (Image.new('RGB', (8, 8)), 'Image is not an image; give a file, or pixels'),
    ],
)
def test_invalid_images_raise(trained, image, words):
    with rejects(words):
        trained(image)


def test_gray_images_are_repeated_over_the_channels(trained):
    gray = np.random.default_rng(0).integers(0, 256, (8, 8), dtype=np.uint8)
    expected = trained(gray[..., None].repeat(3, axis=2)).scores
    for image in (gray, gray[..., None]):
        np.testing.assert_array_equal(trained(image).scores, expected)
