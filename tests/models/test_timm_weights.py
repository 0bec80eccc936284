"""Weights of timm's CNNs in stems, from files with other names or with missing parts."""

import pytest
import timm
import torch
from rejection import rejects
from tiny_models import TINY_SIZES, classifier
from torch import Tensor

from vit_plugin.models import TimmEmbed, VisionTransformer, load_weights
from vit_plugin.models.timm_weights import IN_ORDER, fit_timm

BLOCKS = dict(TINY_SIZES, num_layers=1)  # an arch without a stem
CNNS = ('test_resnet', 'test_efficientnet', 'test_convnext')


def random_cnn(name: str, **options) -> torch.nn.Module:
    """A model of timm with random weights and statistics."""
    torch.manual_seed(1)
    model = timm.create_model(name, **options).eval()
    for value in model.state_dict().values():
        if value.is_floating_point():
            value.copy_(torch.rand(value.shape))
    return model


def renamed(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights in the same order under names that timm does not have."""
    return {f'_layer{i}.{key.rpartition(".")[2]}': weights[key] for i, key in enumerate(weights)}


# How the weights of a CNN may be stored in a file.
FILES = {
    'of timm': dict,
    'wrapped': lambda weights: {f'module.model.{key}': value for key, value in weights.items()},
    'of a TimmBackbone in a detector': lambda weights: {
        **{f'backbone.model.{key}': value for key, value in weights.items()},
        'neck.weight': torch.rand(3),
    },
    'in the order of timm': renamed,
    'without counters': lambda weights: {
        key: value for key, value in weights.items() if 'num_batches' not in key
    },
}


def hybrid(name: str, **stem) -> VisionTransformer:
    """A ViT on a CNN of timm. ``stem`` are further arguments of the stem."""
    return VisionTransformer(
        arch=BLOCKS, img_size=64, patch_embed=dict(type='TimmEmbed', model_name=name, **stem)
    ).eval()


@pytest.mark.parametrize('file', FILES)
@pytest.mark.parametrize('name', CNNS)
def test_a_file_of_a_cnn_is_loaded_into_the_stem(tmp_path, name, file):
    theirs = random_cnn(name, num_classes=7)
    path = tmp_path / 'cnn.pth'
    torch.save(FILES[file](theirs.state_dict()), path)
    source = dict(type='Pretrained', checkpoint=str(path))
    of_backbone, of_stem = hybrid(name), hybrid(name, init_cfg=source)
    blocks = of_backbone.blocks[0].attn.qkv.weight.clone()
    report = load_weights(of_backbone, str(path))
    of_stem.init_weights()
    expected = theirs.forward_intermediates(torch.ones(1, 3, 64, 64), intermediates_only=True)
    for model in (of_backbone, of_stem):
        maps = model.patch_embed.features(torch.ones(1, 3, 64, 64))
        assert torch.equal(maps[-1], expected[-1])
    assert torch.equal(of_backbone.blocks[0].attn.qkv.weight, blocks)
    reported = {**report.matched, **report.initialized}
    assert reported.keys() == of_backbone.state_dict().keys()
    assert report.initialized['cls_token'] == 'the checkpoint has only the CNN of the stem'
    assert 'of its classifier' in report.ignored.values()
    assert (IN_ORDER in report.notes) == (file == 'in the order of timm')


def test_load_from_converts_the_cnn_of_a_classifier(tmp_path):
    from mmengine.runner import load_checkpoint

    theirs = random_cnn('test_resnet')
    torch.save(theirs.state_dict(), tmp_path / 'cnn.pth')
    stem_cfg = dict(type='TimmEmbed', model_name='test_resnet')
    model = classifier(dict(arch=BLOCKS, patch_embed=stem_cfg), classes=0)
    load_checkpoint(model, str(tmp_path / 'cnn.pth'))
    stem = model.backbone.patch_embed.backbone.state_dict()
    assert all(torch.equal(value, theirs.state_dict()[key]) for key, value in stem.items())


def test_stem_and_blocks_come_from_two_files(tmp_path):
    cnn, plain = random_cnn('test_resnet'), VisionTransformer(arch=dict(BLOCKS, patch_size=8))
    torch.save(cnn.state_dict(), tmp_path / 'cnn.pth')
    torch.save(plain.state_dict(), tmp_path / 'plain.pth')
    model = VisionTransformer(
        arch=BLOCKS,
        patch_embed=dict(
            type='TimmEmbed',
            model_name='test_resnet',
            init_cfg=dict(type='Pretrained', checkpoint=str(tmp_path / 'cnn.pth')),
        ),
        init_cfg=dict(
            type='Pretrained', checkpoint=str(tmp_path / 'plain.pth'), skip=['patch_embed.{rest}']
        ),
    )
    model.init_weights()
    assert torch.equal(model.blocks[0].mlp.fc1.weight, plain.blocks[0].mlp.fc1.weight)
    stem = model.patch_embed.backbone.state_dict()
    assert all(torch.equal(value, cnn.state_dict()[key]) for key, value in stem.items())


def test_a_stem_is_loaded_from_another_hybrid(tmp_path):
    source = VisionTransformer(arch=dict(BLOCKS, resnet=dict(stage_depths=(1,), width=32)))
    torch.save({f'backbone.{k}': v for k, v in source.state_dict().items()}, tmp_path / 'run.pth')
    stem = dict(init_cfg=dict(type='Pretrained', checkpoint=str(tmp_path / 'run.pth')))
    model = VisionTransformer(
        arch=dict(BLOCKS, num_layers=2, resnet=dict(stage_depths=(1,), width=32, **stem))
    )
    model.init_weights()
    for key, value in model.patch_embed.state_dict().items():
        assert torch.equal(value, source.patch_embed.state_dict()[key])


def test_tensors_that_timm_does_not_have_raise():
    weights = {**random_cnn('test_resnet').state_dict(), 'layer9.weight': torch.rand(3)}
    stem = TimmEmbed(model_name='test_resnet', embed_dims=32)
    with rejects("layer9.weight, which the model 'test_resnet' of timm does not have"):
        fit_timm(stem.backbone, 'test_resnet', weights)


def test_a_file_of_another_cnn_raises_and_changes_nothing(tmp_path):
    torch.save(random_cnn('test_convnext').state_dict(), tmp_path / 'other.pth')
    model = hybrid(
        'test_resnet', init_cfg=dict(type='Pretrained', checkpoint=str(tmp_path / 'other.pth'))
    )
    before = {key: value.clone() for key, value in model.state_dict().items()}
    with rejects("does not fit the model 'test_resnet' of timm: conv1.0.weight, "):
        model.init_weights()
    with rejects('The format of the checkpoint is not known'):
        load_weights(model, str(tmp_path / 'other.pth'))
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())


def test_skip_with_a_file_of_a_cnn_raises():
    weights = random_cnn('test_resnet').state_dict()
    with rejects('has only the CNN of the stem, for which there is no skip or source_grid'):
        load_weights(hybrid('test_resnet'), weights, skip=['patch_embed.{rest}'])


def test_blocks_on_the_meta_device_are_noted():
    with torch.device('meta'):
        model = hybrid('test_resnet')
    report = load_weights(model, random_cnn('test_resnet').state_dict())
    assert not model.patch_embed.backbone.conv1[0].weight.is_meta
    assert any('are still on the meta device: give them values' in note for note in report.notes)


def test_a_file_on_which_timms_filter_fails_does_not_fit(monkeypatch):
    """timm's filter for Swin looks up each layer of the file in the model."""

    def fail(weights: dict, model: torch.nn.Module) -> None:
        raise AttributeError('no such layer')

    monkeypatch.setattr(timm.models.resnet, 'checkpoint_filter_fn', fail, raising=False)
    with rejects("does not fit the model 'test_resnet' of timm"):
        fit_timm(random_cnn('test_resnet'), 'test_resnet', random_cnn('test_convnext').state_dict())


def test_quantized_weights_of_stems_raise():
    cnn = random_cnn('test_resnet').state_dict()
    cnn['conv1.0.weight'] = cnn['conv1.0.weight'].to(torch.int8)
    with rejects('has conv1.0.weight as int8'):
        hybrid('test_resnet').patch_embed.load(cnn)
    stem = VisionTransformer(arch=dict(BLOCKS, patch_size=8)).patch_embed
    quantized = {name: value.to(torch.int8) for name, value in stem.state_dict().items()}
    with rejects('has proj.weight as int8'):
        stem.load(quantized)


def test_a_source_grid_in_the_config_does_not_concern_a_cnn():
    model = VisionTransformer(
        arch=BLOCKS,
        img_size=64,
        patch_embed=dict(type='TimmEmbed', model_name='test_resnet'),
        pos_embed=dict(type='learned', source_grid=(1, 4)),
    )
    report = model.load(random_cnn('test_resnet').state_dict())
    assert report.initialized['pos_embed'] == 'the checkpoint has only the CNN of the stem'


def test_a_kernel_without_channels_does_not_fit():
    weights = random_cnn('test_resnet').state_dict()
    weights['conv1.0.weight'] = weights['conv1.0.weight'][:, :0]
    with rejects("does not fit the model 'test_resnet' of timm: conv1.0.weight are missing"):
        fit_timm(TimmEmbed(model_name='test_resnet').backbone, 'test_resnet', weights)
