"""TransUNetHead equals the authors' equations, and trains, predicts and exports on any backbone."""

from rejection import rejects
from tiny_models import TINY_SIZES

import vit_plugin.detection  # noqa: F401  isort: skip  before mmdet

import pytest
import torch
from mmengine.config import ConfigDict
from mmengine.registry import MODELS, init_default_scope
from mmengine.structures import PixelData
from torch import nn
from transunet_reference import transunet

from vit_plugin.deploy.deployed import deploy
from vit_plugin.deploy.export import export
from vit_plugin.models import load_weights
from vit_plugin.weights import FORMATS

RESNET = dict(type='ResNetEmbed', stage_depths=(1, 2, 1), width=32, with_root=True)
HYBRID = dict(
    type='vit_plugin.VisionTransformer',
    arch=TINY_SIZES,
    img_size=32,
    patch_embed=RESNET,
    with_cls_token=False,
    out_type='pyramid',
    numerics='transunet',
)
PURE = dict(HYBRID, patch_embed=dict(type='PatchEmbed', patch_size=16))
SMALL = dict(hidden_channels=16, decoder_channels=(16, 12, 8, 4))
MAPS = dict(in_channels=(32, 128, 256, 32), strides=(2, 4, 8, 16))


def segmentor(backbone: dict = HYBRID, **head) -> nn.Module:
    """A segmentor of three classes; ``head`` changes arguments of its TransUNetHead."""
    pytest.importorskip('mmseg')
    import mmseg.models  # noqa: F401

    init_default_scope('mmseg')
    decode_head = dict(type='vit_plugin.TransUNetHead', num_classes=3, **SMALL) | MAPS | head
    return MODELS.build(
        ConfigDict(
            type='EncoderDecoder',
            backbone=backbone,
            decode_head=decode_head,
            train_cfg={},
            test_cfg=dict(mode='whole'),
        )
    )


def randomize_all(model: nn.Module) -> nn.Module:
    """Set random weights and statistics that keep the scale of the maps."""
    for name, value in model.state_dict().items():
        if name.endswith('running_var'):
            nn.init.uniform_(value, 0.5, 1.5)
        elif value.ndim > 1:
            nn.init.normal_(value, std=value[0].numel() ** -0.5)
        elif value.is_floating_point():
            nn.init.normal_(value, 1 if name.endswith('weight') else 0, 0.3)
    return model


def authors_names(model: nn.Module) -> dict[str, torch.Tensor]:
    """The weights of a segmentor by the authors' names."""
    state = {key.removeprefix('backbone.'): value for key, value in model.state_dict().items()}
    exported, unexported = FORMATS['transunet'].export(state, 2)
    assert {*unexported} <= {'position._extra_state'}
    return exported


@pytest.mark.parametrize(
    'size',
    [
        (64, 96),
        pytest.param((224, 224), marks=pytest.mark.nightly),
        pytest.param((320, 320), marks=pytest.mark.nightly),
    ],
)
@pytest.mark.parametrize(
    ('backbone', 'maps'),
    [
        (HYBRID, MAPS),
        (PURE, dict(in_channels=32, strides=16)),
        # The authors' n_skip=1.
        (HYBRID, dict(in_channels=(256, 32), strides=(8, 16), in_index=(2, 3))),
    ],
)
def test_logits_equal_the_authors(backbone, maps, size):
    torch.manual_seed(0)
    model = randomize_all(segmentor(dict(backbone, img_size=size), **maps)).double().eval()
    images = torch.randn(1, 3, *size, dtype=torch.float64)
    with torch.no_grad():
        logits = model(images, mode='tensor')
        expected = transunet(authors_names(model), images, heads=2)
    assert logits.shape == (1, 3, *size)
    assert expected.std() > 0.05  # not a constant
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-10)


def test_each_option_of_the_numerics_changes_the_output():
    torch.manual_seed(0)
    backbone = dict(HYBRID, img_size=64)
    model = randomize_all(segmentor(backbone)).double().eval()
    images = torch.randn(1, 3, 64, 64, dtype=torch.float64)
    weights = authors_names(model)
    with torch.no_grad():
        expected = transunet(weights, images, heads=2)
    for change in (
        dict(stem_conv_cfg=dict(padding='same')),
        dict(stem_conv_cfg=dict(eps_inside_root=False)),
        dict(stem_pool_cfg=dict(padding='same')),
        dict(stem_shortcut_norm_cfg=dict(eps=1e-6)),
        dict(stem_shortcut_norm_cfg=dict(type='GN', num_groups=32, eps=1e-5)),
    ):
        changed = (
            segmentor(dict(backbone, numerics=dict(base='transunet', **change))).double().eval()
        )
        ((difference, cure),) = load_weights(changed, weights).numerics.items()
        assert next(iter(change)) in difference
        assert cure == "set numerics='transunet'"
        with torch.no_grad():
            assert (changed(images, mode='tensor') - expected).abs().max() > 1e-8


@pytest.mark.parametrize(
    ('stem', 'head'),
    [
        (dict(RESNET, with_root=False), dict(in_channels=(128, 256, 32), strides=(4, 8, 16))),
        (
            dict(RESNET, stage_depths=(), patch_size=4),
            dict(in_channels=(32, 32, 32), strides=(2, 4, 16)),
        ),
        (
            dict(type='PooledResNetEmbed', channels=(32, 64), patch_size=4, with_root=True),
            dict(in_channels=(32, 64, 32), strides=(1, 2, 8), decoder_channels=(8, 8, 8)),
        ),
        (
            dict(type='TimmEmbed', model_name='test_resnet'),
            dict(
                in_channels=(32, 32, 48, 192, 32),
                strides=(2, 4, 8, 16, 32),
                decoder_channels=(8, 8, 8, 8, 8),
            ),
        ),
    ],
    ids=['without root', 'root alone', 'pooled', 'timm'],
)
def test_other_hybrids_provide_their_own_maps(stem, head):
    model = segmentor(dict(HYBRID, patch_embed=stem, numerics='authors'), **head).eval()
    assert (model.backbone.channels, model.backbone.strides) == (
        head['in_channels'],
        head['strides'],
    )
    with torch.no_grad():
        for size in ((64, 96), (50, 71)):  # sides that do not fill the last tokens
            logits = model(torch.randn(1, 3, *size), mode='tensor')
            assert logits.shape[2] >= size[0]
            assert logits.shape[3] >= size[1]


def samples(size: tuple[int, int], number: int) -> list:
    """The annotations of images: random class maps whose first row is ignored."""
    from mmseg.structures import SegDataSample

    maps = torch.randint(3, (number, 1, *size))
    maps[:, :, 0] = 255
    meta = dict(img_shape=size, ori_shape=size, pad_shape=size, padding_size=[0] * 4)
    return [
        SegDataSample(metainfo=meta, gt_sem_seg=PixelData(data=class_map))
        for class_map in maps.unbind()
    ]


def test_losses_reach_every_parameter():
    model = segmentor().train()
    randomize_all(model)
    losses = model(torch.randn(2, 3, 48, 64), samples((48, 64), 2), mode='loss')
    assert {'decode.loss_ce', 'decode.loss_dice', 'decode.acc_seg'} == losses.keys()
    (losses['decode.loss_ce'] + losses['decode.loss_dice']).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.any(), name


def test_predictions_have_the_size_of_the_image():
    model = segmentor().eval()
    with torch.no_grad():
        predictions = model(torch.randn(1, 3, 50, 71), samples((50, 71), 1), mode='predict')
    assert predictions[0].pred_sem_seg.data.shape == (1, 50, 71)
    assert predictions[0].seg_logits.data.shape == (3, 50, 71)


@pytest.mark.parametrize(
    ('head', 'words'),
    [
        (dict(strides=(4, 8, 16)), 'strides has 3 values, but in_channels has 4'),
        (dict(strides=(2, 4, 7, 16)), 'no block takes a map of stride 7.*strides 8, 4, 2, 1 from'),
        (dict(strides=(2, 4, 4, 16)), 'no block takes a map of stride 4, or two maps have it'),
        (dict(decoder_channels=(8, 8)), 'no block takes a map of stride 2'),
    ],
)
def test_wrong_strides_raise(head, words):
    with rejects(words):
        segmentor(**head)


def test_maps_of_other_strides_raise():
    model = segmentor(strides=(8, 4, 2, 16))
    with rejects('do not have the strides'):
        model(torch.randn(1, 3, 64, 64), mode='tensor')


@pytest.mark.nightly
def test_decoder_graph_works_for_all_sizes():
    head = randomize_all(segmentor()).eval().decode_head

    def maps(rows: int, columns: int) -> list[torch.Tensor]:
        return [
            torch.randn(1, channels, 16 // stride * rows, 16 // stride * columns)
            for channels, stride in zip(MAPS['in_channels'], MAPS['strides'], strict=True)
        ]

    class Predictor(nn.Module):
        def forward(self, maps):
            # The first map has a stride of 2.
            size = 2 * maps[0].shape[-2], 2 * maps[0].shape[-1]
            return head.predict(maps, [dict(img_shape=size, pad_shape=size)], dict())

    rows, columns = torch.export.Dim('rows', min=2), torch.export.Dim('columns', min=2)
    sides = [{2: 16 // stride * rows, 3: 16 // stride * columns} for stride in MAPS['strides']]
    with torch.no_grad():
        program = torch.export.export(Predictor(), (maps(3, 4),), dynamic_shapes=(sides,))
        for size in ((2, 5), (6, 3)):
            inputs = maps(*size)
            outputs = program.module()(inputs)
            assert outputs.shape == (1, 3, 16 * size[0], 16 * size[1])
            torch.testing.assert_close(outputs, Predictor()(inputs))


@pytest.mark.nightly
@pytest.mark.parametrize('numerics', ['authors', 'transunet'])
def test_exported_file_works_for_all_sizes(tmp_path, numerics):
    onnxruntime = pytest.importorskip('onnxruntime')
    pytest.importorskip('onnxscript')
    model = deploy(randomize_all(segmentor(dict(HYBRID, numerics=numerics))))
    assert export(model, tmp_path / 'model.onnx', None) < 1e-4
    session = onnxruntime.InferenceSession(str(tmp_path / 'model.onnx'))
    for size in ((128, 64), (80, 176)):  # the graph is traced at 48 x 64
        images = 255 * torch.rand(2, 3, *size)
        (logits,) = session.run(None, dict(images=images.numpy()))
        expected = model(images)
        assert expected.shape[-2:] == size
        torch.testing.assert_close(torch.from_numpy(logits), expected, rtol=1e-3, atol=1e-4)
