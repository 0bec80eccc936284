from itertools import product
from types import SimpleNamespace

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import MODELS, init_default_scope
from rejection import rejects
from tiny_models import randomize

from vit_plugin.deploy.deployed import deploy
from vit_plugin.deploy.deployed_module import Deployed
from vit_plugin.deploy.export import (
    FILE_FORMATS,
    export,
    finite,
    largest_difference,
    trace,
    write_onnx,
)
from vit_plugin.inference.load import from_config
from vit_plugin.inference.saved_model import SavedModel
from vit_plugin.weights import open_checkpoint

pytestmark = pytest.mark.filterwarnings('ignore')  # the exporters' own
SIZE = (40, 24)  # another grid than the native 4 x 4
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
# Changes of the backbone, and of the neck and head beside it.
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
    # One block.
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
# Their graphs depend on the size.
NOT_DYNAMIC = {'window', 'window, rotary', 'window, relative', "'learned', bicubic_dinov2"}
# The others are parts of these, or these have been seen to break; the whole table is nightly.
QUICK = {
    ('all of these', 'fixed', '.onnx'),
    ("pos_embed='learned'", '--dynamic', '.pt2'),
    ("'learned', bicubic_dinov2", '--dynamic', '.pt2'),
}


@pytest.fixture
def train(tmp_path, tiny, tiny_hybrid):
    """Makes a classifier's config and its checkpoint, no weight at zero."""

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
def test_it_is_the_classifier_with_its_preprocessing(train, arch):
    cfg, path = train(arch)
    model = load_deployed(cfg, path)
    images = torch.randint(0, 256, (2, 3, *SIZE)).float()
    whole = MODELS.build(
        dict(cfg.model, data_preprocessor=dict(cfg.data_preprocessor, type='ClsDataPreprocessor'))
    )
    whole.load_state_dict(torch.load(path))
    # Images are read in BGR.
    inputs = whole.eval().data_preprocessor(dict(inputs=images.flip(1)))['inputs']
    with torch.no_grad():
        assert torch.equal(model(images), whole(inputs))


def test_a_preprocessor_within_the_model_is_kept(train):
    cfg, path = train()
    apart = load_deployed(cfg, path)
    cfg.model.data_preprocessor = cfg.pop('data_preprocessor')
    images = torch.randint(0, 256, (2, 3, *SIZE)).float()
    with torch.no_grad():
        assert torch.equal(load_deployed(cfg, path)(images), apart(images))


@pytest.mark.usefixtures('with_onnx')
@pytest.mark.parametrize(
    ('variation', 'size', 'suffix'),
    [
        pytest.param(*row, marks=() if row in QUICK else pytest.mark.nightly)
        for row in product(VARIATIONS, SIZES, FILE_FORMATS)
    ],
)
def test_each_variation_is_computed_or_refused(deployed, tmp_path, variation, size, suffix):
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
@pytest.mark.parametrize('size', [*SIZES.values()], ids=SIZES)
def test_nothing_is_made_of_parameters_in_every_run(deployed, size):
    """Neither kernels standardized nor, at a fixed size, positions resampled or looked up."""
    model = deployed(
        arch='hybrid', pos_embed=dict(type='learned', relative=True, interpolate_mode='bicubic')
    )
    images = torch.rand(2, 3, *(size or SIZE))
    wanted = model(images)
    program = trace(model, size)
    assert torch.equal(program.module()(images), wanted)
    operators = [str(node.target) for node in program.graph.nodes if node.op == 'call_function']
    assert not [
        name
        for name in operators
        if 'norm' in name and 'layer_norm' not in name and 'group_norm' not in name
    ]
    resampled = [name for name in operators if 'upsample' in name or 'index' in name]
    assert bool(resampled) == (size is None)


@pytest.mark.nightly
def test_bfloat16(train, tmp_path):
    cfg, path = train('hybrid')
    model, half = load_deployed(cfg, path), load_deployed(cfg, path, 'bfloat16')
    assert export(model, tmp_path / 'model.pt2', SIZE) < 1e-5
    assert 1e-5 < export(half, tmp_path / 'half.pt2', SIZE, 'bfloat16', model) < 0.1
    assert (tmp_path / 'half.pt2').stat().st_size < (tmp_path / 'model.pt2').stat().st_size


@pytest.mark.nightly
@pytest.mark.usefixtures('with_onnx')
def test_int8(deployed, tmp_path):
    assert 1e-5 < export(deployed(), tmp_path / 'int8.onnx', SIZE, 'int8') < 0.2


@pytest.mark.nightly
@pytest.mark.usefixtures('with_onnx')
def test_float16(deployed, tmp_path):
    """Values beyond its range stay in float32, which takes casts.

    A CPU would not show them: it computes in float32.
    """
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
def test_one_file_for_all_sizes_does_the_native_one(deployed, tmp_path):
    """Whose positions are not resampled."""
    model = deployed()
    run = write_onnx(trace(model, None), tmp_path / 'model.onnx', 'float32')
    assert largest_difference(model, run, (32, 32)) < 1e-5


@pytest.mark.usefixtures('with_onnx')
@pytest.mark.nightly
def test_weights_beyond_two_gigabytes_lie_beside(deployed, tmp_path, monkeypatch):
    monkeypatch.setattr('torch.onnx._internal.exporter._onnx_program._LARGE_MODEL_THRESHOLD', 0)
    model, out = deployed(), tmp_path / 'model.onnx'
    for _ in range(2):
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
def test_what_a_format_does_not_have(tmp_path, suffix, dtype, words):
    with rejects(words):
        FILE_FORMATS[suffix].write(None, tmp_path / f'model{suffix}', dtype, ('logits',), {})


@pytest.mark.parametrize('value', [float('nan'), float('inf')])
def test_outputs_that_are_not_finite_are_an_error(value):
    boxes, scores = torch.rand(1, 4), torch.full((1,), value)
    assert finite(lambda images: images)(boxes) is boxes
    with rejects('outputs that are infinite or NaN, .* export in float32'):
        finite(lambda images: (images, scores))(boxes)


def reject(*_, **__) -> None:
    raise RuntimeError('no such operator\nand more')


def is_off(model: Deployed, *_) -> float:
    return 0.5


@pytest.mark.parametrize(
    ('broken', 'by', 'words'),
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
            is_off,
            'is off by 5.0e-01 of the largest value',
        ),
    ],
)
def test_after_any_error_the_old_file_stays(deployed, tmp_path, monkeypatch, broken, by, words):
    model, out = deployed(), tmp_path / 'model.pt2'
    out.write_text('old')
    monkeypatch.setattr(broken, by)
    with rejects(words) as error:
        export(model, out, SIZE)
    assert '\n' not in str(error.value)
    assert out.read_text() == 'old'
    assert {file.name for file in tmp_path.iterdir()} == {'weights.pth', 'model.pt2'}


@pytest.mark.parametrize(('factor', 'counts'), [(1.0, True), (1e9, False)])
def test_a_difference_that_rounding_makes_too_says_nothing(factor, counts):
    """A model of steps so fine that rounding of its pixels changes them is not compared."""

    class Steps:
        unit = least = stride = 1
        inputs = ('images',)
        model = SimpleNamespace(backbone=SimpleNamespace(in_channels=3))

        def __call__(self, images):
            return (factor * images).sin()

        def difference(self, found, wanted):
            return float((found - wanted).abs().max())

    other = largest_difference(Steps(), lambda images: (factor * images + 1).sin(), (4, 4))
    assert (other > 0.1) is counts
