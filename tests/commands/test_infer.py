"""Predictions and their pictures, from small models of the frameworks with random weights."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
import torch
from extras import needs_mmdet, needs_mmseg
from mmengine.config import Config
from mmengine.registry import MODELS, init_default_scope
from rejection import rejects
from safetensors.torch import save_file

from vit_plugin.commands import infer as command
from vit_plugin.commands.entry import build_parser, run_command
from vit_plugin.commands.flag_rules import RULES, check_rules
from vit_plugin.config import read_config
from vit_plugin.inference import unusual_sizes

DIGITS = 'configs/vit/vit-mini-p2_1xb16_digits.py'
CELLS = 'configs/detection/retinanet_hybrid-vit-d4-w192_fpn_1xb4-12e_bccd.py'
SCENES = 'configs/segmentation/vit-base-p16_linear_8xb2-40k_ade20k-512x512.py'
TINY = dict(
    _delete_=True, embed_dims=32, num_layers=2, num_heads=2, feedforward_channels=64, patch_size=16
)

pytestmark = pytest.mark.filterwarnings('ignore')  # of the frameworks


@pytest.fixture
def infer(monkeypatch, tmp_path):
    """Runs the command with these arguments and ``--out``, and returns the folder."""

    def run(*arguments: str) -> Path:
        monkeypatch.setattr(
            sys, 'argv', ['infer.py', *map(str, arguments), '--out', str(tmp_path / 'out')]
        )
        run_command(command)
        return tmp_path / 'out'

    return run


@pytest.fixture
def image(tmp_path) -> Path:
    path = tmp_path / 'photo.jpg'
    cv2.imwrite(str(path), np.random.default_rng(0).integers(0, 256, (48, 64, 3), dtype=np.uint8))
    return path


def save(path: Path, config: str, meta: dict, change=lambda model: None) -> str:
    """Save a checkpoint of the recipe's model with random weights, which ``change`` may change.

    Returns its path. ``meta`` is the metadata of the data set.
    """
    cfg: Config = read_config(config)
    text = cfg.pretty_text
    init_default_scope(cfg.default_scope)
    cfg.model.backbone.init_cfg = None
    cfg.model.setdefault('data_preprocessor', cfg.get('data_preprocessor'))
    model = MODELS.build(cfg.model)
    change(model)
    torch.save(dict(state_dict=model.state_dict(), meta=dict(cfg=text, dataset_meta=meta)), path)
    return str(path)


def only_picture(folder: Path) -> np.ndarray:
    (path,) = folder.iterdir()
    assert path.name == 'photo.jpg'
    return cv2.imread(str(path))


def test_a_classifier_prints_the_most_likely_classes(infer, image, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(unusual_sizes, 'LARGE_PIXEL_RATIO', 0.5)

    def prefer_seven(model):
        torch.nn.init.eye_(model.head.layers.head.weight)
        model.head.layers.head.bias.data[7] = 9

    checkpoint = save(
        tmp_path / 'digits.pth',
        DIGITS,
        dict(classes=[f'digit {i}' for i in range(10)]),
        prefer_seven,
    )
    out = infer(checkpoint, image, '--config', DIGITS)
    assert only_picture(out).shape[0] >= 224
    out, err = capsys.readouterr()
    assert 'photo.jpg: 8 x 8 pixels go into the model' in err
    assert 'photo.jpg: digit 7 1.00, ' in out
    assert out.count('digit ') == 5


# Packages that a classifier's prediction does not need, although installed ones might be imported.
UNNEEDED = ('mmdet', 'mmseg', 'transformers', 'matplotlib', 'scipy', 'vit_plugin.engine.runner')


@pytest.mark.nightly
def test_a_classifier_imports_no_unneeded_packages(image, tmp_path):
    checkpoint = save(tmp_path / 'digits.pth', DIGITS, dict(classes=[*'0123456789']))
    code = (
        'import sys; from vit_plugin.__main__ import main; '
        f'main(["infer", {checkpoint!r}, {str(image)!r}]); '
        f'print({{*{UNNEEDED}}} & {{*sys.modules}})'
    )
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == 'set()', done


@needs_mmdet
def test_a_detector_draws_boxes_above_the_score(infer, image, tmp_path, capsys):
    checkpoint = save(
        tmp_path / 'cells.pth',
        CELLS,
        dict(classes=('RBC', 'WBC', 'Platelets')),
        lambda model: torch.nn.init.constant_(model.bbox_head.retina_cls.bias, 3.0),
    )
    plain = cv2.imread(str(image))
    drawn = only_picture(infer(checkpoint, image, '--config', CELLS, '--device', 'cpu'))
    assert 'RBC' in capsys.readouterr().out
    assert not np.array_equal(drawn, plain)
    only_picture(infer(checkpoint, image, '--score-thr', '1'))  # with the config in the checkpoint
    assert 'photo.jpg: nothing' in capsys.readouterr().out


@needs_mmseg
@pytest.mark.nightly
def test_a_segmentor_draws_the_map(infer, image, tmp_path, capsys):
    config = tmp_path / 'config.py'
    config.write_text(f"""_base_ = '{Path(SCENES).resolve()}'
model = dict(backbone=dict(arch={TINY}, img_size=64, frozen_stages=2),
             test_cfg=dict(_delete_=True, mode='whole'),
             decode_head=dict(in_channels=32, channels=32))""")
    checkpoint = save(
        tmp_path / 'scenes.pth',
        str(config),
        {},
        lambda model: model.decode_head.conv_seg.bias.data.index_fill_(0, torch.tensor(2), 99.0),
    )
    drawn = only_picture(infer(checkpoint, image, '--config', config))
    assert drawn.shape == (240, 320, 3)
    assert 'photo.jpg: sky 100%' in capsys.readouterr().out


def test_invalid_calls_raise_one_sentence(infer, image, tmp_path):
    checkpoint = save(tmp_path / 'digits.pth', DIGITS, {})
    other = tmp_path / 'other.pth'
    state = torch.load(checkpoint, weights_only=True)['state_dict']
    torch.save(
        {name: value for name, value in state.items() if not name.startswith('head.')}, other
    )
    damaged = tmp_path / 'damaged.jpg'
    damaged.write_bytes(b'no picture')
    without_test = tmp_path / 'without_test.py'
    without_test.write_text(
        f'_base_ = {str(Path(DIGITS).resolve())!r}\n'
        'test_dataloader = test_cfg = test_evaluator = None'
    )
    for arguments, words in (
        ([checkpoint, image, '--config', without_test], 'has no test_dataloader; add one'),
        ([checkpoint, damaged, '--config', DIGITS], "damaged.jpg' cannot be read"),
        ([other, image, '--config', DIGITS], 'is not of this model'),
        (
            [checkpoint, image, '--config', DIGITS, '--score-thr', '0.3'],
            '--score-thr is for models that find boxes, and this one finds none',
        ),
    ):
        with pytest.raises(SystemExit) as error:
            infer(*arguments)
        assert words in str(error.value)
        assert '\n' not in str(error.value)


@pytest.fixture
def digits_checkpoint(tmp_path) -> Path:
    """A classifier's checkpoint with other names of classes than its data set has."""

    def prefer_seven(model):
        model.head.layers.head.bias.data[7] = 9

    return Path(
        save(
            tmp_path / 'digits.pth',
            DIGITS,
            dict(classes=[f'digit {i}' for i in range(10)]),
            prefer_seven,
        )
    )


def weights_in(checkpoint: Path, keep=lambda name: True) -> dict[str, torch.Tensor]:
    state = torch.load(checkpoint, weights_only=True)['state_dict']
    return {name: value for name, value in state.items() if keep(name)}


def test_complete_models_predict_the_same_from_any_format(
    infer, image, digits_checkpoint, tmp_path, capsys, monkeypatch
):
    save_file(weights_in(digits_checkpoint), tmp_path / 'digits.safetensors')
    np.savez(tmp_path / 'digits.npz', **weights_in(digits_checkpoint))
    monkeypatch.setattr(
        'vit_plugin.weights.opening.download', lambda address: tmp_path / Path(address).name
    )
    for checkpoint, prediction in (
        (tmp_path / 'digits.safetensors', '7 1.00'),
        (tmp_path / 'digits.npz', '7 1.00'),
        # Only this file states the names of its classes.
        ('http://localhost/digits.pth', 'digit 7 1.00'),
    ):
        infer(checkpoint, image, '--config', DIGITS)
        assert f'photo.jpg: {prediction}, ' in capsys.readouterr().out


def test_incomplete_weights_raise(infer, image, digits_checkpoint, tmp_path):
    save_file(
        weights_in(digits_checkpoint, lambda name: 'head' not in name),
        tmp_path / 'headless.safetensors',
    )
    as_timm = {
        name.removeprefix('backbone.').replace('head.layers.head', 'head'): value
        for name, value in weights_in(
            digits_checkpoint, lambda name: 'extra_state' not in name
        ).items()
    }
    save_file(
        {name: value[:7] if 'head' in name else value for name, value in as_timm.items()},
        tmp_path / 'seven.safetensors',
    )
    for name, reason in (
        ('headless', 'the checkpoint has no head'),
        ('seven', 'has 7 classes, the model 10'),
    ):
        with pytest.raises(SystemExit, match=rf'is not of the complete model: .*head\..*{reason}'):
            infer(tmp_path / f'{name}.safetensors', image, '--config', DIGITS)


@needs_mmdet
def test_a_detector_needs_its_neck_and_head(infer, image, tmp_path, capsys):
    def find_platelets(model):
        model.bbox_head.retina_cls.bias.data.copy_(torch.tensor([-9.0, -9.0, 3.0]).repeat(9))

    checkpoint = Path(save(tmp_path / 'cells.pth', CELLS, {}, find_platelets))
    save_file(weights_in(checkpoint), tmp_path / 'cells.safetensors')
    infer(tmp_path / 'cells.safetensors', image, '--config', CELLS, '--device', 'cpu')
    out = capsys.readouterr().out
    assert 'Platelets' in out
    assert 'RBC' not in out
    save_file(
        weights_in(checkpoint, lambda name: name.startswith('backbone.')),
        tmp_path / 'backbone.safetensors',
    )
    with pytest.raises(SystemExit, match=r'is not of the complete model: .*neck\.'):
        infer(tmp_path / 'backbone.safetensors', image, '--config', CELLS, '--device', 'cpu')


def test_overwriting_an_input_raises(infer, image, tmp_path):
    (tmp_path / 'out').mkdir()
    same_file = tmp_path / 'out/photo.png'
    same_file.write_bytes(image.read_bytes())
    checkpoint = tmp_path / 'none.pth'
    checkpoint.touch()
    with pytest.raises(
        SystemExit, match='would be overwritten while it is read; give another folder'
    ):
        infer(checkpoint, same_file, '--config', DIGITS)
    assert same_file.read_bytes() == image.read_bytes()


def test_the_images_of_a_folder_are_predicted(infer, image, tmp_path):
    folder = tmp_path / 'photos'
    folder.mkdir()
    for name in ('b.jpg', 'a.png'):
        (folder / name).write_bytes(image.read_bytes())
    (folder / 'notes.txt').write_text('not an image')
    out = infer(save(tmp_path / 'digits.pth', DIGITS, {}), folder, '--config', DIGITS)
    assert sorted(path.name for path in out.iterdir()) == ['a.png', 'b.jpg']


@pytest.mark.parametrize('name', ['model.onnx', 'MODEL.ONNX', 'Model.Xml'])
def test_suffixes_of_exported_files_may_be_capital(name):
    assert not command.needs_torch(SimpleNamespace(checkpoint=name, about=False))
    args = SimpleNamespace(checkpoint=name, device='cpu', given={'checkpoint', 'device'})
    with rejects(f'^--device does not go with CHECKPOINT {name}; the file has all of it'):
        check_rules(RULES['infer'], build_parser(command), args)
