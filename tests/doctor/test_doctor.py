"""Plants faults in configs of the frameworks; the doctor must report each with its cure."""

import json
import sys
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch
from mmengine.config import Config
from test_configs import CONFIGS, HOSTS, QUICK
from tiny_models import TINY, randomize

from vit_plugin.__main__ import main
from vit_plugin.doctor import CHECKS, ExaminedConfig, diagnose, examine
from vit_plugin.models import VisionTransformer
from vit_plugin.weights import FORMATS

pytestmark = pytest.mark.filterwarnings('ignore')

LITE = 'tf_efficientnet_lite0'
MEAN, STD = [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]
SIDE = 32
LAYER_DECAY = 'vit_plugin.LayerDecayOptimWrapperConstructor'
DEFAULTS = dict(
    img_size=SIDE, numerics='timm', out_type='featmap', encoder=dict(layer_scale_init_value=1e-5)
)


@pytest.fixture(scope='module')
def folder(tmp_path_factory) -> Path:
    """Weights of a backbone, of a whole detector, and of another library's names."""
    folder = tmp_path_factory.mktemp('weights')
    torch.manual_seed(0)
    model = randomize(VisionTransformer(TINY, **DEFAULTS))
    torch.save(model.state_dict(), folder / 'vit.pth')
    whole = {f'backbone.{name}': value for name, value in randomize(model).state_dict().items()}
    torch.save(dict(meta={}, state_dict=whole), folder / 'whole.pth')
    torch.save({'stem.weight': torch.ones(3)}, folder / 'other.pth')
    plain = randomize(VisionTransformer(TINY, SIDE))
    np.savez(folder / 'authors.npz', **FORMATS['jax'].export(plain.state_dict(), heads=2)[0])
    return folder


def backbone(folder: Path, **changes) -> dict:
    return dict(
        type='vit_plugin.VisionTransformer',
        arch=dict(TINY),
        init_cfg=dict(type='Pretrained', checkpoint=str(folder / 'vit.pth')),
        **deepcopy({**DEFAULTS, **changes}),
    )


def schedule() -> dict:
    """Settings of a training of 100 iterations without faults."""
    return dict(
        optim_wrapper=dict(
            type='OptimWrapper',
            optimizer=dict(type='AdamW', lr=1e-4, weight_decay=0.05),
        ),
        param_scheduler=[dict(type='LinearLR', start_factor=0.001, by_epoch=False, end=5)],
        train_cfg=dict(by_epoch=False, max_iters=100, val_interval=10),
        val_cfg=dict(),
    )


def loaders(dataset: dict) -> dict:
    """Data loaders for training and validation on the splits of a data set."""

    def loader(split: str) -> dict:
        dataset_of_split = deepcopy(dataset)
        if 'ann_file' in dataset:
            dataset_of_split['ann_file'] = f'{split}.json'
        shuffle = split == 'train'
        return dict(
            batch_size=2,
            num_workers=0,
            sampler=dict(type='DefaultSampler', shuffle=shuffle),
            dataset=dataset_of_split,
        )

    return dict(train_dataloader=loader('train'), val_dataloader=loader('val'))


def classifier(folder: Path) -> dict:
    """A classifier of MMPretrain on the digits, which are available without a download."""
    steps = [dict(type='PackInputs')]
    torch.save(
        randomize(
            VisionTransformer(TINY, patch_embed=dict(in_channels=1), **DEFAULTS)
        ).state_dict(),
        folder / 'gray.pth',
    )
    cfg = dict(
        default_scope='mmpretrain',
        model=dict(
            type='ImageClassifier',
            backbone=dict(
                backbone(folder, out_type='cls_token', patch_embed=dict(in_channels=1)),
                init_cfg=dict(type='Pretrained', checkpoint=str(folder / 'gray.pth')),
            ),
            head=dict(type='vit_plugin.ViTClsHead', num_classes=10, in_channels=32),
        ),
        data_preprocessor=dict(num_classes=10, mean=[127.5], std=[127.5]),
        **loaders(dict(type='vit_plugin.Digits', split='train', pipeline=steps)),
        **schedule(),
        val_evaluator=dict(type='Accuracy', topk=(1,)),
    )
    cfg['val_dataloader']['dataset']['split'] = 'val'
    return cfg


def detector(folder: Path) -> dict:
    """MMDetection's RetinaNet on a ViT; its images do not exist."""
    steps = [
        dict(type='LoadImageFromFile'),
        dict(type='LoadAnnotations', with_bbox=True),
        dict(type='Resize', scale=(48, SIDE), keep_ratio=True),
        dict(type='PackDetInputs'),
    ]
    return dict(
        default_scope='mmdet',
        model=dict(
            type='RetinaNet',
            data_preprocessor=dict(
                type='DetDataPreprocessor', mean=MEAN, std=STD, bgr_to_rgb=True, pad_size_divisor=32
            ),
            backbone=backbone(folder),
            neck=dict(type='vit_plugin.SimpleFPN', in_channels=32, out_channels=16, num_outs=5),
            bbox_head=dict(
                type='RetinaHead',
                num_classes=2,
                in_channels=16,
                stacked_convs=1,
                feat_channels=16,
                anchor_generator=dict(
                    type='AnchorGenerator',
                    octave_base_scale=4,
                    scales_per_octave=3,
                    ratios=[1.0],
                    strides=[2, 4, 8, 16, 32],
                ),
                bbox_coder=dict(type='DeltaXYWHBBoxCoder'),
                loss_cls=dict(type='FocalLoss', use_sigmoid=True),
                loss_bbox=dict(type='L1Loss'),
            ),
            train_cfg=dict(
                assigner=dict(type='MaxIoUAssigner', pos_iou_thr=0.5, neg_iou_thr=0.4),
                sampler=dict(type='PseudoSampler'),
            ),
        ),
        **loaders(
            dict(
                type='CocoDataset',
                data_root='elsewhere',
                ann_file='',
                metainfo=dict(classes=('cell', 'platelet')),
                pipeline=steps,
            )
        ),
        **schedule(),
        val_evaluator=dict(type='CocoMetric', ann_file='elsewhere/val.json', metric='bbox'),
    )


def segmentor(folder: Path) -> dict:
    """MMSegmentation's UPerNet on two maps of a ViT; its images do not exist."""
    steps = [
        dict(type='LoadImageFromFile'),
        dict(type='LoadAnnotations'),
        dict(type='RandomCrop', crop_size=(SIDE, SIDE)),
        dict(type='PackSegInputs'),
    ]
    return dict(
        default_scope='mmseg',
        model=dict(
            type='EncoderDecoder',
            data_preprocessor=dict(
                type='SegDataPreProcessor', mean=MEAN, std=STD, bgr_to_rgb=True, size=(SIDE, SIDE)
            ),
            backbone=backbone(folder, out_indices=(0, 1)),
            neck=dict(type='MultiLevelNeck', in_channels=[32, 32], out_channels=16, scales=[2, 1]),
            decode_head=dict(
                type='UPerHead',
                in_channels=[16, 16],
                in_index=[0, 1],
                pool_scales=(1, 2),
                channels=16,
                num_classes=2,
                align_corners=False,
            ),
            test_cfg=dict(mode='whole'),
        ),
        **loaders(
            dict(
                type='BaseSegDataset',
                data_root='elsewhere',
                data_prefix=dict(img_path='images', seg_map_path='masks'),
                metainfo=dict(classes=('road', 'wall')),
                pipeline=steps,
            )
        ),
        **schedule(),
        val_evaluator=dict(type='IoUMetric', iou_metrics=['mIoU']),
    )


FRAMEWORKS = dict(mmpretrain=classifier, mmdet=detector, mmseg=segmentor)


def findings_of(cfg: dict) -> list:
    return [*diagnose(ExaminedConfig(Config(cfg)))]


@pytest.mark.parametrize('framework', FRAMEWORKS)
def test_configs_without_faults_have_no_findings(framework, folder):
    pytest.importorskip(framework)
    examined = ExaminedConfig(Config(FRAMEWORKS[framework](folder)))
    assert [*diagnose(examined)] == []
    assert examined.initialized is not None  # its weights were read
    assert not [text for text in examined.unseen if 'weights' in text]


def test_steps_of_a_mixing_wrapper_follow_those_of_its_data_set(folder):
    pytest.importorskip('mmdet')
    cfg = detector(folder)
    inner = cfg['train_dataloader']['dataset']
    *inner['pipeline'], last = inner['pipeline']
    mixed = dict(type='MultiImageMixDataset', dataset=inner, pipeline=[last])
    cfg['train_dataloader']['dataset'] = mixed
    examined = ExaminedConfig(Config(cfg))
    assert [step['type'] for step in examined.pipeline('train')] == [
        'LoadImageFromFile',
        'LoadAnnotations',
        'Resize',
        'PackDetInputs',
    ]
    assert tuple(examined.metainfo('train')['classes']) == ('cell', 'platelet')


def test_data_sets_without_a_common_pipeline_are_not_examined(folder):
    pytest.importorskip('mmdet')
    cfg = detector(folder)
    loader = cfg['train_dataloader']
    loader['dataset'] = dict(type='ConcatDataset', datasets=[loader['dataset']])
    examined = ExaminedConfig(Config(cfg))
    assert examined.pipeline('train') == []
    why = 'ConcatDataset states no single pipeline'
    assert examined.unseen == [f'the images of train_dataloader: {why}']


def setting(place: str, value: object) -> Callable[[dict, Path], None]:
    """A fault of one setting; a Path as value is a file in the folder of weights."""

    def plant(cfg: dict, folder: Path) -> None:
        *parents, last = place.split('.')
        for name in parents:
            cfg = cfg[int(name)] if isinstance(cfg, list) else cfg.setdefault(name, {})
        cfg[last] = str(folder / value.name) if isinstance(value, Path) else value

    return plant


def several(*faults: Callable[[dict, Path], None]) -> Callable[[dict, Path], None]:
    """Plant several faults."""

    def plant(cfg: dict, folder: Path) -> None:
        for fault in faults:
            fault(cfg, folder)

    return plant


def overwritten_stem(cfg: dict, folder: Path) -> None:
    """Load timm's file into the stem, then let MMEngine's ``init_cfg`` overwrite it."""
    import timm

    torch.save(timm.create_model(LITE).state_dict(), folder / 'lite.pth')
    overlay = dict(pretrained_cfg_overlay=dict(file=str(folder / 'lite.pth')))
    cfg['model']['backbone'].update(
        arch=dict(embed_dims=32, num_layers=2, num_heads=2, feedforward_channels=64),
        patch_embed=dict(type='TimmEmbed', model_name=LITE, pretrained=True, model_kwargs=overlay),
        encoder={},
        init_cfg=dict(type='Kaiming', layer='Conv2d'),
    )


VIT, SKIP = 'model.backbone', ('blocks.{i}.ls1.{rest}', 'blocks.{i}.ls2.{rest}')


class Fault(NamedTuple):
    check: str
    framework: str
    plant: Callable[[dict, Path], None]
    found: str  # words of the finding
    cure: str  # words of its cure


FAULTS = {
    'a missing file': Fault(
        'weights', 'mmdet', setting(f'{VIT}.init_cfg.checkpoint', 'no/vit.pth'), "'no/vit.pth'", ''
    ),
    'names of another library': Fault(
        'weights',
        'mmseg',
        setting(f'{VIT}.init_cfg.checkpoint', Path('other.pth')),
        'other.pth',
        '',
    ),
    'weights of a backbone as load_from': Fault(
        'weights',
        'mmdet',
        several(setting(f'{VIT}.init_cfg', None), setting('load_from', Path('vit.pth'))),
        'vit.pth has no name of a parameter of the model',
        'init_cfg=dict(',
    ),
    'a stem that is initialized again': Fault(
        'weights',
        'mmpretrain',
        overwritten_stem,
        'lite.pth are random',
        'leave out model.backbone.init_cfg',
    ),
    'two starting weights': Fault(
        'start',
        'mmdet',
        setting('load_from', Path('whole.pth')),
        'tensors of vit.pth are replaced by those of whole.pth',
        'leave one of them out',
    ),
    'LayerScale left out': Fault(
        'skip',
        'mmseg',
        setting(f'{VIT}.init_cfg.skip', SKIP),
        'another LayerScale',
        'leave out skip',
    ),
    'no last norm': Fault(
        'last norm',
        'mmseg',
        several(
            setting(f'{VIT}.encoder.final_norm', False),
            setting('model.neck', None),
            setting(
                'model.decode_head',
                dict(type='FCNHead', in_channels=32, channels=16, num_classes=2),
            ),
        ),
        'final_norm=False',
        'leave out final_norm',
    ),
    'another GELU': Fault(
        'numerics',
        'mmseg',
        several(
            setting(f'{VIT}.init_cfg.checkpoint', Path('authors.npz')),
            setting(f'{VIT}.encoder', {}),
        ),
        "'approximate': 'tanh'}, the model computes with {'type': 'GELU'",
        'set numerics=',
    ),
    'a frozen backbone without weights': Fault(
        'frozen',
        'mmpretrain',
        several(setting(f'{VIT}.init_cfg', None), setting(f'{VIT}.frozen_stages', 2)),
        'are frozen and have random values',
        'name their weights',
    ),
    'no pixel mean': Fault(
        'pixels',
        'mmdet',
        several(
            setting('model.data_preprocessor.mean', None),
            setting('model.data_preprocessor.std', None),
        ),
        'no mean and std',
        'give data_preprocessor',
    ),
    'a mean from 0 to 1': Fault(
        'pixels',
        'mmseg',
        several(
            setting('model.data_preprocessor.mean', [0.485, 0.456, 0.406]),
            setting('model.data_preprocessor.std', [0.229, 0.224, 0.225]),
        ),
        'values from 0 to 1',
        'multiply them by 255',
    ),
    'normalized twice': Fault(
        'pixels',
        'mmdet',
        lambda cfg, folder: cfg['train_dataloader']['dataset']['pipeline'].insert(
            3, dict(type='mmcv.Normalize', mean=MEAN, std=STD)
        ),
        'normalized twice',
        'leave Normalize out',
    ),
    'blue before red': Fault(
        'channels',
        'mmdet',
        setting('model.data_preprocessor.bgr_to_rgb', False),
        'reads BGR',
        'data_preprocessor.bgr_to_rgb=True',
    ),
    'a table for small images': Fault(
        'positions',
        'mmdet',
        setting('train_dataloader.dataset.pipeline.2.scale', (1333, 800)),
        'images of about 800 pixels',
        'img_size=800',
    ),
    'strides of a ResNet': Fault(
        'maps',
        'mmdet',
        setting('model.bbox_head.anchor_generator.strides', [8, 16, 32, 64, 128]),
        'anchor_generator.strides',
        'set it to [2, 4, 8, 16, 32]',
    ),
    'channels of a ResNet': Fault(
        'maps',
        'mmseg',
        setting('model.neck.in_channels', [256, 512]),
        'model.neck.in_channels',
        'set it to [32, 32]',
    ),
    'one resolution': Fault(
        'one resolution',
        'mmseg',
        several(setting('model.neck', None), setting('model.decode_head.in_channels', [32, 32])),
        'takes a pyramid, and its 2 maps all have the stride 8',
        'SimpleFPN',
    ),
    'pooling of a ResNet': Fault(
        'maps',
        'mmpretrain',
        setting('model.neck', dict(type='GlobalAveragePooling')),
        'GlobalAveragePooling takes maps',
        'set model.neck=None',
    ),
    'keys of Swin': Fault(
        'custom keys',
        'mmdet',
        setting(
            'optim_wrapper.paramwise_cfg',
            dict(custom_keys={'absolute_pos_embed': dict(decay_mult=0.0)}),
        ),
        "has 'absolute_pos_embed' in its name",
        'pos_embed',
    ),
    'a decay without a constructor': Fault(
        'layer decay',
        'mmseg',
        setting('optim_wrapper.paramwise_cfg', dict(layer_decay_rate=0.8)),
        'the default constructor ignores it',
        LAYER_DECAY,
    ),
    'a decay for ConvNeXt': Fault(
        'layer decay',
        'mmdet',
        several(
            setting('optim_wrapper.constructor', 'LearningRateDecayOptimizerConstructor'),
            setting(
                'optim_wrapper.paramwise_cfg',
                dict(decay_rate=0.8, decay_type='layer_wise', num_layers=12),
            ),
        ),
        'does not take this model',
        LAYER_DECAY,
    ),
    'a decay to nothing': Fault(
        'layer decay',
        'mmpretrain',
        several(
            setting('optim_wrapper.constructor', LAYER_DECAY),
            setting('optim_wrapper.paramwise_cfg', dict(layer_decay_rate=0.01)),
        ),
        'of the rate of the head',
        'a decay closer to 1',
    ),
    "SGD's rate": Fault(
        'learning rate',
        'mmdet',
        setting('optim_wrapper.optimizer.lr', 0.02),
        'at the rate 0.02',
        'set lr to 1e-4',
    ),
    'norms that decay with Muon': Fault(
        'weight decay',
        'mmpretrain',
        setting('optim_wrapper.optimizer', dict(type='vit_plugin.Muon', lr=1e-3, weight_decay=0.5)),
        'norms, positions or tokens',
        'norm_decay_mult=0.0',
    ),
    'norms that decay': Fault(
        'weight decay',
        'mmseg',
        setting('optim_wrapper.optimizer.weight_decay', 0.5),
        'norms, positions or tokens',
        'norm_decay_mult=0.0',
    ),
    'a warm-up without an end': Fault(
        'schedule',
        'mmdet',
        setting('param_scheduler.0.end', 500),
        'the warm-up takes 500 iterations, and the training 100',
        'end it after 5 iterations',
    ),
    'a name for classes': Fault(
        'classes',
        'mmdet',
        setting('train_dataloader.dataset.metainfo', dict(classes='cell')),
        "classes='cell' is a string",
        "classes=('cell',)",
    ),
    "COCO's head": Fault(
        'classes',
        'mmdet',
        setting('model.bbox_head.num_classes', 80),
        'num_classes=80 does not fit',
        'set it to 2',
    ),
    "COCO's validation": Fault(
        'classes',
        'mmseg',
        setting('val_dataloader.dataset.metainfo', dict(classes=('road', 'sky'))),
        'val_dataloader has other classes',
        'same metainfo',
    ),
    'a metric of other images': Fault(
        'validation',
        'mmdet',
        setting('val_evaluator.ann_file', 'elsewhere/train.json'),
        "'elsewhere/train.json', where",
        "ann_file='elsewhere/val.json'",
    ),
    'a misspelled name': Fault(
        'settings',
        'mmpretrain',
        setting('optim_wrapper.optimizer.type', 'AdmaW'),
        "there is no 'AdmaW'",
        'AdamW',
    ),
    'an argument of another ViT': Fault(
        'model', 'mmseg', setting(f'{VIT}.with_cp_blocks', 2), 'with_cp_blocks', ''
    ),
}


@pytest.mark.parametrize('name', FAULTS)
def test_planted_faults_are_reported_with_their_cures(name, folder):
    fault = FAULTS[name]
    pytest.importorskip(fault.framework)
    cfg = FRAMEWORKS[fault.framework](folder)
    fault.plant(cfg, folder)
    findings = findings_of(cfg)
    expected = [finding for finding in findings if finding.check == fault.check]
    assert expected, findings
    assert fault.found in expected[0].found
    assert fault.cure in str(expected[0])
    assert expected[0].symptom
    assert '\n' not in str(expected[0])


@pytest.mark.parametrize(
    ('skip', 'left_out'),
    [
        ([], []),
        (['blocks.0.mlp.fc1.{rest}'], ['mlp.fc1.weight', 'mlp.fc1.bias']),
    ],
)
def test_only_parts_of_the_encoder_in_the_file_count_as_left_out(skip, left_out, folder, tmp_path):
    """Skipping a head, or a block that the file lacks, is right."""
    cfg = classifier(folder)
    skip = ['head.{rest}', 'blocks.1.{rest}', *skip]
    weights = {
        f'backbone.{name}': value
        for name, value in torch.load(folder / 'gray.pth').items()
        if not name.startswith('blocks.1.')
    }
    torch.save(dict(weights, **{'head.layers.head.weight': torch.ones(10, 32)}), tmp_path / 'a.pth')
    cfg['model']['backbone']['init_cfg'] |= dict(checkpoint=str(tmp_path / 'a.pth'), skip=skip)
    findings = [finding.found for finding in findings_of(cfg) if finding.check == 'skip']
    assert len(findings) == bool(left_out)
    for found in findings:
        assert all(f'blocks.0.{name}' in found for name in left_out)
        assert 'head.layers' not in found


def test_every_check_and_framework_has_a_planted_fault():
    # The fault of 'batch' is in the data, not in a setting: see the next test.
    tested_checks = {fault.check for fault in FAULTS.values()} | {'batch'}
    assert tested_checks == {check.name for check in CHECKS}
    assert {fault.framework for fault in FAULTS.values()} == {*FRAMEWORKS}


def test_batches_of_one_class_are_reported(folder, monkeypatch):
    pytest.importorskip('mmpretrain')
    cfg = classifier(folder)
    cfg['train_dataloader']['sampler']['shuffle'] = False
    assert findings_of(cfg) == []  # the digits are mixed

    from vit_plugin.data import Digits

    # Sorted by class.
    monkeypatch.setattr(Digits, 'get_cat_ids', lambda self, i: [i * 10 // len(self)])
    (finding,) = findings_of(cfg)
    assert finding.check == 'batch'
    assert finding.cure == 'set sampler.shuffle=True'
    cfg['train_dataloader']['sampler']['shuffle'] = True
    assert findings_of(cfg) == []


def test_images_of_one_class_with_several_objects_are_no_other_class(folder, monkeypatch):
    pytest.importorskip('mmpretrain')
    cfg = classifier(folder)
    cfg['train_dataloader']['sampler']['shuffle'] = False
    from vit_plugin.data import Digits

    # A detector has a label for each object, here of one class; each third image has two objects.
    monkeypatch.setattr(Digits, 'get_cat_ids', lambda self, i: [0] if i % 3 else [0, 0])
    assert findings_of(cfg) == []


def test_weights_of_begin_from_are_named(folder):
    pytest.importorskip('mmdet')
    cfg = dict(detector(folder), begin_from=str(folder / 'whole.pth'))
    (finding,) = (finding for finding in findings_of(cfg) if finding.check == 'start')
    assert 'init_cfg and begin_from both name weights' in finding.found
    assert finding.found.endswith('are replaced by those of whole.pth')


def test_classes_may_be_named_in_a_file(folder, tmp_path):
    pytest.importorskip('mmdet')
    cfg, path = detector(folder), tmp_path / 'classes.txt'
    path.write_text('cell\nplatelet\n')
    for split in ('train', 'val'):
        cfg[f'{split}_dataloader']['dataset']['metainfo'] = dict(classes=str(path))
    assert findings_of(cfg) == []
    path.write_text('cell\n')
    (finding,) = findings_of(cfg)
    assert finding.check == 'classes'
    assert 'num_classes=2 does not fit' in finding.found


def test_a_section_may_be_a_switch(folder):
    pytest.importorskip('mmpretrain')
    assert findings_of(dict(classifier(folder), compile=True)) == []


def test_parts_that_cannot_be_built_end_no_other_check(folder):
    pytest.importorskip('mmpretrain')
    cfg = classifier(folder)
    cfg['train_dataloader']['sampler']['shuffel'] = True
    cfg['optim_wrapper']['optimizer'] = 'AdamW'
    found = {finding.check: finding.found for finding in findings_of(cfg)}
    assert 'shuffel' in found['settings']
    assert "optimizer='AdamW' is not a dict with settings" in found['layer decay']


def test_our_reader_reads_bgr_too(folder):
    pytest.importorskip('mmdet')
    cfg = detector(folder)
    cfg['train_dataloader']['dataset']['pipeline'][0]['type'] = 'vit_plugin.LoadImage'
    cfg['model']['data_preprocessor']['bgr_to_rgb'] = False
    (finding,) = (finding for finding in findings_of(cfg) if finding.check == 'channels')
    assert finding.found.startswith('LoadImage reads BGR')


def test_weights_that_a_constructor_rejects_are_reported(folder):
    pytest.importorskip('mmpretrain')
    cfg = classifier(folder)
    overwritten_stem(cfg, folder)
    cfg['model']['backbone'].pop('init_cfg')
    weights = torch.load(folder / 'lite.pth')
    torch.save({**weights, 'conv_stem.weight': torch.ones(1, 3, 3, 3)}, folder / 'lite.pth')
    (finding,) = (finding for finding in findings_of(cfg) if finding.check == 'weights')
    assert finding.found.startswith('model.backbone.patch_embed: ')


@pytest.fixture
def config(folder, tmp_path) -> Path:
    """A config file without faults."""
    path = tmp_path / 'stranger.py'
    path.write_text(Config(classifier(folder)).pretty_text)
    return path


def call(*words: str) -> int:
    """Run the command, and return its exit status."""
    try:
        return main(['doctor', *words])
    except SystemExit as end:
        print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else 1


def test_exit_status_is_1_with_findings(config, capsys):
    assert call(str(config)) == 0
    assert capsys.readouterr().out == f'{len(CHECKS)} checks found nothing.\n'
    option = ('--cfg-options', 'model.head.num_classes=1000')
    assert call(str(config), *option) == 1
    assert capsys.readouterr().out.startswith('classes: model.head.num_classes=1000 does not fit')
    assert call(str(config), '--json', *option) == 1
    (finding,) = json.loads(capsys.readouterr().out)
    assert finding.keys() == {'check', 'symptom', 'found', 'cure'}


def test_wrong_calls_exit_with_2(tmp_path, capsys):
    (tmp_path / 'wrong.py').write_text('model = dict(')
    for word in ('no/config.py', 'no/run', str(tmp_path / 'wrong.py'), str(tmp_path)):
        assert call(word) == 2, word
        assert capsys.readouterr().err.startswith('Error: ')
    assert call() == 2


def test_configs_of_run_folders_are_not_executed(config, tmp_path, capsys):
    run = tmp_path / 'run'
    run.mkdir()
    text = config.read_text()
    assert 'in_channels=32, num_classes=10' in text
    text = text.replace('in_channels=32, num_classes=10', 'in_channels=32, num_classes=7')
    (run / 'stranger.py').write_text(text + '\nraise SystemExit("it was run")\n')
    assert call(str(run)) == 1
    output = capsys.readouterr()
    assert output.out.startswith('classes: model.head.num_classes=7 does not fit')
    assert 'Not examined: the training data: its config is read as data' in output.err
    hostile = text.replace("type='AdamW'", "type='os.system'")
    assert hostile != text
    (run / 'stranger.py').write_text(hostile)
    assert call(str(run)) == 1
    assert 'Not examined: the optimizer' in capsys.readouterr().err
    (run / 'stranger.py').write_text(text.replace("'ImageClassifier'", "'os.system'"))
    assert call(str(run)) == 2
    assert "'os.system' as a part of a model" in capsys.readouterr().err


def recipe_marks(path: Path) -> list:
    slow = not path.stem.startswith((*QUICK, 'vit-mini', 'hybrid-vit-mini'))
    return [pytest.mark.nightly] if slow else []


@pytest.mark.parametrize(
    'path', [pytest.param(path, id=path.stem, marks=recipe_marks(path)) for path in CONFIGS]
)
def test_recipes_have_no_findings(path):
    pytest.importorskip(HOSTS[path.parent.name])
    assert [*map(str, diagnose(examine(str(path))))] == []


def test_docs_list_every_check_and_the_number_of_faults():
    page = Path('docs/doctor.md').read_text()
    rows = [f'| `{check.name}` | {check.looks_at} | {check.symptom} |' for check in CHECKS]
    assert [line for line in page.splitlines() if line.startswith('| `')] == rows
    assert f'plants {len(FAULTS) + 1} faults' in page  # FAULTS, and batches of one class
