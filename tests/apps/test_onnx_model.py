"""A file in ONNX is asked as the checkpoint that it was exported from, and without torch."""

import json
import subprocess
import sys
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
from mmengine.config import Config

from vit_plugin.apps.drawing import draw
from vit_plugin.apps.onnx_model import KEY, OnnxModel, facts_of
from vit_plugin.errors import ConfigError

onnx = pytest.importorskip('onnx')
pytest.importorskip('onnxruntime')
FACTS = dict(classes=['cat', 'dog', 'cow'], size=(8, 12), fit='stretch', enlarged=1., rgb=True, padding=[0., 0., 0.],
             interpolation='bilinear', antialias=False)


def write(path, outputs: dict[str, np.ndarray], echo: bool = False, **facts) -> str:
    """A file whose outputs are these arrays. With ``echo``, the first adds the mean of each channel of the image."""
    from onnx import TensorProto, helper, numpy_helper
    nodes, initializers, infos = [], [], []
    for i, (name, value) in enumerate(outputs.items()):
        initializers.append(numpy_helper.from_array(value, f'{name}_value'))
        if echo and not i:
            nodes += [helper.make_node('ReduceMean', ['images'], ['means'], axes=[2, 3], keepdims=0),
                      helper.make_node('Add', ['means', f'{name}_value'], [name])]
        else:
            nodes.append(helper.make_node('Identity', [f'{name}_value'], [name]))
        infos.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape))
    image = helper.make_tensor_value_info('images', TensorProto.FLOAT, ['batch', 3, 8, 12])
    model = helper.make_model(helper.make_graph(nodes, 'graph', [image], infos, initializers),
                              opset_imports=[helper.make_opsetid('', 17)], ir_version=8)
    helper.set_model_props(model, {KEY: json.dumps(FACTS | facts)} if facts.get('said', True) else {})
    onnx.save(model, path)
    return str(path)


def test_a_classifier_gets_the_channels_of_the_network(tmp_path):
    image = np.zeros((16, 24, 3), np.uint8)
    image[..., 0] = 200  # blue
    for rgb, name in ((True, 'cow'), (False, 'cat')):
        found = OnnxModel(write(tmp_path / 'm.onnx', dict(logits=np.zeros((1, 3), np.float32)), True, rgb=rgb))(image)
        assert found.names[0] == name
        assert found.scores.sum() == pytest.approx(1)


@pytest.mark.parametrize(('size', 'inner', 'canvas'), [
    ((160, 96), (128, 77), (96, 128)), ((96, 160), (77, 128), (128, 96)), ((100, 100), (80, 80), (96, 96)),
    ((20, 10), (128, 64), (64, 128))])
def test_an_image_of_any_shape_is_resized_as_by_the_pipeline(tmp_path, size, inner, canvas):
    """MMCV's Resize of (128, 80) with keep_ratio=True, and MMDetection's padding to multiples of 32."""
    from mmcv.transforms import Resize
    outputs = dict(boxes=np.zeros((1, 1, 4), np.float32), scores=np.ones((1, 1), np.float32), labels=np.array([[0]]))
    model = OnnxModel(write(tmp_path / 'm.onnx', outputs, fit='pad', scale=[128, 80], unit=32, least=64))
    image = np.random.default_rng(0).integers(0, 256, (size[1], size[0], 3), np.uint8)
    wanted = Resize(scale=(128, 80), keep_ratio=True)(dict(img=image))['img']
    fitted, scale, offset = model.fitted(image)
    assert wanted.shape[1::-1] == inner
    assert fitted.shape[:2] == canvas
    assert np.array_equal(fitted[:inner[1], :inner[0]], wanted)
    assert not fitted[inner[1]:].any()
    np.testing.assert_allclose(scale * size, inner)
    assert not offset.any()


@pytest.mark.parametrize(('fit', 'scale', 'offset'), [('stretch', (0.5, 1.), (0, 0)), ('pad', (0.5, 0.5), (0, 0)),
                                                      ('crop', (1., 1.), (-6, 0))])
def test_boxes_are_those_of_the_image(tmp_path, fit, scale, offset):
    """24 x 8 pixels at 12 x 8."""
    box = np.array([[[2., 1., 5., 3.]]], np.float32)
    model = OnnxModel(write(tmp_path / 'm.onnx', dict(
        boxes=box, scores=np.array([[0.9]], np.float32), labels=np.array([[1]])), fit=fit))
    image = np.arange(8 * 24 * 3, dtype=np.uint8).reshape(8, 24, 3)
    fitted, *moved = model.fitted(image)
    assert fitted.shape == (8, 12, 3)
    for one, expected in zip(moved, (scale, offset), strict=True):
        np.testing.assert_allclose(one, expected)
    found = model(image)
    assert found.text() == '1 dog'
    np.testing.assert_allclose(found.boxes[0], (box[0, 0] - np.tile(offset, 2)) / np.tile(scale, 2))


def test_a_map_has_the_size_of_the_image_without_the_padding(tmp_path):
    logits = np.zeros((1, 3, 8, 12), np.float32)
    logits[0, 1, :4] = logits[0, 2, 4:] = 1  # an image of 24 x 8 takes the upper half
    found = OnnxModel(write(tmp_path / 'm.onnx', dict(logits=logits), fit='pad'))(np.zeros((8, 24, 3), np.uint8))
    assert found.map.shape == (8, 24)
    assert found.text() == 'dog 100%'


@pytest.mark.parametrize('outputs', [
    dict(logits=np.ones((1, 3), np.float32)), dict(logits=np.ones((1, 3, 8, 12), np.float32)),
    dict(boxes=np.array([[[2., 1., 5., 3.]]], np.float32), scores=np.array([[0.9]], np.float32),
         labels=np.array([[1]]))])
def test_pictures(tmp_path, outputs):
    image = np.full((80, 120, 3), 128, np.uint8)
    found = OnnxModel(write(tmp_path / 'm.onnx', outputs))(image)
    assert (draw(image, found, 0.3) != 128).any()


def test_several_images_are_those_alone(tmp_path):
    model = OnnxModel(write(tmp_path / 'm.onnx', dict(logits=np.zeros((1, 3), np.float32)), True))
    images = [np.full((8, 12, 3), colour, np.uint8) for colour in ((200, 0, 0), (0, 200, 0), (0, 0, 200))]
    assert model.any_number
    assert [found.names[0] for found in model.predict(images)] == ['cow', 'dog', 'cat']
    model.any_number = False  # as of a detector in a file for one image
    assert [found.names[0] for found in model.predict(images)] == ['cow', 'dog', 'cat']


def test_errors(tmp_path):
    (tmp_path / 'no.onnx').write_text('no')
    with pytest.raises(ConfigError, match='cannot be run .*; export it again'):
        OnnxModel(tmp_path / 'no.onnx')
    with pytest.raises(ConfigError, match='does not say what its outputs are'):
        OnnxModel(write(tmp_path / 'm.onnx', dict(logits=np.ones((1, 3), np.float32)), said=False))
    with pytest.raises(ConfigError, match='outside of the file'):
        OnnxModel(write(tmp_path / 'm.onnx', dict(masks=np.ones((1, 3), np.float32))))(np.zeros((8, 12, 3), np.uint8))


def test_nothing_of_torch_is_imported(tmp_path):
    file = write(tmp_path / 'm.onnx', dict(logits=np.ones((1, 3), np.float32)))
    cv2.imwrite(str(tmp_path / 'photo.png'), np.zeros((20, 30, 3), np.uint8))
    script = ('import sys; from vit_plugin.__main__ import main; main(sys.argv[1:]); '
              'assert not {"torch", "mmengine", "mmcv"} & set(sys.modules), "imported"')
    done = subprocess.run(
        [sys.executable, '-c', script, 'infer', file, str(tmp_path / 'photo.png'), '--out', str(tmp_path / 'out'),
         '--out', str(tmp_path / 'found.json')], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert 'photo.png: cat 0.33' in done.stdout
    assert json.loads((tmp_path / 'found.json').read_text())[str(tmp_path / 'photo.png')][0]['class'] == 'cat'
    assert (tmp_path / 'out/photo.png').exists()


@pytest.mark.parametrize(('pipeline', 'expected'), [
    ([dict(type='ResizeEdge', scale=256, backend='pillow', interpolation='bicubic'), dict(type='CenterCrop',
      crop_size=224)], dict(fit='crop', enlarged=256 / 224, interpolation='bicubic', antialias=True)),
    ([dict(type='Resize', scale=(640, 480), keep_ratio=True)], dict(fit='pad', interpolation='bilinear')),
    ([dict(type='mmdet.Resize', scale=(64, 64), keep_ratio=False)], dict(fit='stretch')),
    ([], dict(fit='stretch', rgb=True, padding=[3., 2., 1.], size=[8, 12]))])
def test_what_a_file_says(pipeline, expected):
    mean = np.array([1., 2., 3.]).reshape(3, 1, 1)
    trained = SimpleNamespace(
        classes=['cat'], crop_pct=None, cfg=Config(dict(test_dataloader=dict(dataset=dict(pipeline=pipeline)))),
        model=SimpleNamespace(backbone=SimpleNamespace(img_size=(8, 12)), data_preprocessor=SimpleNamespace(
            to_rgb=True, mean=mean)))
    facts = json.loads(facts_of(trained, None))
    assert facts.items() >= expected.items()


def test_more_classes_than_a_byte_has(tmp_path):
    logits = np.zeros((1, 300, 8, 12), np.float32)
    logits[:, 290] = 1
    model = OnnxModel(write(tmp_path / 'm.onnx', dict(logits=logits)))
    image = np.full((20, 30, 3), 128, np.uint8)
    found = model(image)
    assert found.names == ['290']
    assert draw(image, found, 0.3).shape == (220, 330, 3)
