"""A config from a checkpoint names registered parts of the right kind, and nothing else."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from vit_plugin.errors import ConfigError
from vit_plugin.untrusted.admission import admit
from vit_plugin.untrusted.closed import REMEDY

pytest.importorskip('mmpretrain')
pytestmark = pytest.mark.filterwarnings('ignore')  # of the frameworks' imports
CONFIG: dict[str, Any] = dict(
    default_scope='mmpretrain',
    default_hooks=dict(x=dict(type='os.system')),
    work_dir='/x',
    load_from='x.pth',
    model=dict(
        type='ImageClassifier',
        init_cfg=dict(type='Pretrained', checkpoint='x.pth'),
        backbone=dict(
            type='vit_plugin.VisionTransformer', arch='R50+B/16', pos_embed=dict(type='learned')
        ),
        head=dict(
            type='LinearClsHead', num_classes=2, in_channels=32, loss=dict(type='CrossEntropyLoss')
        ),
    ),
    test_dataloader=dict(
        num_workers=2,
        dataset=dict(
            type='CustomDataset',
            data_root='data/v1.0',
            ann_file='val.txt',
            metainfo=dict(classes=('crane (bird)', 'cat')),
            pipeline=[
                dict(type='LoadImageFromFile'),
                dict(type='Resize', scale=16),
                dict(type='PackInputs'),
            ],
        ),
    ),
    test_evaluator=[dict(type='Accuracy')],
    custom_hooks=[dict(type='EMAHook'), dict(type='LoggerHook')],
)


def changed(place: str, value: Any) -> dict[str, Any]:
    cfg = deepcopy(CONFIG)
    *path, last = place.split('.')
    at: Any = cfg
    for name in path:
        at = at[int(name)] if isinstance(at, list) else at[name]
    at[int(last) if isinstance(at, list) else last] = value
    return cfg


def test_what_predicts_is_kept_and_the_rest_left_out():
    found = admit(CONFIG, 'x.pth')
    assert found.keys() == {'default_scope', 'model', 'test_dataloader'}
    assert 'init_cfg' not in found['model']
    assert found['model']['head'] == CONFIG['model']['head']
    data = CONFIG['test_dataloader']['dataset']
    kept = {key: data[key] for key in ('type', 'metainfo', 'pipeline')}
    assert found['test_dataloader'] == dict(dataset=kept)


def test_a_test_reads_its_data_and_its_averages():
    found = admit(CONFIG, 'x.pth', 'test')
    assert found['test_dataloader'] == CONFIG['test_dataloader']
    assert found['custom_hooks'] == [dict(type='EMAHook')]
    with pytest.raises(ConfigError, match='is not registered as a visualizer'):
        admit(changed('visualizer', dict(type='LocalVisBackend')), 'x.pth', 'test')


@pytest.mark.parametrize(
    ('place', 'value', 'words'),
    [
        ('model.type', 'os.system', "at model.type 'os.system' by its path"),
        (
            'model.neck',
            dict(type='mmpretrain.ImageRetrievalInferencer'),
            "Inferencer', which is not registered as a part",
        ),
        ('model.neck', dict(type='mmengine.fileio.load'), 'by its path'),
        (
            'model.neck',
            dict(type='GlobalAveragePooling', _scope_='local'),
            "at model.neck._scope_ the package 'local'",
        ),
        (
            'model.head.loss',
            dict(type='CIFAR10'),
            "'CIFAR10', which is not registered as a part of a model",
        ),
        ('model.head.loss', dict(type='Accuracy'), 'is not registered as a part of a model'),
        (
            'model.prototype',
            [dict(data=dict(type='BaseDataset'))],
            'at model.prototype.0.data.type',
        ),
        (
            'model.test_cfg',
            dict(nms=dict(type='exec("")')),
            'is not registered as a part of a model',
        ),
        ('model.warp_mode', '__import__("os")', 'could be code'),
        ('model.vocabulary', 'http://127.0.0.1/x.pkl', "the address 'http://127.0.0.1/x.pkl'"),
        (
            'test_dataloader.dataset.pipeline.0',
            dict(type='LinearClsHead'),
            'is not registered as a transform',
        ),
        ('test_dataloader.dataset.pipeline.0.decode_backend', 'pickle', 'is none of cv2, pillow'),
        (
            'test_dataloader.dataset.type',
            'subprocess.call',
            "at test_dataloader.dataset.type 'subprocess.call' by its",
        ),
        ('default_scope', 'local', "at default_scope the package 'local'"),
    ],
)
@pytest.mark.parametrize('use', ['predict', 'test'])
def test_everything_else_is_refused_with_its_place(place, value, words, use):
    with pytest.raises(ConfigError) as error:
        admit(changed(place, value), 'x.pth', use)
    assert words in str(error.value)
    assert str(error.value).startswith("The config in 'x.pth' names at ")
    assert str(error.value).endswith(f'; {REMEDY}.')


@pytest.mark.parametrize(
    'file',
    ['x.pkl', 'x.yaml', 'x.yml', 'x.py', 'x.PKL', 'http://127.0.0.1/x.json', 'val', 'x.unknown'],
)
def test_a_test_reads_only_formats_of_data(file):
    cfg = changed('test_dataloader.dataset.ann_file', file)
    with pytest.raises(
        ConfigError, match=r'at test_dataloader.dataset.ann_file the (file|address)'
    ):
        admit(cfg, 'x.pth', 'test')
    admit(cfg, 'x.pth')  # a prediction has nothing to do with it
    with pytest.raises(ConfigError, match=r'at test_evaluator.0.ann_file'):
        admit(changed('test_evaluator.0.ann_file', file), 'x.pth', 'test')


def test_no_module_is_imported_to_look_for_a_name(tmp_path, monkeypatch):
    for name in ('registry.py', '__init__.py'):
        Path(tmp_path, 'local').mkdir(exist_ok=True)
        Path(tmp_path, 'local', name).write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    monkeypatch.syspath_prepend(tmp_path)
    for place, value in (
        ('model.type', 'local.X'),
        ('model.type', 'local.registry'),
        ('default_scope', 'local'),
        ('model._scope_', 'local'),
    ):
        with pytest.raises(ConfigError, match=f'at {place} '):
            admit(changed(place, value), 'x.pth')
    # A word, which building looks for in the registries alone.
    admit(changed('model.type', 'local'), 'x.pth')
    assert not (tmp_path / 'ran').exists()
