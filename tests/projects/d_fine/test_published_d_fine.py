"""Folders of D-FINE and DEIMv2 compute what transformers does, each field is read or named."""

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
GIVEN = dict(
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
    GIVEN,
    backbone_config=dict(HGNET, out_indices=[4]),
    encoder_type='lite',
    encoder_in_channels=[32],
    decoder_in_channels=[32, 32],
    num_feature_levels=2,
    decoder_n_points=[4, 2],
    use_gateway=False,
)
OF_RT_DETR = (
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
    given = {name: GIVEN[name] for name in OF_RT_DETR.split()}
    return (
        dict(
            given,
            backbone_config=backbone,
            encoder_in_channels=widths[1:],
            decoder_n_points=4,
        )
        | kwargs
    )


BASIC = with_resnet([2, 2, 2, 2], 64)
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    'd_fine': ('DFine', GIVEN),
    'd_fine, other widths': ('DFine', dict(GIVEN, d_model=16)),
    'deimv2 on DINOv3': (
        'Deimv2',
        dict(
            GIVEN,
            backbone_config=VIT,
            encoder_in_channels=[32] * 3,
            encoder_has_trailing_conv=False,
            spatial_tuning_adapter_inplanes=4,
        ),
    ),
    'deimv2 on DINOv3, the last norm alone': (
        'Deimv2',
        dict(
            GIVEN,
            backbone_config=dict(VIT, apply_layernorm=False),
            encoder_in_channels=[32] * 3,
            spatial_tuning_adapter_inplanes=4,
        ),
    ),
    'deimv2 on a CNN': ('Deimv2', GIVEN),
    'deimv2, lite': ('Deimv2', LITE),
    'deimv2, one head': ('Deimv2', dict(LITE, share_bbox_head=True)),
    'rt_detr R18': ('RTDetr', BASIC),
    'rt_detr R34': ('RTDetr', with_resnet([3, 4, 6, 3], 64, hidden_expansion=1.0)),
    'rt_detr R50': ('RTDetr', with_resnet([3, 4, 6, 3], 256)),
    'rt_detr R101': ('RTDetr', with_resnet([3, 4, 23, 3], 256)),
    'rt_detr_v2 R18': ('RTDetrV2', BASIC),
    'rt_detr_v2 R50': ('RTDetrV2', dict(with_resnet([3, 4, 6, 3], 256), decoder_offset_scale=0.25)),
    'rt_detr_v2, discrete': ('RTDetrV2', dict(BASIC, decoder_method='discrete')),
    'd_fine, discrete': ('DFine', dict(GIVEN, decoder_method='discrete')),
}


# transformers limits the columns of discrete samples by the number of rows.
SQUARES = (96, 96), (128, 128)


def randomized(kind: str, given: dict[str, Any]) -> nn.Module:
    torch.manual_seed(0)
    config = getattr(transformers, f'{kind}Config')(**given)
    model = getattr(transformers, f'{kind}ForObjectDetection')(config)
    for parameter in model.parameters():
        if parameter.requires_grad:
            nn.init.normal_(parameter, std=min(0.3, parameter[0].numel() ** -0.5))
    for name, buffer in model.named_buffers():
        if name.endswith('running_var'):
            buffer.uniform_(0.5, 1.5)
        if name.endswith('running_mean'):
            buffer.normal_(std=0.1)
    return model


def outputs_of(model: nn.Module, images: torch.Tensor) -> list[torch.Tensor]:
    found = model.bbox_head(model.extract_feat(images))
    return [found.logits[-1], found.boxes[-1], found.proposed_logits, found.proposed_boxes]


@pytest.mark.parametrize('case', CASES)
def test_folders_equal_transformers(case, tmp_path):
    from benchmarks.detectors_reference import doubled

    theirs = randomized(*CASES[case])
    theirs.save_pretrained(tmp_path)
    ours = load(tmp_path, device='cpu').model.double().eval()
    theirs = theirs.double().eval()  # not what it reads again, which loses a head that is shared
    sizes = ((64, 128), (128, 64)) if 'discrete' not in case else SQUARES
    for size in sizes:
        images = torch.rand(2, 3, *size, dtype=torch.float64)
        with torch.no_grad(), doubled():
            found = theirs(images)
            wanted = found.logits, found.pred_boxes, found.enc_topk_logits, found.enc_topk_bboxes
            for one, other in zip(outputs_of(ours, images), wanted, strict=True):
                torch.testing.assert_close(one, other, rtol=0, atol=1e-9)


# transformers reads a head that is shared as several.
@pytest.mark.parametrize('case', [case for case in CASES if not case.endswith('one head')])
def test_transformers_reads_the_weights_that_are_written(case, tmp_path):
    theirs = randomized(*CASES[case])
    theirs.save_pretrained(tmp_path)
    found = Published(open_checkpoint(tmp_path)).ours
    written, left = found.format.export(dict(found), heads=2)
    assert not left
    save_file(written, tmp_path / 'model.safetensors', {'format': 'pt'})
    read, loading = type(theirs).from_pretrained(tmp_path, output_loading_info=True)
    assert not loading['unexpected_keys']
    wanted = theirs.state_dict()
    for name, value in read.state_dict().items():
        if not name.endswith('mask_token'):
            torch.testing.assert_close(value, wanted[name], rtol=0, atol=0)


@pytest.mark.parametrize('case', [case for case in CASES if not case.endswith('one head')])
def test_a_folder_that_is_written_is_the_same_model(case, tmp_path):
    """Config, processor and weights, by ``from_pretrained`` alone."""
    theirs = randomized(*CASES[case])
    source, target = tmp_path / 'source', tmp_path / 'target'
    theirs.save_pretrained(source)
    assert 'is not installed' not in publish(str(source), str(target), 'hf')
    read = transformers.AutoModelForObjectDetection.from_pretrained(target).double().eval()
    images = torch.rand(2, 3, *SQUARES[0], dtype=torch.float64)
    with torch.no_grad():
        one, other = read(images), theirs.double().eval()(images)
    torch.testing.assert_close(one.logits, other.logits, rtol=0, atol=1e-9)
    torch.testing.assert_close(one.pred_boxes, other.pred_boxes, rtol=0, atol=1e-9)
    processor = transformers.AutoImageProcessor.from_pretrained(target)
    assert type(processor).__name__.startswith('RTDetrImageProcessor')


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
    kind, given = CASES[case]
    second = {**SECOND, **SECOND_OF_RESNET} if 'R18' in case else SECOND

    def theirs(model: nn.Module) -> Any:
        def outputs(images: torch.Tensor) -> list[torch.Tensor]:
            found = model(images)
            return [found.logits, found.pred_boxes]

        return outputs

    def ours(folder: Any) -> Any:
        model = load(folder, device='cpu').model.double().eval()
        return lambda images: outputs_of(model, images)[:2]

    walked = Walked(
        getattr(transformers, f'{kind}Config'),
        getattr(transformers, f'{kind}ForObjectDetection'),
        given,
        second,
        (64, 128),
        theirs,
        ours,
    )
    faults = walked.faults(tmp_path)
    faults.pop('share_bbox_head, rebuilt', None)  # transformers loses a head that is shared
    for how in ('rebuilt', 'edited'):  # of discrete samples, see SQUARES
        faults.pop(f'decoder_method, {how}', None)
    assert not faults
