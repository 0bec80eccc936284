import pytest
import torch
from mmengine.config import Config
from mmengine.registry import MODELS, init_default_scope

from vit_plugin.engine.export import WRITERS, largest_difference, load_deployed, trace, write_onnx, write_pt2
from vit_plugin.errors import ConfigError

pytestmark = pytest.mark.filterwarnings('ignore')  # the exporters' own
SIZE = (32, 32)


@pytest.fixture(params=['tiny', 'tiny_hybrid'])
def trained(request, tmp_path) -> tuple[Config, str]:
    """A classifier's config and its checkpoint, no weight at zero."""
    init_default_scope('mmpretrain')
    cfg = Config(dict(
        model=dict(type='ImageClassifier',
                   backbone=dict(type='vit_plugin.VisionTransformer', **request.getfixturevalue(request.param)),
                   head=dict(type='vit_plugin.ViTClsHead', num_classes=5, in_channels=32)),
        data_preprocessor=dict(mean=[120., 110., 100.], std=[60., 60., 50.], to_rgb=True)))
    model = MODELS.build(cfg.model)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2) if parameter.ndim > 1 else torch.nn.init.uniform_(parameter, 0.5, 1.5)
    torch.save(model.state_dict(), tmp_path / 'weights.pth')
    return cfg, str(tmp_path / 'weights.pth')


def test_it_is_the_classifier_with_its_preprocessing(trained):
    cfg, path = trained
    model = load_deployed(cfg, path)
    images = torch.randint(0, 256, (2, 3, *SIZE)).float()
    whole = MODELS.build(dict(cfg.model, data_preprocessor=dict(cfg.data_preprocessor, type='ClsDataPreprocessor')))
    whole.load_state_dict(torch.load(path))
    inputs = whole.eval().data_preprocessor(dict(inputs=images.flip(1)))['inputs']  # as they are read: BGR
    with torch.no_grad():
        assert torch.equal(model(images), whole(inputs))


def test_a_preprocessor_within_the_model_is_kept(trained):
    cfg, path = trained
    apart = load_deployed(cfg, path)
    cfg.model.data_preprocessor = cfg.pop('data_preprocessor')
    images = torch.randint(0, 256, (2, 3, *SIZE)).float()
    with torch.no_grad():
        assert torch.equal(load_deployed(cfg, path)(images), apart(images))


def test_only_the_classifier_of_the_checkpoint(trained):
    cfg, path = trained
    cfg.model.head.num_classes = 7
    with pytest.raises(ConfigError, match='is not of this model: head.layers.head'):
        load_deployed(cfg, path)


def test_pt2(trained, tmp_path):
    cfg, path = trained
    model = load_deployed(cfg, path)
    run = write_pt2(trace(model, 3, SIZE), tmp_path / 'model.pt2', 'float32')
    assert largest_difference(model, run, 3, SIZE) < 1e-5
    half = write_pt2(trace(load_deployed(cfg, path, 'bfloat16'), 3, SIZE), tmp_path / 'half.pt2', 'bfloat16')
    assert 1e-5 < largest_difference(model, half, 3, SIZE) < 0.1
    assert (tmp_path / 'half.pt2').stat().st_size < (tmp_path / 'model.pt2').stat().st_size


def test_onnx(trained, tmp_path):
    pytest.importorskip('onnxruntime')
    pytest.importorskip('onnxscript')
    cfg, path = trained
    model = load_deployed(cfg, path)
    program = trace(model, 3, SIZE)
    run = write_onnx(program, tmp_path / 'model.onnx', 'float32')
    assert largest_difference(model, run, 3, SIZE) < 1e-5
    run = write_onnx(program, tmp_path / 'int8.onnx', 'int8')
    assert 1e-5 < largest_difference(model, run, 3, SIZE) < 0.2


def test_one_file_for_all_sizes(trained, tmp_path):
    pytest.importorskip('onnxruntime')
    pytest.importorskip('onnxscript')
    cfg, path = trained
    model = load_deployed(cfg, path)
    program = trace(model, 3, None)
    run = write_onnx(program, tmp_path / 'model.onnx', 'float32')
    assert largest_difference(model, run, 3, None) < 1e-5
    assert largest_difference(model, run, 3, SIZE) < 1e-5  # the native one, whose positions are not resampled
    assert largest_difference(model, write_pt2(program, tmp_path / 'model.pt2', 'float32'), 3, None) < 1e-5


@pytest.mark.parametrize(('positions', 'possible'), [
    ('learned_2d', True), ('sincos2d', True), pytest.param('relative', False, marks=pytest.mark.nightly)])
@pytest.mark.parametrize('trained', ['tiny'], indirect=True)
def test_other_positions_for_all_sizes(trained, positions, possible):
    cfg, path = trained
    cfg.model.backbone.pos_embed = positions
    cfg.model.backbone.init_cfg = None
    torch.save(MODELS.build(cfg.model).state_dict(), path)
    model = load_deployed(cfg, path)
    if possible:
        assert largest_difference(model, trace(model, 3, None).module(), 3, None) < 1e-5
    else:
        with pytest.raises(ConfigError, match='--dynamic-size: the graph of this model depends on the size'):
            trace(model, 3, None)


@pytest.mark.parametrize(('suffix', 'dtype', 'words'), [
    ('.pt2', 'int8', 'int8 is written as .onnx'), ('.onnx', 'bfloat16', 'bfloat16 is written as .pt2')])
def test_what_a_format_does_not_have(tmp_path, suffix, dtype, words):
    with pytest.raises(ConfigError, match=words):
        WRITERS[suffix](None, tmp_path / f'model{suffix}', dtype)
