"""Exported classifiers equal the model, in each format and dtype; others leave no file behind."""

from itertools import product

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import MODELS, init_default_scope
from rejection import rejects
from tiny_models import randomize

from vit_plugin.deploy.deployed import deploy
from vit_plugin.deploy.deployed_module import Deployed
from vit_plugin.deploy.export import FILE_FORMATS, export
from vit_plugin.deploy.onnx_file import write_onnx
from vit_plugin.deploy.output_difference import largest_difference
from vit_plugin.deploy.traced_graph import trace
from vit_plugin.inference.load import from_config
from vit_plugin.inference.saved_model import SavedModel
from vit_plugin.weights import open_checkpoint

pytestmark = pytest.mark.filterwarnings('ignore')  # of the exporters
SIZE = (40, 24)  # height and width; 5 x 3 patches, where the native grid is 4 x 4
DINOV3 = dict(form='centred', planes='halves')
WINDOW = dict(window=dict(size=3, global_blocks=(1,)))  # does not divide the grid
MAPS = dict(with_cls_token=False, out_type='avg_featmap')
MAP_POOLING = dict(
    type='vit_plugin.TokenPooling',
    mode='map',
    in_channels=32,
    num_prefix_tokens=0,
    map_cfg=dict(num_heads=2),
)
# Changes of the backbone, and of the neck and head.
VARIATIONS: dict[str, dict] = {
    "pos_embed='none'": dict(pos_embed='none'),
    "pos_embed='learned'": {},
    "'learned', bicubic": dict(pos_embed=dict(type='learned', interpolate_mode='bicubic')),
    "'learned', bicubic_dinov2": dict(
        pos_embed=dict(type='learned', interpolate_mode='bicubic_dinov2')
    ),
    "'learned', prefix_rows=False": dict(pos_embed=dict(type='learned', prefix_rows=False)),
    "pos_embed='learned_2d'": dict(pos_embed='learned_2d'),
    "pos_embed='sincos2d'": dict(pos_embed='sincos2d'),
    "pos_embed='relative'": dict(pos_embed='relative'),
    "relative='bias'": dict(pos_embed=dict(type='none', relative='bias')),
    "'learned', relative='shared_bias'": dict(
        pos_embed=dict(type='learned', relative='shared_bias'), encoder=dict(reg_token=2)
    ),
    "'sincos2d', spread=False": dict(pos_embed=dict(type='sincos2d', spread=False)),
    # Only the first block's output.
    "'learned', relative=True": dict(pos_embed=dict(type='learned', relative=True), out_indices=0),
    'rotary': dict(
        pos_embed=dict(type='none', rotary=DINOV3), encoder=dict(reg_token=4, qkv_bias='qv')
    ),
    'rotary, by index': dict(
        pos_embed=dict(type='learned', rotary=dict(form='index', native_grid=(4, 4), offset=1.0))
    ),
    'rotary, mixed': dict(pos_embed=dict(type='none', rotary=dict(form='mixed'))),
    'window': dict(encoder=WINDOW, **MAPS),
    'window, rotary': dict(encoder=WINDOW, pos_embed=dict(type='none', rotary=DINOV3), **MAPS),
    'window, relative': dict(encoder=WINDOW, pos_embed=dict(type='learned', relative=True), **MAPS),
    'reg_token': dict(encoder=dict(reg_token=4)),
    'pre_norm': dict(encoder=dict(pre_norm=True)),
    'layer_scale_init_value': dict(encoder=dict(layer_scale_init_value=0.1)),
    'qk_norm': dict(encoder=dict(qk_norm=True)),
    'gated_mlp': dict(encoder=dict(gated_mlp=True)),
    "padding='valid'": dict(patch_embed=dict(padding='valid')),
    'all of these': dict(
        pos_embed=dict(type='learned', interpolate_mode='bicubic'),
        patch_embed=dict(padding='valid'),
        encoder=dict(
            reg_token=4, pre_norm=True, layer_scale_init_value=0.1, qk_norm=True, gated_mlp=True
        ),
    ),
    'ResNetEmbed': dict(arch='hybrid'),
    "ResNetEmbed, numerics='timm'": dict(arch='hybrid', numerics='timm'),
    'TimmEmbed': dict(
        patch_embed=dict(type='TimmEmbed', model_name='resnet10t', out_indices=(1,), patch_size=2)
    ),
    "out_type='avg_featmap'": dict(out_type='avg_featmap'),
    'pre-logits': dict(head=dict(hidden_dim=16)),
    "TokenPooling, mode='map'": dict(out_type='raw', with_cls_token=False, neck=MAP_POOLING),
    'DistilledViTClsHead': dict(
        out_type='raw', encoder=dict(dist_token=1), head=dict(type='vit_plugin.DistilledViTClsHead')
    ),
}
SIZES = {'fixed': SIZE, '--dynamic': None}
# Variations with graphs that depend on the image size.
NOT_DYNAMIC = {'window', 'window, rotary', 'window, relative', "'learned', bicubic_dinov2"}
# Not only nightly: one that has most of the options, and two that have failed before.
QUICK = {
    ('all of these', 'fixed', '.onnx'),
    ("pos_embed='learned'", '--dynamic', '.pt2'),
    ("'learned', bicubic_dinov2", '--dynamic', '.pt2'),
}


@pytest.fixture
def train(tmp_path, tiny, tiny_hybrid):
    """Makes a classifier's config and a checkpoint with random weights, as if it were trained."""

    def make(
        arch: str = 'pure', head: dict | None = None, neck: dict | None = None, **backbone
    ) -> tuple[Config, str]:
        init_default_scope('mmpretrain')
        backbone = {**(tiny_hybrid if arch == 'hybrid' else tiny), **backbone}
        cfg = Config(
            dict(
                model=dict(
                    type='ImageClassifier',
                    neck=neck,
                    backbone=dict(type='vit_plugin.VisionTransformer', **backbone),
                    head=dict(
                        dict(type='vit_plugin.ViTClsHead', num_classes=5, in_channels=32),
                        **(head or {}),
                    ),
                ),
                data_preprocessor=dict(
                    mean=[120.0, 110.0, 100.0], std=[60.0, 60.0, 50.0], to_rgb=True
                ),
            )
        )
        model = MODELS.build(cfg.model)
        randomize(model, std=0.2)
        torch.save(model.state_dict(), tmp_path / 'weights.pth')
        return cfg, str(tmp_path / 'weights.pth')

    return make


def load_deployed(cfg: Config, path: str, dtype: str = 'float32') -> Deployed:
    return deploy(from_config(SavedModel(open_checkpoint(path), cfg)).model, dtype)


@pytest.fixture
def deployed(train):
    return lambda **variation: load_deployed(*train(**variation))


@pytest.fixture
def with_onnx() -> None:
    pytest.importorskip('onnxruntime')
    pytest.importorskip('onnxscript')


@pytest.mark.parametrize('arch', ['pure', 'hybrid'])
def test_deployed_models_include_the_preprocessing(train, arch):
    cfg, path = train(arch)
    model = load_deployed(cfg, path)
    images = torch.randint(0, 256, (2, 3, *SIZE)).float()
    whole = MODELS.build(
        dict(cfg.model, data_preprocessor=dict(cfg.data_preprocessor, type='ClsDataPreprocessor'))
    )
    whole.load_state_dict(torch.load(path))
    # The framework reads images in BGR.
    inputs = whole.eval().data_preprocessor(dict(inputs=images.flip(1)))['inputs']
    with torch.no_grad():
        assert torch.equal(model(images), whole(inputs))


def test_a_preprocessor_within_the_model_is_used(train):
    cfg, path = train()
    separate = load_deployed(cfg, path)
    cfg.model.data_preprocessor = cfg.pop('data_preprocessor')
    images = torch.randint(0, 256, (2, 3, *SIZE)).float()
    with torch.no_grad():
        assert torch.equal(load_deployed(cfg, path)(images), separate(images))


@pytest.mark.usefixtures('with_onnx')
@pytest.mark.parametrize(
    ('variation', 'size', 'suffix'),
    [
        pytest.param(*row, marks=() if row in QUICK else pytest.mark.nightly)
        for row in product(VARIATIONS, SIZES, FILE_FORMATS)
    ],
)
def test_each_variation_is_exported_or_refused(deployed, tmp_path, variation, size, suffix):
    model, out = deployed(**VARIATIONS[variation]), tmp_path / 'new' / f'model{suffix}'
    written = {out}
    if suffix == '.xml':
        pytest.importorskip('openvino')
        written.add(out.with_suffix('.bin'))
    if size == '--dynamic' and variation in NOT_DYNAMIC:
        with rejects('graph .* depends on the size .* write a file for each size') as error:
            export(model, out, SIZES[size])
        assert '\n' not in str(error.value)
        assert list(out.parent.iterdir()) == []
    else:
        assert export(model, out, SIZES[size]) < 1e-5
        assert {*out.parent.iterdir()} == written


@pytest.mark.nightly
def test_bfloat16_files_are_smaller_and_close(train, tmp_path):
    cfg, path = train('hybrid')
    model, half = load_deployed(cfg, path), load_deployed(cfg, path, 'bfloat16')
    assert export(model, tmp_path / 'model.pt2', SIZE) < 1e-5
    assert 1e-5 < export(half, tmp_path / 'half.pt2', SIZE, 'bfloat16', model) < 0.1
    assert (tmp_path / 'half.pt2').stat().st_size < (tmp_path / 'model.pt2').stat().st_size


@pytest.mark.nightly
@pytest.mark.usefixtures('with_onnx')
def test_int8_files_are_close(deployed, tmp_path):
    assert 1e-5 < export(deployed(), tmp_path / 'int8.onnx', SIZE, 'int8') < 0.2


@pytest.mark.nightly
@pytest.mark.usefixtures('with_onnx')
def test_float16_keeps_values_beyond_its_range_in_float32(deployed, tmp_path):
    """Shown by the number of casts, since a CPU computes in float32 and has no overflows."""
    import onnx

    casts = []
    for factor in (1.0, 1e4):
        model = deployed(arch='hybrid')
        mlp = model.model.backbone.blocks[0].mlp
        mlp.fc1.weight.data *= factor
        mlp.fc2.weight.data /= factor
        assert 1e-5 < export(model, tmp_path / 'half.onnx', SIZE, 'float16') < 1e-2
        casts.append(
            [node.op_type for node in onnx.load(tmp_path / 'half.onnx').graph.node].count('Cast')
        )
    assert casts[0] < casts[1]
    export(model, tmp_path / 'whole.onnx', SIZE)
    assert (tmp_path / 'half.onnx').stat().st_size < 0.75 * (tmp_path / 'whole.onnx').stat().st_size


@pytest.mark.usefixtures('with_onnx')
@pytest.mark.nightly
def test_files_for_all_sizes_take_the_native_size(deployed, tmp_path):
    """The positions of the native size are not resampled."""
    model = deployed()
    run = write_onnx(trace(model, None), tmp_path / 'model.onnx', 'float32')
    assert largest_difference(model, run, (32, 32)) < 1e-5


@pytest.mark.usefixtures('with_onnx')
@pytest.mark.nightly
def test_large_weights_are_written_to_a_second_file(deployed, tmp_path, monkeypatch):
    monkeypatch.setattr('torch.onnx._internal.exporter._onnx_program._LARGE_MODEL_THRESHOLD', 0)
    model, out = deployed(), tmp_path / 'model.onnx'
    for _ in range(2):  # the second time over the first files
        export(model, out, SIZE)
        assert {file.name for file in tmp_path.iterdir()} == {
            'weights.pth',
            'model.onnx',
            'model.onnx.data',
        }
    import onnxruntime

    images = 255 * torch.rand(1, 3, *SIZE)
    (logits,) = onnxruntime.InferenceSession(out).run(None, {'images': images.numpy()})
    assert torch.allclose(torch.from_numpy(logits), model(images), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ('suffix', 'dtype', 'words'),
    [
        ('.pt2', 'int8', 'int8 is written as .onnx'),
        ('.onnx', 'bfloat16', 'bfloat16 is written as .pt2'),
        ('.xml', 'int8', 'int8 is not written in OpenVINO.s format; give float16'),
    ],
)
def test_dtypes_that_a_format_lacks_raise(tmp_path, suffix, dtype, words):
    with rejects(words):
        FILE_FORMATS[suffix].write(None, tmp_path / f'model{suffix}', dtype, ('logits',), {})


def reject(*_, **__) -> None:
    raise RuntimeError('no such operator\nand more')


def large_difference(model: Deployed, *_) -> float:
    return 0.5


@pytest.mark.parametrize(
    ('function', 'replacement', 'words'),
    [
        (
            'torch.export.export',
            reject,
            'torch.export cannot trace this model .RuntimeError: no such operator.; leave out',
        ),
        (
            'vit_plugin.deploy.export.largest_difference',
            reject,
            'does not run .RuntimeError: no such operator.; nothing',
        ),
        (
            'vit_plugin.deploy.export.largest_difference',
            large_difference,
            'is off by 5.0e-01 of the largest value',
        ),
    ],
)
def test_after_an_error_the_old_file_stays(
    deployed, tmp_path, monkeypatch, function, replacement, words
):
    model, out = deployed(), tmp_path / 'model.pt2'
    out.write_text('old')
    monkeypatch.setattr(function, replacement)
    with rejects(words) as error:
        export(model, out, SIZE)
    assert '\n' not in str(error.value)
    assert out.read_text() == 'old'
    assert {file.name for file in tmp_path.iterdir()} == {'weights.pth', 'model.pt2'}
