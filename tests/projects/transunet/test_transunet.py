"""TransUNet's weights are exported to its authors' names, and read back."""

from model_states import assert_same_state
from tiny_models import TINY_SIZES

import vit_plugin.detection  # noqa: F401  isort: skip  before mmdet

import pytest
import torch
from torch import nn

from vit_plugin.models import load_weights
from vit_plugin.weights import export, recognize

pytest.importorskip('mmseg')
from mmengine.registry import MODELS, init_default_scope


def segmentor(num_classes: int = 3, head: str = 'vit_plugin.TransUNetHead', **kwargs) -> nn.Module:
    """A segmentor with random weights on a small hybrid.

    Args:
        num_classes: number of classes.
        head: type of the head.
        **kwargs: arguments of the head. Default: those of a small TransUNetHead.
    """
    import mmseg.models  # noqa: F401

    init_default_scope('mmseg')
    backbone = dict(
        type='vit_plugin.VisionTransformer',
        arch=TINY_SIZES,
        img_size=32,
        patch_embed=dict(type='ResNetEmbed', stage_depths=(1, 2), width=32, with_root=True),
        with_cls_token=False,
        out_type='pyramid',
        numerics='transunet',
    )
    options = kwargs or dict(
        in_channels=(32, 128, 32), strides=(2, 4, 8), decoder_channels=(8,) * 3
    )
    decode_head = dict(type=head, num_classes=num_classes, **options)
    cfg = dict(type='EncoderDecoder', backbone=backbone, decode_head=decode_head, train_cfg={})
    model = MODELS.build(dict(cfg, test_cfg=dict(mode='whole')))
    for value in model.state_dict().values():
        if value.is_floating_point():
            nn.init.normal_(value)
    return model


def state_of(model: nn.Module) -> dict[str, torch.Tensor]:
    """The weights of a segmentor by our names, without the prefix of the backbone."""
    return {key.removeprefix('backbone.'): value for key, value in model.state_dict().items()}


# Some names in the authors' R50-ViT-B_16, of each kind of layer.
NAMES = {
    'transformer.embeddings.position_embeddings',
    'transformer.embeddings.hybrid_model.root.conv.weight',
    'transformer.embeddings.hybrid_model.root.gn.bias',
    'transformer.embeddings.hybrid_model.body.block1.unit1.downsample.weight',
    'transformer.embeddings.hybrid_model.body.block2.unit1.gn_proj.weight',
    'transformer.embeddings.hybrid_model.body.block2.unit2.conv3.weight',
    'transformer.embeddings.hybrid_model.body.block2.unit2.gn2.bias',
    'transformer.embeddings.patch_embeddings.bias',
    'transformer.encoder.layer.1.attention_norm.weight',
    'transformer.encoder.layer.1.ffn_norm.bias',
    'transformer.encoder.layer.0.ffn.fc1.weight',
    'transformer.encoder.layer.0.ffn.fc2.bias',
    'transformer.encoder.layer.0.attn.query.weight',
    'transformer.encoder.layer.0.attn.key.bias',
    'transformer.encoder.layer.0.attn.value.weight',
    'transformer.encoder.layer.0.attn.out.bias',
    'transformer.encoder.encoder_norm.weight',
    'decoder.conv_more.0.weight',
    'decoder.conv_more.1.running_mean',
    'decoder.blocks.2.conv1.0.weight',
    'decoder.blocks.1.conv2.1.num_batches_tracked',
    'segmentation_head.0.weight',
    'segmentation_head.0.bias',
}


def test_exported_weights_are_read_back():
    model, other = segmentor(), segmentor()
    exported, unexported, weight_format = export(state_of(model), 'transunet', 2)
    assert (weight_format.name, unexported) == ('transunet', [])
    assert exported.keys() >= NAMES
    report = load_weights(other, exported)
    assert report.format == 'transunet'
    assert not report.ignored
    assert not report.initialized
    assert not report.notes
    assert not report.numerics
    assert_same_state(model, other)


def test_the_authors_names_and_ours_are_recognized():
    model = segmentor()
    exported, _, _ = export(state_of(model), 'transunet', 2)
    converted = recognize({f'module.{key}': value for key, value in exported.items()})
    assert converted.format.name == 'transunet'
    assert converted.keys() == state_of(model).keys() - {'position._extra_state'}
    own = recognize(model.state_dict())  # our own checkpoint of the entire segmentor
    assert own.is_own
    assert converted.keys() <= own.keys()


def test_other_number_of_classes_initializes_the_classifier():
    report = load_weights(segmentor(5), export(state_of(segmentor()), 'transunet', 2)[0])
    assert report.initialized.keys() == {'decode_head.conv_seg.weight', 'decode_head.conv_seg.bias'}


def test_weights_of_another_head_are_ignored():
    """Heads of MMSegmentation have a conv_seg, too."""
    other = segmentor(
        head='FCNHead',
        in_channels=32,
        channels=32,
        in_index=2,
        num_convs=0,
        concat_input=False,
        loss_decode=dict(type='CrossEntropyLoss', avg_non_ignore=True),
    )
    report = load_weights(segmentor(), other.state_dict())
    assert {key.partition('.')[0] for key in report.initialized} == {'decode_head'}
    assert {*report.ignored} == {'decode_head.conv_seg.weight', 'decode_head.conv_seg.bias'}
