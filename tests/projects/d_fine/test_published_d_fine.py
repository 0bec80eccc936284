"""Folders of D-FINE, DEIMv2 and RT-DETR compute the same as in transformers.

Each field of their configs is read, or named in an error.
"""

import vit_plugin.detection  # noqa: F401  isort: skip  before mmdet

from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from vit_plugin.deploy.hub.publishing import publish
from vit_plugin.inference.load import load
from vit_plugin.weights.opening import open_checkpoint
from vit_plugin.weights.published import Published

transformers = pytest.importorskip('transformers', '5', 'needs transformers 5')
from field_walk import Walked  # noqa: E402

pytestmark = [pytest.mark.nightly, pytest.mark.filterwarnings('ignore')]
HGNET = dict(
    model_type='hgnet_v2',
    stem_channels=[3, 8, 8],
    stage_in_channels=[8, 16, 16, 32],
    stage_mid_channels=[8] * 4,
    stage_out_channels=[16, 16, 32, 32],
    stage_num_blocks=[1, 1, 2, 1],
    stage_numb_of_layers=[2] * 4,
    out_indices=[2, 3, 4],
    use_learnable_affine_block=True,
    depths=[1, 1, 2, 1],
    hidden_sizes=[16, 16, 32, 32],
)
VIT = dict(
    model_type='dinov3_vit',
    hidden_size=16,
    intermediate_size=32,
    num_attention_heads=2,
    num_hidden_layers=4,
    num_register_tokens=2,
    out_indices=[2, 3, 4],
    patch_size=16,
    image_size=64,
)
SMALL_FIELDS = dict(
    backbone_config=HGNET,
    encoder_in_channels=[16, 32, 32],
    encoder_hidden_dim=32,
    encoder_ffn_dim=16,
    encoder_attention_heads=2,
    d_model=32,
    decoder_in_channels=[32] * 3,
    decoder_ffn_dim=16,
    decoder_layers=3,
    decoder_attention_heads=2,
    decoder_n_points=[2, 4, 2],  # powers of two: transformers keeps their reciprocals in float32
    num_queries=5,
    num_labels=3,
    depth_mult=0.34,
    hidden_expansion=0.5,
    max_num_bins=8,
    lqe_hidden_dim=8,
)
LITE = dict(
    SMALL_FIELDS,
    backbone_config=dict(HGNET, out_indices=[4]),
    encoder_type='lite',
    encoder_in_channels=[32],
    decoder_in_channels=[32, 32],
    num_feature_levels=2,
    decoder_n_points=[4, 2],
    use_gateway=False,
)
# The fields above that RT-DETR has, too.
RT_DETR_FIELDS = (
    'encoder_hidden_dim encoder_ffn_dim encoder_attention_heads d_model decoder_in_channels '
    'decoder_ffn_dim decoder_layers decoder_attention_heads num_queries num_labels hidden_expansion'
)


def with_resnet(depths: list[int], width: int, **kwargs: Any) -> dict[str, Any]:
    """The config of an RT-DETR on a ResNet of these blocks, whose first stage has this width."""
    widths = [width * 2**i for i in range(4)]
    backbone = dict(
        model_type='rt_detr_resnet',
        depths=depths,
        hidden_sizes=widths,
        layer_type='bottleneck' if width == 256 else 'basic',
        out_indices=[2, 3, 4],
    )
    fields = {name: SMALL_FIELDS[name] for name in RT_DETR_FIELDS.split()}
    fields |= dict(backbone_config=backbone, encoder_in_channels=widths[1:], decoder_n_points=4)
    return fields | kwargs


BASIC = with_resnet([2, 2, 2, 2], 64)
# A case -> the beginning of the names of transformers' classes, and values of the config.
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    'd_fine': ('DFine', SMALL_FIELDS),
    'd_fine, other widths': ('DFine', dict(SMALL_FIELDS, d_model=16)),
    'deimv2 on DINOv3': (
        'Deimv2',
        dict(
            SMALL_FIELDS,
            backbone_config=VIT,
            encoder_in_channels=[32] * 3,
            encoder_has_trailing_conv=False,
            spatial_tuning_adapter_inplanes=4,
        ),
    ),
    'deimv2 on DINOv3, the last norm alone': (
        'Deimv2',
        dict(
            SMALL_FIELDS,
            backbone_config=dict(VIT, apply_layernorm=False),
            encoder_in_channels=[32] * 3,
            spatial_tuning_adapter_inplanes=4,
        ),
    ),
    'deimv2 on a CNN': ('Deimv2', SMALL_FIELDS),
    'deimv2, lite': ('Deimv2', LITE),
    'deimv2, one head': ('Deimv2', dict(LITE, share_bbox_head=True)),
    'rt_detr R18': ('RTDetr', BASIC),
    'rt_detr R34': ('RTDetr', with_resnet([3, 4, 6, 3], 64, hidden_expansion=1.0)),
    'rt_detr R50': ('RTDetr', with_resnet([3, 4, 6, 3], 256)),
    'rt_detr R101': ('RTDetr', with_resnet([3, 4, 23, 3], 256)),
    'rt_detr_v2 R18': ('RTDetrV2', BASIC),
    'rt_detr_v2 R50': ('RTDetrV2', dict(with_resnet([3, 4, 6, 3], 256), decoder_offset_scale=0.25)),
    'rt_detr_v2, discrete': ('RTDetrV2', dict(BASIC, decoder_method='discrete')),
    'd_fine, discrete': ('DFine', dict(SMALL_FIELDS, decoder_method='discrete')),
}


# transformers limits the columns of discrete samples by the number of rows.
SQUARES = (96, 96), (128, 128)


def randomized(name: str, fields: dict[str, Any]) -> nn.Module:
    """A model of transformers with random weights, in which no map vanishes."""
    torch.manual_seed(0)
    config = getattr(transformers, f'{name}Config')(**fields)
    model = getattr(transformers, f'{name}ForObjectDetection')(config)
    for parameter in model.parameters():
        if parameter.requires_grad:
            nn.init.normal_(parameter, std=min(0.3, parameter[0].numel() ** -0.5))
    for key, buffer in model.named_buffers():
        if key.endswith('running_var'):
            buffer.uniform_(0.5, 1.5)
        if key.endswith('running_mean'):
            buffer.normal_(std=0.1)
    return model


def outputs_of(model: nn.Module, images: torch.Tensor) -> list[torch.Tensor]:
    """Logits and boxes of the last layer, and of the proposals."""
    outputs = model.bbox_head(model.extract_feat(images))
    return [outputs.logits[-1], outputs.boxes[-1], outputs.proposed_logits, outputs.proposed_boxes]


@pytest.mark.parametrize('case', CASES)
def test_folders_equal_transformers(case, tmp_path):
    from benchmarks.detectors_reference import doubled

    theirs = randomized(*CASES[case])
    theirs.save_pretrained(tmp_path)
    ours = load(tmp_path, device='cpu').model.double().eval()
    # The saved model itself: transformers does not read a shared head correctly.
    theirs = theirs.double().eval()
    sizes = ((64, 128), (128, 64)) if 'discrete' not in case else SQUARES
    for size in sizes:
        images = torch.rand(2, 3, *size, dtype=torch.float64)
        with torch.no_grad(), doubled():
            output = theirs(images)
            expected = (
                output.logits,
                output.pred_boxes,
                output.enc_topk_logits,
                output.enc_topk_bboxes,
            )
            for actual, value in zip(outputs_of(ours, images), expected, strict=True):
                torch.testing.assert_close(actual, value, rtol=0, atol=1e-9)


# transformers reads a shared head as several heads.
@pytest.mark.parametrize('case', [case for case in CASES if not case.endswith('one head')])
def test_transformers_reads_exported_weights(case, tmp_path):
    theirs = randomized(*CASES[case])
    theirs.save_pretrained(tmp_path)
    ours = Published(open_checkpoint(tmp_path)).ours
    exported, unexported = ours.format.export(dict(ours), heads=2)
    assert not unexported
    save_file(exported, tmp_path / 'model.safetensors', {'format': 'pt'})
    read, loading = type(theirs).from_pretrained(tmp_path, output_loading_info=True)
    assert not loading['unexpected_keys']
    expected = theirs.state_dict()
    for name, value in read.state_dict().items():
        if not name.endswith('mask_token'):
            torch.testing.assert_close(value, expected[name], rtol=0, atol=0)


@pytest.mark.parametrize('case', [case for case in CASES if not case.endswith('one head')])
def test_published_folder_is_the_same_model(case, tmp_path):
    """``from_pretrained`` reads config, processor and weights."""
    theirs = randomized(*CASES[case])
    source, target = tmp_path / 'source', tmp_path / 'target'
    theirs.save_pretrained(source)
    assert 'is not installed' not in publish(str(source), str(target), 'hf')
    read = transformers.AutoModelForObjectDetection.from_pretrained(target).double().eval()
    # The lite encoder of transformers only takes maps of even sides: 128 pixels at stride 32.
    images = torch.rand(2, 3, *SQUARES[1], dtype=torch.float64)
    with torch.no_grad():
        output, expected = read(images), theirs.double().eval()(images)
    torch.testing.assert_close(output.logits, expected.logits, rtol=0, atol=1e-9)
    torch.testing.assert_close(output.pred_boxes, expected.pred_boxes, rtol=0, atol=1e-9)
    processor = transformers.AutoImageProcessor.from_pretrained(target)
    assert type(processor).__name__.startswith('RTDetrImageProcessor')


# A second value of each field, for `field_walk`. A number that is missing here is doubled there.
SECOND: dict[str, Any] = dict(
    activation_function='relu',
    encoder_activation_function='relu',
    decoder_activation_function='gelu',
    decoder_method='discrete',
    batch_norm_eps=0.25,
    encode_proj_layers=[1],
    encoder_in_channels=[32, 32, 32],
    feat_strides=[4, 8, 16],
    eval_size=[64, 64],
    anchor_image_size=[64, 64],
    decoder_in_channels=[16] * 3,
    decoder_n_points=3,
    eval_idx=1,
    initializer_bias_prior_prob=0.5,
    mal_alpha=0.5,
    encoder_fuse_op='cat',
    encoder_type='lite',
    max_num_bins=16,
    head_dim=8,
    **{
        'backbone_config.depths': [2, 2, 2, 2],
        'backbone_config.hidden_sizes': [8] * 4,
        'backbone_config.stem_channels': [3, 4, 8],
        'backbone_config.stem_strides': [1, 1, 1, 2, 1],
        'backbone_config.stage_in_channels': [8, 16, 16, 16],
        'backbone_config.stage_mid_channels': [4] * 4,
        'backbone_config.stage_out_channels': [16, 16, 32, 16],
        'backbone_config.stage_num_blocks': [1] * 4,
        'backbone_config.stage_downsample': [False, True, True, False],
        'backbone_config.stage_downsample_strides': [2, 2, 1, 2],
        'backbone_config.stage_light_block': [True] * 4,
        'backbone_config.stage_kernel_size': [3] * 4,
        'backbone_config.stage_numb_of_layers': [1] * 4,
        'backbone_config.out_indices': [1, 3, 4],
        'backbone_config.out_features': ['stage1', 'stage3', 'stage4'],
    },
)


SECOND_OF_RESNET: dict[str, Any] = {
    'decoder_n_levels': 2,
    'decoder_offset_scale': 0.25,
    'backbone_config.depths': [2, 2, 2, 1],
    'backbone_config.hidden_sizes': [64, 128, 256, 256],
    'backbone_config.layer_type': 'bottleneck',
    'backbone_config.embedding_size': 32,
    'backbone_config.out_indices': [1, 3, 4],
    'backbone_config.out_features': ['stage1', 'stage3', 'stage4'],
}


@pytest.mark.parametrize(
    'case',
    ['d_fine', 'deimv2 on DINOv3', 'deimv2 on a CNN', 'rt_detr R18', 'rt_detr_v2 R18'],
)
def test_fields(case, tmp_path):
    name, fields = CASES[case]
    second = {**SECOND, **SECOND_OF_RESNET} if 'R18' in case else SECOND

    def theirs(model: nn.Module) -> Any:
        def outputs(images: torch.Tensor) -> list[torch.Tensor]:
            output = model(images)
            return [output.logits, output.pred_boxes]

        return outputs

    def ours(folder: Any) -> Any:
        model = load(folder, device='cpu').model.double().eval()
        return lambda images: outputs_of(model, images)[:2]

    walk = Walked(
        getattr(transformers, f'{name}Config'),
        getattr(transformers, f'{name}ForObjectDetection'),
        fields,
        second,
        (64, 128),
        theirs,
        ours,
    )
    faults = walk.faults(tmp_path)
    faults.pop('share_bbox_head, rebuilt', None)  # transformers does not read a shared head
    for how in ('rebuilt', 'edited'):  # discrete samples differ unless images are square
        faults.pop(f'decoder_method, {how}', None)
    assert not faults
