"""Files in ONNX are run by their metadata: preprocessing, classes and the meaning of outputs.

The files are written here, with constant outputs in place of a network.
"""

import json
import subprocess
import sys
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from rejection import rejects

from vit_plugin.deploy.bilinear import bilinear
from vit_plugin.deploy.exported_model import ExportedModel
from vit_plugin.deploy.pixel_steps import PlacedPixels, apply_steps
from vit_plugin.deploy.runtimes import METADATA_KEY
from vit_plugin.inference.predictions import draw_prediction
from vit_plugin.tasks.detection.box_prediction import mask_on
from vit_plugin.tasks.segmentation.map_prediction import best_class

onnx = pytest.importorskip('onnx')
pytest.importorskip('onnxruntime')
STRETCH = [dict(resize=['exact', 12, 8], interpolation='bilinear', backend='cv2')]
# Two ways to keep the aspect ratio: fit images into 12 x 8 pixels and pad, or cover these and crop.
WITHIN = [
    dict(resize=['target', 12, 8, 1], interpolation='bilinear', backend='cv2'),
    dict(pad=[12, 8], fill=[0, 0, 0]),
]
AROUND = [
    dict(resize=['target', 12, 8, 0], interpolation='bilinear', backend='cv2'),
    dict(crop=[12, 8]),
]
LOGITS = dict(logits=np.zeros((1, 3), np.float32))
BOX = dict(
    boxes=np.array([[[2.0, 1.0, 5.0, 3.0]]], np.float32),
    scores=np.array([[0.9]], np.float32),
    labels=np.array([[1]]),
)
BLACK = np.zeros((8, 12, 3), np.uint8)  # an image of the size that the files take
FACTS = dict(classes=['cat', 'dog', 'cow'], multi_label=False, rgb=True, steps=STRETCH)


def write(path, outputs: dict[str, np.ndarray], adds_means: bool = False, **facts) -> str:
    """Write a file with constant outputs, for images of 12 x 8 pixels.

    With ``adds_means``, the mean of each channel of the image is added to the first output. The
    ``facts`` replace metadata in :data:`FACTS`.
    """
    from onnx import TensorProto, helper, numpy_helper

    nodes, initializers, infos = [], [], []
    for i, (name, value) in enumerate(outputs.items()):
        initializers.append(numpy_helper.from_array(value, f'{name}_value'))
        if adds_means and i == 0:
            nodes += [
                helper.make_node('ReduceMean', ['images'], ['means'], axes=[2, 3], keepdims=0),
                helper.make_node('Add', ['means', f'{name}_value'], [name]),
            ]
        else:
            nodes.append(helper.make_node('Identity', [f'{name}_value'], [name]))
        infos.append(
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape
            )
        )
    image = helper.make_tensor_value_info('images', TensorProto.FLOAT, ['batch', 3, 8, 12])
    model = helper.make_model(
        helper.make_graph(nodes, 'graph', [image], infos, initializers),
        opset_imports=[helper.make_opsetid('', 17)],
        ir_version=8,
    )
    helper.set_model_props(model, {METADATA_KEY: json.dumps(FACTS | facts)})
    onnx.save(model, path)
    return str(path)


@pytest.fixture
def make_model(tmp_path):
    """A function that writes a file, see :func:`write`, and opens it."""
    return lambda *args, **facts: ExportedModel(write(tmp_path / 'm.onnx', *args, **facts))


@pytest.mark.parametrize(
    'text',
    [None, '{', '5', '[' * 100_000, '{"steps": []}', '{"steps": 1, "classes": [], "rgb": true}'],
)
def test_foreign_metadata_raise_one_sentence(tmp_path, text):
    path = write(tmp_path / 'm.onnx', LOGITS)
    model = onnx.load(path)
    onnx.helper.set_model_props(model, {} if text is None else {METADATA_KEY: text})
    onnx.save(model, path)
    nested = text is not None and text.startswith('[[')
    with rejects('levels of JSON' if nested else 'does not say what its inputs and outputs are'):
        ExportedModel(path)


def resize(*arguments) -> dict:
    return dict(resize=list(arguments), interpolation='bilinear', backend='cv2')


@pytest.mark.parametrize(
    ('facts', 'words'),
    [
        (dict(steps=[resize('exact', 6000, 8000)]), 'cannot be run|makes 6,000 x 8,000 pixels'),
        (dict(steps=[resize('exact', 24, 16)]), 'makes images of 24 x 16 pixels, but its graph'),
        (dict(steps=[dict(pad=[60_000, 8], fill=[0, 0, 0])]), 'makes images of 60,000 x 8 pixels'),
        (dict(steps=[dict(crop=[60_000, 60_000], fill=0)]), 'makes 60,000 x 60,000 pixels'),
        (dict(steps=[dict(unit=60_000, fill=0)]), 'makes 60,000 x 60,000 pixels'),
        (dict(steps=[resize('edge', 'short', 0)]), r'm\.onnx. has a pipeline|makes images of'),
        (dict(steps=[resize('none', 1)]), 'has a pipeline that cannot be run'),
        (dict(steps=[resize('exact', 'a', 'b')]), 'has a pipeline that cannot be run'),
        (dict(steps=[dict(crop=[-1, 4])]), 'does not say what its inputs'),
        (dict(steps=[dict(run='me')]), 'does not say what its inputs'),
        (dict(slices=1), 'does not say what its inputs'),
        (dict(patch=0), 'does not say what its inputs'),
        (dict(usual=[0, 0]), 'does not say what its inputs'),
        (dict(usual=[8]), 'does not say what its inputs'),
    ],
)
def test_metadata_are_compared_with_the_graph(make_model, facts, words):
    with rejects(words):
        make_model(LOGITS, **facts)


def test_slices_may_be_as_small_as_the_tiles_of_a_training(make_model):
    assert make_model(LOGITS, slices=16).slices == 16


@pytest.mark.parametrize(
    ('step', 'cause'),
    [
        (dict(resize=['exact', 12, 8]), "no 'interpolation'"),
        (dict(pad=[12, 8]), "no 'fill'"),
        (dict(pad=[12, 8], fill=[0, 0]), 'could not broadcast'),
    ],
)
def test_steps_that_lack_an_entry_raise(make_model, step, cause):
    model = make_model(LOGITS, steps=[step])
    with rejects(rf'has a pipeline that cannot be run \({cause}.*; export it again'):
        model(BLACK[:4])


def test_graphs_that_take_no_images_raise(tmp_path):
    path = write(tmp_path / 'm.onnx', LOGITS)
    model = onnx.load(path)
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = 'channels'
    onnx.save(model, path)
    with rejects(r'm\.onnx. takes no images of known channels \(.*; export it again'):
        ExportedModel(path)


def test_images_that_a_step_would_make_huge_raise():
    """An image of one row, for a graph of any size."""
    steps = [resize('edge', 'short', 256)]
    image = np.zeros((1, 1000, 3), np.uint8)
    with rejects('makes 256,000 x 256 pixels of 1,000 x 1, and no more than 33,554,432 go'):
        apply_steps(steps, image)


def test_channels_have_the_order_of_the_network(make_model):
    image = np.zeros((16, 24, 3), np.uint8)
    image[..., 0] = 200  # blue
    for rgb, name in ((True, 'cow'), (False, 'cat')):
        prediction = make_model(LOGITS, adds_means=True, rgb=rgb)(image)
        assert prediction.names[0] == name
        assert prediction.scores.sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ('steps', 'scale', 'offset'),
    [(STRETCH, (0.5, 1.0), (0, 0)), (WITHIN, (0.5, 0.5), (0, 0)), (AROUND, (1.0, 1.0), (-6, 0))],
)
def test_boxes_are_scaled_to_the_image(make_model, steps, scale, offset):
    """An image of 24 x 8 pixels, for a network of 12 x 8."""
    model = make_model(BOX, steps=steps)
    image = np.arange(8 * 24 * 3, dtype=np.uint8).reshape(8, 24, 3)
    fitted, fitted_scale, fitted_offset, _ = model.apply_pipeline(image)
    assert fitted.shape == (8, 12, 3)
    np.testing.assert_allclose(fitted_scale, scale)
    np.testing.assert_allclose(fitted_offset, offset)
    prediction = model(image)
    assert prediction.text() == '1 dog'
    np.testing.assert_allclose(
        prediction.boxes[0], (BOX['boxes'][0, 0] - np.tile(offset, 2)) / np.tile(scale, 2)
    )


def test_images_smaller_than_a_patch_raise(make_model):
    model = make_model(LOGITS, steps=[], patch=8)
    with rejects(r'12 x 7 pixels, which is smaller than one patch of 8'):
        model(np.zeros((7, 12, 3), np.uint8))
    model(BLACK)


def test_maps_have_the_size_of_the_image_without_padding(make_model):
    logits = np.zeros((1, 3, 8, 12), np.float32)
    logits[0, 1, :4] = logits[0, 2, 4:] = 1  # an image of 24 x 8 takes the upper half
    prediction = make_model(dict(logits=logits), steps=WITHIN)(np.zeros((8, 24, 3), np.uint8))
    assert prediction.map.shape == (8, 24)
    assert prediction.text() == 'dog 100%'


@pytest.mark.parametrize(
    'outputs',
    [
        LOGITS,
        dict(logits=np.ones((1, 3, 8, 12), np.float32)),
        BOX,
    ],
)
def test_predictions_are_drawn(make_model, outputs):
    image = np.full((80, 120, 3), 128, np.uint8)
    prediction = make_model(outputs)(image)
    assert (draw_prediction(image, prediction, 0.3) != 128).any()


def test_batches_predict_like_single_images_and_large_images_are_reported(make_model, capsys):
    model = make_model(LOGITS, adds_means=True, usual=[1, 1])
    images = [
        np.full((8, 12, 3), color, np.uint8) for color in ((200, 0, 0), (0, 200, 0), (0, 0, 200))
    ]
    files = ['1.png', '2.png', '3.png']
    predictions = model.predict(images, files)
    assert [prediction.names[0] for prediction in predictions] == ['cow', 'dog', 'cat']
    err = capsys.readouterr().err
    assert err.startswith('1.png: 12 x 8 pixels go into the model, 96 times')
    assert '2.png' not in err  # the message comes once


def test_multi_label_scores_are_independent(make_model):
    logits = np.array([[0.0, 2.0, -2.0]], np.float32)
    prediction = make_model(dict(logits=logits), multi_label=True)(BLACK)
    assert prediction.names == ['dog', 'cat', 'cow']
    assert prediction.scores[1] == 0.5


def test_boxes_with_the_score_0_are_dropped(make_model):
    outputs = dict(
        boxes=np.zeros((1, 2, 4), np.float32),
        scores=np.array([[0.9, 0.0]], np.float32),
        labels=np.array([[1, 0]]),
    )
    assert make_model(outputs)(BLACK).names == ['dog']


def test_invalid_files_and_images_raise(make_model, tmp_path):
    (tmp_path / 'no.onnx').write_text('no')
    with rejects('cannot be run .*; export it again'):
        ExportedModel(tmp_path / 'no.onnx')
    with rejects(r'no\.pt2. has no runtime; give a file in \.onnx or \.xml'):
        ExportedModel(tmp_path / 'no.pt2')
    with rejects('outside of the file'):
        make_model(dict(masks=np.ones((1, 3), np.float32)))(BLACK)
    with rejects('on an image of 2 x 3 pixels .*; give a larger image'):
        make_model(LOGITS, steps=[])(np.zeros((3, 2, 3), np.uint8))


def test_outputs_of_another_number_than_images_raise(make_model):
    model = make_model(LOGITS)  # its outputs are constant
    assert len(model.predict([BLACK])) == 1
    with rejects(r'outputs of the shapes \(1, 3\) for 2 images'):
        model.predict([BLACK, BLACK])


def test_infer_imports_no_torch(tmp_path):
    file = write(tmp_path / 'm.onnx', LOGITS)
    cv2.imwrite(str(tmp_path / 'photo.png'), np.zeros((20, 30, 3), np.uint8))
    script = (
        'import sys; from vit_plugin.__main__ import main; main(sys.argv[1:]); '
        'assert not {"torch", "mmengine", "mmcv"} & set(sys.modules), "imported"'
    )
    done = subprocess.run(
        [
            sys.executable,
            '-c',
            script,
            'infer',
            file,
            str(tmp_path / 'photo.png'),
            '--out',
            str(tmp_path / 'out'),
            '--out',
            str(tmp_path / 'predictions.json'),
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert 'photo.png: cat 0.33' in done.stdout
    assert (
        json.loads((tmp_path / 'predictions.json').read_text())[str(tmp_path / 'photo.png')][0][
            'class'
        ]
        == 'cat'
    )
    assert (tmp_path / 'out/photo.png').exists()


@pytest.mark.parametrize(
    ('outputs', 'words'),
    [
        (dict(features=np.zeros((1, 4), np.float32)), 'gives features of an image and no classes'),
        (dict(BOX, scores=np.zeros((1, 3), np.float32)), 'outputs of the file do not fit together'),
        (dict(boxes=BOX['boxes']), r'do not fit together \(.*scores'),
    ],
)
def test_outputs_that_are_no_prediction_raise(make_model, outputs, words):
    with rejects(words):
        make_model(outputs)(BLACK)


def test_maps_may_have_more_than_256_classes(make_model):
    logits = np.zeros((1, 300, 8, 12), np.float32)
    logits[:, 290] = 1
    model = make_model(dict(logits=logits))
    image = np.full((20, 30, 3), 128, np.uint8)
    prediction = model(image)
    assert prediction.names == ['290']
    assert draw_prediction(image, prediction, 0.3).shape == (220, 330, 3)


def test_models_that_read_a_window_of_values_are_not_exported():
    from vit_plugin.data import LoadImage
    from vit_plugin.deploy.pipeline_steps import pixel_steps_of

    load = SimpleNamespace(transforms=[LoadImage(window=(0, 4095))])
    trained = SimpleNamespace(
        has_pixels=True,
        pixels=SimpleNamespace(transforms=[], custom_reader=load),
        model=SimpleNamespace(data_preprocessor=None),
    )
    with rejects('reads a window of values.*images of 8 bits'):
        pixel_steps_of(trained)


@pytest.mark.parametrize('align_corners', [True, False])
@pytest.mark.parametrize('size', [(8, 12), (31, 47), (3, 5), (1, 9), (40, 1)])
def test_maps_are_resized_as_in_torch(align_corners, size):
    logits = np.random.default_rng(0).normal(size=(4, 8, 12)).astype(np.float32)
    expected = torch.nn.functional.interpolate(
        torch.from_numpy(logits)[None], size, mode='bilinear', align_corners=align_corners
    )[0]
    for channel, resized in zip(logits, expected, strict=True):
        np.testing.assert_allclose(bilinear(channel, size, align_corners), resized, atol=1e-5)
    assert np.array_equal(best_class(logits, size, align_corners), expected.argmax(0))


def test_metadata_state_how_maps_are_resized(make_model):
    """Files of earlier versions do not state it, and are resized without aligned corners."""
    logits = np.random.default_rng(0).normal(size=(1, 3, 8, 12)).astype(np.float32)
    image = np.zeros((31, 47, 3), np.uint8)
    for facts, aligned in (({}, False), (dict(align_corners=True), True)):
        prediction = make_model(dict(logits=logits), **facts)(image)
        assert np.array_equal(prediction.map, best_class(logits[0], (31, 47), aligned))


def test_a_threshold_is_applied_to_maps_of_one_logit(make_model):
    logits = np.zeros((1, 1, 8, 12), np.float32)
    logits[..., :6] = 3
    for threshold, share in ((0.3, 1), (0.6, 0.5), (0.99, 0)):
        prediction = make_model(dict(logits=logits), threshold=threshold)(BLACK)
        assert prediction.map.mean() == share


@pytest.mark.parametrize('padded', [False, True])
def test_masks_have_the_size_of_the_image(padded):
    """As in MMDetection, padding is cut off before masks are resized."""
    logits = np.random.default_rng(0).normal(size=(8, 8)).astype(np.float32)
    inner = (24, 32) if padded else (32, 32)
    placed = PlacedPixels(np.zeros((32, 32, 3)), np.ones(2), np.zeros(2), inner)
    expected = torch.from_numpy(logits)[None, None]
    if padded:
        expected = F.interpolate(expected, (32, 32), mode='bilinear')[..., :24, :32]
    expected = F.interpolate(expected, (48, 64), mode='bilinear')[0, 0] > 0
    mask = mask_on(logits, placed, (64, 48))
    assert (mask != expected.numpy()).mean() < 1e-3
