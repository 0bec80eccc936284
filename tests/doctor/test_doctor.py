"""Faults that are planted in configs of the frameworks, each of which is named with its cure."""

import json
import sys
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
import torch
from mmengine.config import Config
from test_configs import CONFIGS, HOSTS, QUICK
from tiny_models import TINY, randomize

from vit_plugin.__main__ import main
from vit_plugin.doctor import CHECKS, Examined, diagnose, examine
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
    np.savez(folder / 'authors.npz', **FORMATS['jax'].export(plain.state_dict(), 2)[0])
    return folder


def backbone(folder: Path, **changes) -> dict:
    return dict(
        type='vit_plugin.VisionTransformer',
        arch=dict(TINY),
        init_cfg=dict(type='Pretrained', checkpoint=str(folder / 'vit.pth')),
        **deepcopy({**DEFAULTS, **changes}),
    )


def rates(**changes) -> dict:
    return dict(
        optim_wrapper=dict(
            type='OptimWrapper',
            optimizer=dict(type='AdamW', lr=1e-4, weight_decay=0.05),
            **changes,
        ),
        param_scheduler=[dict(type='LinearLR', start_factor=0.001, by_epoch=False, end=5)],
        train_cfg=dict(by_epoch=False, max_iters=100, val_interval=10),
        val_cfg=dict(),
    )


def loaders(dataset: dict, **of_training) -> dict:
    def loader(split: str, **more) -> dict:
        ours = dict(deepcopy(dataset), **more)
        if 'ann_file' in dataset:
            ours['ann_file'] = f'{split}.json'
        shuffle = split == 'train'
        return dict(
            batch_size=2,
            num_workers=0,
            sampler=dict(type='DefaultSampler', shuffle=shuffle),
            dataset=ours,
        )

    return dict(train_dataloader=dict(loader('train', **of_training)), val_dataloader=loader('val'))


def classifier(folder: Path) -> dict:
    """Of MMPretrain, on the digits, whose data are here."""
    steps = [dict(type='PackInputs')]
    torch.save(
        randomize(
            VisionTransformer(TINY, patch_embed=dict(in_channels=1), **DEFAULTS)
        ).state_dict(),
        folder / 'gray.pth',
    )
    found = dict(
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
        **rates(),
        val_evaluator=dict(type='Accuracy', topk=(1,)),
    )
    found['val_dataloader']['dataset']['split'] = 'val'
    return found


def detector(folder: Path) -> dict:
    """Of MMDetection, as somebody writes who knows its RetinaNet; its images are elsewhere."""
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
        **rates(),
        val_evaluator=dict(type='CocoMetric', ann_file='elsewhere/val.json', metric='bbox'),
    )


def segmentor(folder: Path) -> dict:
    """Of MMSegmentation, with UPerNet on four maps; its images are elsewhere."""
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
            backbone=backbone(folder, out_indices=(0, 0, 1, 1)[1::2]),
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
        **rates(),
        val_evaluator=dict(type='IoUMetric', iou_metrics=['mIoU']),
    )


FRAMEWORKS = dict(mmpretrain=classifier, mmdet=detector, mmseg=segmentor)


def found_in(cfg: dict) -> list:
    return [*diagnose(Examined(Config(cfg)))]


@pytest.mark.parametrize('framework', FRAMEWORKS)
def test_a_config_without_faults_raises_none(framework, folder):
    pytest.importorskip(framework)
    examined = Examined(Config(FRAMEWORKS[framework](folder)))
    assert [*diagnose(examined)] == []
    assert examined.initialized is not None  # its weights were read
    assert not [what for what in examined.unseen if 'weights' in what]


def sets(place: str, value: object):
    """A fault that is one setting."""

    def plant(cfg: dict, folder: Path) -> None:
        *path, last = place.split('.')
        for name in path:
            cfg = cfg[int(name)] if isinstance(cfg, list) else cfg.setdefault(name, {})
        cfg[last] = str(folder / value.name) if isinstance(value, Path) else value

    return plant


def several(*faults):
    def plant(cfg: dict, folder: Path) -> None:
        for fault in faults:
            fault(cfg, folder)

    return plant


def overwritten_stem(cfg: dict, folder: Path) -> None:
    """timm's own file for the stem, and an initialization of MMEngine's after it."""
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
WITHOUT_SCALE = dict(place=f'{VIT}.encoder', value=dict(layer_scale_init_value=0.1))
# The check -> framework, fault, words of what is found, words of the cure.
FAULTS = {
    'a file that is not there': (
        *('weights', 'mmdet', sets(f'{VIT}.init_cfg.checkpoint', 'no/vit.pth')),
        *("'no/vit.pth'", ''),
    ),
    'names of another library': (
        *('weights', 'mmseg', sets(f'{VIT}.init_cfg.checkpoint', Path('other.pth'))),
        *('other.pth', ''),
    ),
    'weights of a backbone as load_from': (
        'weights',
        'mmdet',
        several(sets(f'{VIT}.init_cfg', None), sets('load_from', Path('vit.pth'))),
        *('vit.pth has no name of a parameter of the model', 'init_cfg=dict('),
    ),
    'a stem that is initialized again': (
        *('weights', 'mmpretrain', overwritten_stem),
        *('lite.pth are random', 'leave out model.backbone.init_cfg'),
    ),
    'two beginnings': (
        *('start', 'mmdet', sets('load_from', Path('whole.pth'))),
        *('tensors of vit.pth are replaced by those of whole.pth', 'leave one of them out'),
    ),
    'LayerScale left out': (
        'skip',
        'mmseg',
        sets(f'{VIT}.init_cfg.skip', SKIP),
        *('another LayerScale', 'leave out skip'),
    ),
    'no last norm': (
        'last norm',
        'mmseg',
        several(
            sets(f'{VIT}.encoder.final_norm', False),
            sets('model.neck', None),
            sets(
                'model.decode_head',
                dict(type='FCNHead', in_channels=32, channels=16, num_classes=2),
            ),
        ),
        *('final_norm=False', 'leave out final_norm'),
    ),
    'another GELU': (
        'numerics',
        'mmseg',
        several(
            sets(f'{VIT}.init_cfg.checkpoint', Path('authors.npz')), sets(f'{VIT}.encoder', {})
        ),
        *('the weights are of code with', 'set numerics='),
    ),
    'a frozen backbone without weights': (
        'frozen',
        'mmpretrain',
        several(sets(f'{VIT}.init_cfg', None), sets(f'{VIT}.frozen_stages', 2)),
        *('are frozen and have random values', 'name their weights'),
    ),
    'no pixel mean': (
        'pixels',
        'mmdet',
        several(
            sets('model.data_preprocessor.mean', None), sets('model.data_preprocessor.std', None)
        ),
        *('no mean and std', 'give data_preprocessor'),
    ),
    'a mean from 0 to 1': (
        'pixels',
        'mmseg',
        several(
            sets('model.data_preprocessor.mean', [0.485, 0.456, 0.406]),
            sets('model.data_preprocessor.std', [0.229, 0.224, 0.225]),
        ),
        *('values from 0 to 1', 'multiply them by 255'),
    ),
    'normalized twice': (
        'pixels',
        'mmdet',
        lambda cfg, folder: cfg['train_dataloader']['dataset']['pipeline'].insert(
            3, dict(type='mmcv.Normalize', mean=MEAN, std=STD)
        ),
        *('normalized twice', 'leave Normalize out'),
    ),
    'blue before red': (
        *('channels', 'mmdet', sets('model.data_preprocessor.bgr_to_rgb', False)),
        *('reads BGR', 'data_preprocessor.bgr_to_rgb=True'),
    ),
    'a table for small images': (
        'positions',
        'mmdet',
        sets('train_dataloader.dataset.pipeline.2.scale', (1333, 800)),
        *('images of about 800 pixels', 'img_size=800'),
    ),
    'strides of a ResNet': (
        'maps',
        'mmdet',
        sets('model.bbox_head.anchor_generator.strides', [8, 16, 32, 64, 128]),
        *('anchor_generator.strides', 'set it to [2, 4, 8, 16, 32]'),
    ),
    'channels of a ResNet': (
        *('maps', 'mmseg', sets('model.neck.in_channels', [256, 512])),
        *('model.neck.in_channels', 'set it to [32, 32]'),
    ),
    'one resolution': (
        'one resolution',
        'mmseg',
        several(sets('model.neck', None), sets('model.decode_head.in_channels', [32, 32])),
        *('takes a pyramid, and its 2 maps all have the stride 8', 'SimpleFPN'),
    ),
    'pooling of a ResNet': (
        *('maps', 'mmpretrain', sets('model.neck', dict(type='GlobalAveragePooling'))),
        *('GlobalAveragePooling takes maps', 'set model.neck=None'),
    ),
    'keys of Swin': (
        'custom keys',
        'mmdet',
        sets(
            'optim_wrapper.paramwise_cfg',
            dict(custom_keys={'absolute_pos_embed': dict(decay_mult=0.0)}),
        ),
        *("has 'absolute_pos_embed' in its name", 'pos_embed'),
    ),
    'a decay that nothing reads': (
        'layer decay',
        'mmseg',
        sets('optim_wrapper.paramwise_cfg', dict(layer_decay_rate=0.8)),
        *('is read by no constructor', LAYER_DECAY),
    ),
    'a decay for ConvNeXt': (
        'layer decay',
        'mmdet',
        several(
            sets('optim_wrapper.constructor', 'LearningRateDecayOptimizerConstructor'),
            sets(
                'optim_wrapper.paramwise_cfg',
                dict(decay_rate=0.8, decay_type='layer_wise', num_layers=12),
            ),
        ),
        *('does not take this model', LAYER_DECAY),
    ),
    'a decay to nothing': (
        'layer decay',
        'mmpretrain',
        several(
            sets('optim_wrapper.constructor', LAYER_DECAY),
            sets('optim_wrapper.paramwise_cfg', dict(layer_decay_rate=0.01)),
        ),
        *('of the rate of the head', 'a decay nearer to 1'),
    ),
    "SGD's rate": (
        *('learning rate', 'mmdet', sets('optim_wrapper.optimizer.lr', 0.02)),
        *('at the rate 0.02', 'set lr to 1e-4'),
    ),
    'norms that decay': (
        *('weight decay', 'mmseg', sets('optim_wrapper.optimizer.weight_decay', 0.5)),
        *('norms, positions or tokens', 'norm_decay_mult=0.0'),
    ),
    'a warm-up without an end': (
        *('schedule', 'mmdet', sets('param_scheduler.0.end', 500)),
        *('the warm-up takes 500 iterations, and the training 100', 'end it after 5 iterations'),
    ),
    'a name for classes': (
        'classes',
        'mmdet',
        sets('train_dataloader.dataset.metainfo', dict(classes='cell')),
        *("classes='cell' is a string", "classes=('cell',)"),
    ),
    "COCO's head": (
        *('classes', 'mmdet', sets('model.bbox_head.num_classes', 80)),
        *('num_classes=80 does not fit', 'set it to 2'),
    ),
    "COCO's validation": (
        'classes',
        'mmseg',
        sets('val_dataloader.dataset.metainfo', dict(classes=('road', 'sky'))),
        *('val_dataloader has other classes', 'same metainfo'),
    ),
    'a metric of other images': (
        *('validation', 'mmdet', sets('val_evaluator.ann_file', 'elsewhere/train.json')),
        *("'elsewhere/train.json', where", "ann_file='elsewhere/val.json'"),
    ),
    'a name that is none': (
        *('settings', 'mmpretrain', sets('optim_wrapper.optimizer.type', 'AdmaW')),
        *("there is no 'AdmaW'", 'AdamW'),
    ),
    'an argument of another ViT': (
        *('model', 'mmseg', sets(f'{VIT}.with_cp_blocks', 2)),
        *('with_cp_blocks', ''),
    ),
}


@pytest.mark.parametrize('name', FAULTS)
def test_a_planted_fault_is_named_with_its_cure(name, folder):
    check, framework, plant, found, cure = FAULTS[name]
    pytest.importorskip(framework)
    cfg = FRAMEWORKS[framework](folder)
    plant(cfg, folder)
    findings = found_in(cfg)
    mine = [one for one in findings if one.check == check]
    assert mine, findings
    assert found in mine[0].found
    assert cure in str(mine[0])
    assert mine[0].symptom
    assert '\n' not in str(mine[0])


def test_faults_are_planted_for_every_check_and_framework():
    assert {check for check, *_ in FAULTS.values()} | {'batch'} == {one.name for one in CHECKS}
    assert {framework for _, framework, *_ in FAULTS.values()} == {*FRAMEWORKS}


def test_batches_of_one_class_are_named(folder, monkeypatch):
    pytest.importorskip('mmpretrain')
    cfg = classifier(folder)
    cfg['train_dataloader']['sampler']['shuffle'] = False
    assert found_in(cfg) == []  # the digits are mixed

    from vit_plugin.data import Digits

    labels = Digits.get_cat_ids
    monkeypatch.setattr(Digits, 'get_cat_ids', lambda self, i: [i * 10 // len(self)])
    assert labels is not Digits.get_cat_ids
    (finding,) = found_in(cfg)
    assert finding.check == 'batch'
    assert finding.cure == 'set sampler.shuffle=True'
    cfg['train_dataloader']['sampler']['shuffle'] = True
    assert found_in(cfg) == []


@pytest.fixture
def config(folder, tmp_path) -> Path:
    """A config that a stranger wrote, as a file."""
    path = tmp_path / 'stranger.py'
    path.write_text(Config(classifier(folder)).pretty_text)
    return path


def call(*words: str) -> int:
    try:
        return main(['doctor', *words])
    except SystemExit as end:
        print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else 1


def test_a_status_says_whether_there_is_a_finding(config, capsys):
    assert call(str(config)) == 0
    assert capsys.readouterr().out == f'{len(CHECKS)} checks found nothing.\n'
    option = ('--cfg-options', 'model.head.num_classes=1000')
    assert call(str(config), *option) == 1
    assert capsys.readouterr().out.startswith('classes: model.head.num_classes=1000 does not fit')
    assert call(str(config), '--json', *option) == 1
    (finding,) = json.loads(capsys.readouterr().out)
    assert finding.keys() == {'check', 'symptom', 'found', 'cure'}


def test_a_wrong_call_has_another_status(tmp_path, capsys):
    (tmp_path / 'wrong.py').write_text('model = dict(')
    for word in ('no/config.py', 'no/run', str(tmp_path / 'wrong.py'), str(tmp_path)):
        assert call(word) == 2, word
        assert capsys.readouterr().err.startswith('Error: ')
    assert call() == 2


def test_the_folder_of_a_run_is_data(config, tmp_path, capsys):
    run = tmp_path / 'run'
    run.mkdir()
    text = config.read_text()
    assert 'in_channels=32, num_classes=10' in text
    text = text.replace('in_channels=32, num_classes=10', 'in_channels=32, num_classes=7')
    (run / 'stranger.py').write_text(text + '\nraise SystemExit("it was run")\n')
    assert call(str(run)) == 1
    said = capsys.readouterr()
    assert said.out.startswith('classes: model.head.num_classes=7 does not fit')
    assert 'Not examined: the training data: its config is read as data' in said.err
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
def test_our_own_recipes_raise_none(path):
    pytest.importorskip(HOSTS[path.parent.name])
    assert [*map(str, diagnose(examine(str(path))))] == []


def test_the_page_lists_every_check_and_the_number_of_faults():
    page = Path('docs/doctor.md').read_text()
    rows = [f'| `{one.name}` | {one.looks_at} | {one.symptom} |' for one in CHECKS]
    assert [line for line in page.splitlines() if line.startswith('| `')] == rows
    assert f'plants {len(FAULTS) + 1} faults' in page
