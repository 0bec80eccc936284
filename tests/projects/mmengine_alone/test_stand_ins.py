"""The replacements of MMPretrain's classes compute the same as the originals, bit for bit.

``test_mmengine_alone.py`` compares a complete training.
"""

import importlib
import random
from copy import deepcopy
from pathlib import Path

import mmengine.registry
import mmpretrain.registry as theirs
import numpy as np
import pytest
import torch
from mmengine.registry import DefaultScope
from mmpretrain.structures import DataSample
from PIL import Image
from rejection import rejects

from vit_plugin import registry
from vit_plugin.arguments import checked
from vit_plugin.errors import MissingExtraError
from vit_plugin.project import declared_rows, projects

LOGITS = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
LABELS = torch.tensor([0, 2, 1, 1, 0, 2])
SCORES = torch.nn.functional.one_hot(LABELS, 3) * 0.7 + 0.1


def build_ours(name: str, **arguments: object) -> object:
    """An object of our replacement of MMPretrain's class with this name."""
    module = next(names[name] for names in declared_rows('stand_ins').values() if name in names)
    return checked(getattr(importlib.import_module(module), name))(**arguments)


def build_both(registry_name: str, name: str, **arguments: object) -> list:
    """Objects of our class and of MMPretrain's, with the same arguments."""
    their_object = getattr(theirs, registry_name).build(dict(deepcopy(arguments), type=name))
    return [build_ours(name, **deepcopy(arguments)), their_object]


def call_seeded(function, *arguments):
    """Call a function with the same random numbers each time."""
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    return function(*arguments)


@pytest.mark.parametrize(
    ('name', 'arguments', 'target'),
    [
        ('CrossEntropyLoss', {}, LABELS),
        ('CrossEntropyLoss', dict(class_weight=[1.0, 2.0, 0.5], loss_weight=0.7), LABELS),
        ('CrossEntropyLoss', dict(use_soft=True, class_weight=[1.0, 2.0, 0.5]), SCORES),
        ('CrossEntropyLoss', dict(use_sigmoid=True), SCORES),
        ('CrossEntropyLoss', dict(use_sigmoid=True, class_weight=[1.0, 2.0, 0.5]), SCORES),
        ('LabelSmoothLoss', dict(label_smooth_val=0.1), LABELS),
        ('LabelSmoothLoss', dict(label_smooth_val=0.1, mode='original', num_classes=3), SCORES),
    ],
)
def test_losses_and_gradients_are_equal(name, arguments, target):
    losses, gradients = [], []
    for loss in build_both('MODELS', name, **arguments):
        logits = LOGITS.clone().requires_grad_()
        losses.append(loss(logits, target, avg_factor=6))
        gradients.append(*torch.autograd.grad(losses[-1], logits))
    assert torch.equal(*losses)
    assert torch.equal(*gradients)


def test_smoothing_for_other_classes_raises():
    loss = build_ours('LabelSmoothLoss', label_smooth_val=0.1, num_classes=4)
    with rejects('num_classes=4, but the head has 3; leave it out'):
        loss(LOGITS, LABELS, avg_factor=6)


@pytest.mark.parametrize(
    ('name', 'labels'),
    [('LinearClsHead', [[0], [2], [1]]), ('MultiLabelLinearClsHead', [[0, 1], [2], [0, 2]])],
)
def test_heads_are_equal(name, labels):
    heads = build_both('MODELS', name, num_classes=3, in_channels=5)
    assert heads[0].init_cfg == heads[1].init_cfg
    heads[0].load_state_dict(heads[1].state_dict())
    features = (torch.randn(3, 5),)
    for has_scores in (False, True):
        samples = [DataSample().set_gt_label(label) for label in labels]
        for sample, score in zip(samples, SCORES, strict=False):
            if has_scores:
                sample.set_gt_score(score)
        assert torch.equal(*(head.loss(features, samples)['loss'] for head in heads))
    predictions = [head.predict(features) for head in heads]
    for ours, expected in zip(*predictions, strict=True):
        assert torch.equal(ours.pred_score, expected.pred_score)
        assert torch.equal(ours.pred_label, expected.pred_label)


@pytest.mark.parametrize('options', [dict(topk=2), dict(thr=0.4), dict(thr=0.4, topk=2)])
def test_labels_of_several_classes_are_equal(options):
    name, sizes = 'MultiLabelLinearClsHead', dict(num_classes=3, in_channels=5)
    heads = build_both('MODELS', name, **sizes, **options)
    heads[0].load_state_dict(heads[1].state_dict())
    features = (torch.randn(3, 5),)
    for ours, expected in zip(*(head.predict(features) for head in heads), strict=True):
        assert torch.equal(ours.pred_label, expected.pred_label)


@pytest.mark.parametrize('sizes', [[(8, 8)] * 4, [(8, 8), (6, 9), (8, 8), (7, 7)]])
@pytest.mark.parametrize('training', [False, True])
@pytest.mark.parametrize('mixed', [False, True])
def test_preprocessors_are_equal(sizes, training, mixed):
    images = [torch.randint(0, 256, (3, *size), dtype=torch.uint8) for size in sizes]
    images = torch.stack(images) if len({*sizes}) == 1 else images
    augments = dict(batch_augments=dict(augments=[dict(type='Mixup', alpha=0.2)]))
    preprocessors = build_both(
        'MODELS',
        'ClsDataPreprocessor',
        mean=[1.0, 2.0, 3.0],
        std=[4.0, 5.0, 6.0],
        pad_size_divisor=4,
        pad_value=2,
        to_rgb=True,
        num_classes=3,
        **(augments if mixed else {}),
    )
    batches = []
    for preprocessor in preprocessors:
        samples = [DataSample().set_gt_label(label) for label in (0, 2, 1, 1)]
        batch = dict(inputs=images, data_samples=samples)
        batches.append(call_seeded(preprocessor, batch, training))
    assert torch.equal(batches[0]['inputs'], batches[1]['inputs'])
    for ours, expected in zip(*(batch['data_samples'] for batch in batches), strict=True):
        assert torch.equal(ours.gt_label, expected.gt_label)
        assert ('gt_score' in ours) == ('gt_score' in expected) == mixed
        assert not mixed or torch.equal(ours.gt_score, expected.gt_score)


def test_preprocessors_of_views_are_equal():
    preprocessors = build_both(
        'MODELS', 'SelfSupDataPreprocessor', mean=[1.0] * 3, std=[2.0] * 3, to_rgb=True
    )
    views = [torch.randint(0, 256, (2, 3, size, size)) for size in (8, 4)]
    outputs = [
        preprocessor(dict(inputs=views, data_samples=None))['inputs']
        for preprocessor in preprocessors
    ]
    assert all(map(torch.equal, *outputs))


@pytest.mark.parametrize('shape', [(40, 30, 3), (30, 40, 3), (21, 21, 3)])
@pytest.mark.parametrize(
    ('name', 'arguments'),
    [
        ('Resize', dict(scale=(20, 24))),
        ('Resize', dict(scale=20, interpolation='bicubic', backend='pillow')),
        ('ResizeEdge', dict(scale=25)),
        ('ResizeEdge', dict(scale=25, edge='long', interpolation='area')),
        ('ResizeEdge', dict(scale=25, edge='width', backend='pillow')),
        ('CenterCrop', dict(crop_size=20)),
        ('CenterCrop', dict(crop_size=(35, 22))),
        ('RandomResizedCrop', dict(scale=16)),
        ('RandomResizedCrop', dict(scale=(12, 16), backend='pillow', interpolation='lanczos')),
        ('RandomResizedCrop', dict(scale=16, crop_ratio_range=(3.0, 4.0))),  # crops the middle
        ('RandomFlip', dict(prob=0.5)),
        ('RandomFlip', dict(prob=1.0, direction='vertical')),
        ('Rotate', dict(magnitude_range=(0, 15), magnitude_std='inf', prob=1.0, pad_val=0)),
        ('Rotate', dict(magnitude_range=(0, 15), magnitude_level=5, interpolation='bilinear')),
    ],
)
def test_transforms_are_equal(name, arguments, shape):
    image = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    steps = build_both('TRANSFORMS', name, **arguments)
    for seed in range(3):
        images = []
        for step in steps:
            np.random.seed(seed)
            images.append(step(dict(img=image.copy()))['img'])
        np.testing.assert_array_equal(*images)


def test_packed_inputs_are_equal():
    results = dict(
        img=np.arange(60, dtype=np.uint8).reshape(4, 5, 3), img_path='a.png', gt_label=2, more=1
    )
    packed, expected = (step(dict(results)) for step in build_both('TRANSFORMS', 'PackInputs'))
    assert torch.equal(packed['inputs'], expected['inputs'])
    assert packed['data_samples'].metainfo == expected['data_samples'].metainfo
    assert packed['data_samples'].gt_label.tolist() == expected['data_samples'].gt_label.tolist()
    gray = build_ours('PackInputs')(dict(img=np.zeros((4, 5), np.uint8)))
    assert gray['inputs'].shape == (1, 4, 5)


def test_rand_augment_keeps_shapes_and_varies():
    augment = build_ours(
        'RandAugment', policies='timm_increasing', num_policies=2, magnitude_level=10
    )
    image = np.full((16, 16, 3), (10, 120, 240), np.uint8)
    # Enough draws for posterize with 0 bits, which Pillow 13 rejects.
    outputs = [augment(dict(img=image))['img'] for _ in range(200)]
    assert {output.shape for output in outputs} == {image.shape}
    assert len({output.tobytes() for output in outputs}) > 5
    with rejects('pip install'):
        augment.random_policy_indices()


@pytest.mark.parametrize('name', ['Accuracy', 'AveragePrecision'])
def test_metrics_are_equal(name):
    metrics = build_both('METRICS', name, **(dict(topk=(1, 2)) if name == 'Accuracy' else {}))
    generator = torch.Generator().manual_seed(0)
    all_labels = [[0], [0, 2], [1, 2], [2], [1]] if name == 'AveragePrecision' else [0, 2, 1, 2, 1]
    for metric in metrics:
        generator.manual_seed(0)
        for labels in all_labels:
            sample = DataSample().set_gt_label(labels)
            sample.set_pred_score(torch.rand(3, generator=generator))
            metric.process(None, [sample.to_dict()])
    ours, expected = (metric.evaluate(5) for metric in metrics)
    assert ours == expected


def test_ranks_beyond_the_classes_raise():
    metric = build_ours('Accuracy', topk=(1, 5))
    sample = DataSample().set_gt_label(0).set_pred_score(torch.rand(3))
    metric.process(None, [sample.to_dict()])
    with rejects('topk has 5, and there are only 3 classes'):
        metric.evaluate(1)


def test_data_sets_are_equal(tmp_path):
    for name in ('b/1.png', 'b/0.png', 'a/2.png'):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        Image.new('RGB', (2, 2)).save(path)
    lines = tmp_path / 'list.txt'
    lines.write_text('b/1.png 1\na/2.png 0\n')
    for arguments in (
        dict(data_prefix=str(tmp_path)),
        dict(data_root=str(tmp_path.parent), data_prefix=tmp_path.name),
        dict(data_prefix=str(tmp_path), ann_file=str(lines)),
        dict(data_prefix=str(tmp_path), ann_file=str(lines), with_label=False),
    ):
        ours, expected = build_both('DATASETS', 'CustomDataset', **arguments)
        assert [*map(ours.get_data_info, range(len(ours)))] == [
            *map(expected.get_data_info, range(len(expected)))
        ]
        assert ours.metainfo == expected.metainfo
    for wrong in ('b/1.png', 'b/1.png cat', ''):
        lines.write_text(f'b/1.png 1\n{wrong}\na/2.png 0\n')
        with rejects(f"has the line '{wrong}', where a path, a space and the number"):
            build_ours('CustomDataset', data_prefix=str(tmp_path), ann_file=str(lines))
    base = build_ours('BaseDataset', ann_file='', lazy_init=True)
    assert ours.__class__.__mro__[1] is type(base)
    with rejects('has 2 folders'):
        build_ours('CustomDataset', data_prefix=str(tmp_path), metainfo=dict(classes=('a',)))


@pytest.fixture
def scope(monkeypatch):
    """The name of a scope with our classes instead of MMPretrain's."""
    name = 'without_mmpretrain'
    registry.stand_in(name)
    yield name
    for root in vars(registry.root).values():
        if isinstance(root, registry.root.Registry):
            del root.children[name]
    del registry.sys.modules[f'{name}.registry']


def test_stand_in_scope_builds_models(scope):
    model = dict(
        type='ImageClassifier',
        backbone=dict(type='vit_plugin.VisionTransformer', arch='Ti/16', img_size=16),
        head=dict(type='LinearClsHead', num_classes=3, in_channels=192),
    )
    with DefaultScope.overwrite_default_scope(scope):
        classifier = registry.root.MODELS.build(model)
    package = 'vit_plugin.projects.mmengine_alone.'
    parts = (classifier, classifier.head, classifier.head.loss_module, classifier.data_preprocessor)
    assert all(type(part).__module__.startswith(package) for part in parts)
    samples = classifier(torch.rand(2, 3, 16, 16), mode='predict')
    assert samples[0].pred_score.shape == (3,)
    children = {
        registry_name: root.children[scope]
        for registry_name, root in vars(registry.root).items()
        if isinstance(root, registry.root.Registry)
    }
    for registry_name, names in declared_rows('stand_ins').items():
        assert not registry_name or all(children[registry_name].get(name) for name in names)
    with pytest.raises(MissingExtraError, match="type='Resizes' needs mmpretrain.*did you mean Re"):
        children['TRANSFORMS'].get('Resizes')
    assert children['PARAM_SCHEDULERS'].get('LinearLR')


def test_visualization_hook_needs_mmpretrain():
    build_ours('VisualizationHook', enable=False)
    with rejects('pip install'):
        build_ours('VisualizationHook', enable=True)


@pytest.mark.parametrize(
    'augments',
    [
        [],
        [dict(type='CutMix', alpha=1.0)],
        [dict(alpha=1.0)],
        [dict(type='Mixup')],
        [dict(type='Mixup', alpha=1.0, prob=0.5)],
        [dict(type='Mixup', alpha=1.0), len],
    ],
)
def test_other_batch_augments_raise(augments):
    with rejects('no batch_augments but Mixup'):
        build_ours('ClsDataPreprocessor', num_classes=3, batch_augments=dict(augments=augments))


@pytest.mark.parametrize('given', [dict(mean=[1.0] * 3), dict(std=[1.0] * 3)])
def test_half_a_normalization_raises(given):
    with rejects('normalize together; give both, or neither'):
        build_ours('ClsDataPreprocessor', **given)


def test_declared_stand_ins_exist():
    (project,) = [project for project in projects() if project.stand_ins]
    for names in project.stand_ins.values():
        for name, path in names.items():
            module = importlib.import_module(path)
            assert hasattr(module, name)
            assert Path(module.__file__).parent.name == 'mmengine_alone'


def test_head_builds_without_mmpretrain(forget):
    forget('mmpretrain')
    importlib.import_module('vit_plugin.registry')
    head = mmengine.registry.MODELS.build(
        dict(type='vit_plugin.ViTClsHead', num_classes=3, in_channels=4)
    )
    assert type(head.loss_module).__module__.startswith('vit_plugin.projects.')
    with pytest.raises(
        ImportError,
        match="Swin.*needs mmpretrain.*pip install -c tests/constraints.txt -e '.\\[onedl",
    ):
        mmengine.registry.MODELS.build(dict(type='mmpretrain.SwinTransformer'))
