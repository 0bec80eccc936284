from pathlib import Path

import pytest
import torch
from mmengine.registry import MODELS, init_default_scope
from mmengine.runner import load_checkpoint

from vit_plugin.errors import ConfigError
from vit_plugin.models import VisionTransformer
from vit_plugin.weights import FORMATS, load_weights
from vit_plugin.weights.load import load_trained


def classifier(tiny: dict, classes: int = 5, **head) -> torch.nn.Module:
    init_default_scope('mmpretrain')
    return MODELS.build(dict(
        type='ImageClassifier', backbone=dict(tiny, type='vit_plugin.VisionTransformer'),
        head=dict(type='vit_plugin.ViTClsHead', num_classes=classes, in_channels=32, **head) if classes else None,
    )).eval()


def exported(model: torch.nn.Module, name: str = 'timm') -> dict:
    state = {key.removeprefix('backbone.'): value.clone() for key, value in model.state_dict().items()}
    return FORMATS[name].export(state, 2)[0]


def test_every_key_is_accounted_for(tiny):
    source, model = classifier(tiny), classifier(tiny, classes=7)
    torch.nn.init.normal_(source.head.layers.head.weight)
    weights = {**exported(source), 'decoder_norm.weight': torch.ones(3), 'stray': torch.ones(2)}
    report = load_weights(model, weights)
    assert report.ignored['decoder_norm.weight'] == 'decoder of masked pre-training'
    assert report.ignored['stray'] == 'the model has no such parameter'
    assert set(report.initialised) == {'head.layers.head.weight', 'head.layers.head.bias'}
    used = [key for keys in report.matched.values() for key in keys]
    assert len(used) == len(set(used))
    assert set(used) | set(report.ignored) | {'head.weight', 'head.bias'} == set(weights)
    text = str(report)
    assert 'the checkpoint has 5 classes, the model 7' in text
    assert 'tensors from the format timm' in text


def test_a_zero_classifier_is_named(tiny):
    model = classifier(tiny)
    report = load_weights(model, exported(classifier(tiny)))
    assert 'head.layers.head.weight is all zeros in the checkpoint' in report.notes[0]


def test_pre_logits_are_kept_and_a_backbone_does_without(tiny):
    source = classifier(tiny, hidden_dim=24)
    target = classifier(tiny, hidden_dim=24)
    load_weights(target, exported(source, 'jax'))
    assert torch.equal(target.head.layers.pre_logits.weight, source.head.layers.pre_logits.weight)
    report = load_weights(VisionTransformer(**tiny), exported(source, 'jax'))
    assert set(report.ignored.values()) == {'the model has no head'}


@pytest.mark.parametrize('change', ['missing', 'misspelt', 'misshaped', 'foreign', 'empty'])
def test_what_does_not_fit_is_refused_and_nothing_is_written(tiny, change):
    model, weights = VisionTransformer(**tiny), exported(VisionTransformer(**tiny))
    value = weights.pop('blocks.1.mlp.fc2.weight')
    words = 'lacks blocks.1.mlp.fc2.weight'
    if change == 'misspelt':
        weights['blocks.1.mlp.fc_2.weight'] = value
        words = 'left over in it are blocks.1.mlp.fc_2.weight'
    elif change == 'misshaped':
        weights['blocks.1.mlp.fc2.weight'] = value[:, :-1]
        words = r'blocks.1.mlp.fc2.weight has the shape \(32, 64\) in the model and \(32, 63\) in the checkpoint'
    elif change == 'foreign':
        weights = {'layer1.0.conv1.weight': value}
        words = r'of no known format: none of its keys \(layer1.0.conv1.weight\)'
    elif change == 'empty':
        weights, words = {}, 'of no known format'
    before = {key: value.clone() for key, value in model.state_dict().items()}
    with pytest.raises(ConfigError, match=words):
        load_weights(model, weights)
    for key, value in model.state_dict().items():
        assert torch.equal(value, before[key])


def test_skipped_on_request(tiny):
    model, weights = VisionTransformer(**tiny), exported(VisionTransformer(**tiny))
    del weights['blocks.1.mlp.fc2.weight']
    report = load_weights(model, weights, skip=['blocks.1.mlp.{rest}'])
    assert set(report.initialised.values()) == {'skipped'}
    assert len(report.initialised) == 4


def test_fewer_blocks_take_the_first_of_the_checkpoint(tiny):
    source, model = VisionTransformer(**tiny), VisionTransformer(**tiny, out_indices=0)
    report = load_weights(model, source.state_dict())
    assert all(key.startswith('blocks.1.') for key in report.ignored)


def test_a_model_without_our_backbone():
    with pytest.raises(ConfigError, match='Linear has 0'):
        load_weights(torch.nn.Linear(2, 2), {})


def test_our_own_classifier_checkpoint(tiny):
    source, model, backbone = classifier(tiny), classifier(tiny), VisionTransformer(**tiny)
    torch.nn.init.normal_(source.head.layers.head.weight)
    report = load_weights(model, source.state_dict())
    assert report.format == 'vit_plugin'
    assert torch.equal(model.head.layers.head.weight, source.head.layers.head.weight)
    load_weights(backbone, source.state_dict())
    assert torch.equal(backbone.norm.weight, source.backbone.norm.weight)


def test_partial_state_dicts_of_our_names_follow_torch(tiny):
    model = VisionTransformer(**tiny)
    state = model.state_dict()
    del state['norm.weight']
    assert model.load_state_dict(state, strict=False).missing_keys == ['norm.weight']
    with pytest.raises(RuntimeError, match='Missing key'):
        model.load_state_dict(state)


@pytest.mark.parametrize(('numerics', 'form', 'noted'), [
    ('authors', 'jax', []), ('timm', 'timm', []), ('authors', 'timm', ['act_cfg']), ('timm', 'jax', ['act_cfg']),
    (dict(base='timm', norm_cfg=dict(eps=1e-3)), 'timm', ['norm_cfg'])])
def test_numerics_that_differ_are_pointed_out(tiny, numerics, form, noted):
    model = classifier(dict(tiny, numerics=numerics))
    torch.nn.init.ones_(model.head.layers.head.weight)
    report = load_weights(model, exported(model, form))
    assert len(report.notes) == len(noted)
    for note, field in zip(report.notes, noted, strict=True):
        assert f'{field}=' in note
        assert f"set numerics='{'authors' if form == 'jax' else 'timm'}'" in note


def test_numerics_of_a_hybrids_stem(tiny_hybrid):
    model = VisionTransformer(**tiny_hybrid, numerics='timm')
    notes = '\n'.join(load_weights(model, exported(model, 'jax')).notes)
    assert 'stem_norm_cfg' in notes
    assert 'stem_conv_cfg' in notes


@pytest.mark.parametrize('form', ['vit_plugin', 'timm', 'jax'])
def test_wrapped_classifiers(tiny, form):
    from mmengine.model import ExponentialMovingAverage
    source = classifier(tiny)
    torch.nn.init.normal_(source.head.layers.head.weight)
    weights = source.state_dict() if form == 'vit_plugin' else exported(source, form)
    average = ExponentialMovingAverage(classifier(tiny))
    average.load_state_dict({'steps': torch.tensor(3), **{f'module.{key}': value for key, value in weights.items()}})
    assert average.steps == 3
    model = classifier(tiny)
    load_weights(model, {f'module.{key}': value for key, value in weights.items()})
    for key, value in source.state_dict().items():
        assert torch.equal(average.module.state_dict()[key], value), key
        assert torch.equal(model.state_dict()[key], value), key


def test_a_detectors_other_parts_are_left_alone(tiny):
    detector = torch.nn.ModuleDict(dict(backbone=VisionTransformer(**tiny), rpn_head=torch.nn.Conv2d(3, 3, 1)))
    source = VisionTransformer(**tiny)
    report = load_weights(detector, exported(source))
    assert report.initialised['rpn_head.weight'] == 'the checkpoint has no rpn_head'
    assert torch.equal(detector['backbone'].pos_embed, source.pos_embed)


@pytest.fixture
def said(monkeypatch) -> list[str]:
    """What the loading prints."""
    lines: list[str] = []
    monkeypatch.setattr('vit_plugin.weights.load.print_log', lambda text, *args: lines.append(text))
    return lines


def load_through_the_host(model: torch.nn.Module, weights: dict, path: Path, way: str) -> list[str]:
    """Load a file into a whole classifier by the host, and return what the host itself complains about."""
    complaints: list[str] = []
    torch.save(weights, path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr('mmengine.runner.checkpoint.print_log', lambda text, *args, **kwargs: complaints.append(text))
        if way == 'load_from':
            load_checkpoint(model, str(path))
        else:
            model.init_cfg = dict(type='Pretrained', checkpoint=str(path))
            model.init_weights()
    return [text for text in complaints if 'do not match' in text]


@pytest.mark.parametrize('way', ['load_from', 'init_cfg'])
@pytest.mark.parametrize('form', ['vit_plugin', 'timm', 'jax'])
def test_another_class_count_through_the_host(tiny, tmp_path, said, form, way):
    source, model = classifier(tiny), classifier(tiny, classes=7)
    for parameter in (*source.parameters(), *model.head.parameters()):
        torch.nn.init.normal_(parameter)
    before = {key: value.clone() for key, value in model.head.state_dict().items()}
    weights = source.state_dict() if form == 'vit_plugin' else exported(source, form)
    assert load_through_the_host(model, weights, tmp_path / 'x.pth', way) == []
    assert ('initialised  head.layers.head.weight, head.layers.head.bias (the checkpoint has 5 classes, the model 7)'
            in '\n'.join(said))
    for key, value in model.head.state_dict().items():
        assert torch.equal(value, before[key]), key
    assert torch.equal(model.backbone.norm.weight, source.backbone.norm.weight)


@pytest.mark.parametrize(('source', 'model', 'sentence', 'complaint'), [
    ({}, {}, 'head.layers.head.weight is all zeros in the checkpoint', None),
    (dict(hidden_dim=24), {}, 'ignored      head.layers.pre_logits.weight, head.layers.pre_logits.bias (the model has '
     'no such parameter)', 'unexpected key'),
    ({}, dict(classes=0), 'head.layers.head.weight, head.layers.head.bias are for the neck and head, and unused if '
     'the model has none', 'unexpected key'),
    (dict(classes=0), {}, 'initialised  head.layers.head.weight, head.layers.head.bias (the checkpoint has no head)',
     'missing keys'),
])
def test_heads_that_differ_through_the_host(tiny, tmp_path, said, source, model, sentence, complaint):
    source, model = (classifier(tiny, **kwargs) for kwargs in (source, model))
    complaints = load_through_the_host(model, exported(source, 'jax'), tmp_path / 'x.pth', 'load_from')
    assert sentence in '\n'.join(said)
    assert len(complaints) == bool(complaint)
    assert all(complaint in text for text in complaints)
    assert torch.equal(model.backbone.norm.weight, source.backbone.norm.weight)


def test_a_heads_weights_alone(tiny):
    model = classifier(tiny)
    weight = torch.randn_like(model.head.layers.head.weight)
    model.load_state_dict({'head.layers.head.weight': weight}, strict=False)
    assert torch.equal(model.head.layers.head.weight, weight)


def test_own_weights_are_adapted_but_their_completeness_is_left_to_torch(tiny):
    model = VisionTransformer(**tiny)
    state = model.state_dict()
    with pytest.raises(RuntimeError, match='Unexpected key.*blocks.7.mlp.fc1.weight'):  # of a deeper model
        model.load_state_dict({**state, 'blocks.7.mlp.fc1.weight': torch.ones(2, 2)})
    del state['norm.bias']
    loaded = model.load_state_dict({**state, 'projector.weight': torch.ones(2)}, strict=False)
    assert loaded.missing_keys == ['norm.bias']
    assert loaded.unexpected_keys == ['projector.weight']
    shallow = VisionTransformer(**tiny, out_indices=0)  # what it leaves out of the arch is no surplus
    shallow.load_state_dict(model.state_dict())


def test_a_checkpoint_to_predict_with_is_of_the_model(tiny, tmp_path):
    path = str(tmp_path / 'checkpoint.pth')
    torch.save(dict(state_dict=classifier(tiny).state_dict(), meta=dict(epoch=3)), path)
    assert load_trained(classifier(tiny), path) == dict(epoch=3)
    with pytest.raises(ConfigError, match=r'head.layers.head.* has the shape \(5.* in it and \(7'):
        load_trained(classifier(tiny, classes=7), path)
    with pytest.raises(ConfigError, match='it lacks 2 of its .* such as'):
        load_trained(classifier(dict(tiny, block_cfg=dict(layer_scale_init_value=0.1), out_indices=0)), path)
