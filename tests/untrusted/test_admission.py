"""A config from a checkpoint may name only what the table lists."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from mmengine.config import Config
from rejection import rejects

from vit_plugin.arguments import Signature, fits
from vit_plugin.arguments.encoder_options import EncoderOptions
from vit_plugin.errors import ConfigError
from vit_plugin.models.layers.rotary import RotaryOptions
from vit_plugin.registry import MODELS
from vit_plugin.untrusted import UNTRUSTED_REMEDY, validate_untrusted
from vit_plugin.untrusted.admission import _Admission, find_registered
from vit_plugin.untrusted.table import NOTHING, PATHS, PLACES

pytest.importorskip('mmpretrain')
pytestmark = pytest.mark.filterwarnings('ignore')  # of the frameworks' imports

# An admissible config, with settings that are never taken from a checkpoint: default_hooks,
# work_dir, load_from and init_cfg.
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
    """Set one value of a copy of CONFIG, by its dotted path."""
    cfg = deepcopy(CONFIG)
    *parents, last = place.split('.')
    container: Any = cfg
    for name in parents:
        container = container[int(name)] if isinstance(container, list) else container[name]
    container[int(last) if isinstance(container, list) else last] = value
    return cfg


def test_only_settings_for_prediction_are_kept():
    admitted = validate_untrusted(CONFIG, 'x.pth')
    assert admitted.keys() == {'default_scope', 'model', 'test_dataloader'}
    assert 'init_cfg' not in admitted['model']
    assert admitted['model']['head'] == CONFIG['model']['head']
    data = CONFIG['test_dataloader']['dataset']
    kept = {key: data[key] for key in ('type', 'metainfo', 'pipeline')}
    assert admitted['test_dataloader'] == dict(dataset=kept)


def test_train_cfg_of_a_model_becomes_none():
    """Detectors need the argument to be built, but not its content."""
    cfg = changed('model.train_cfg', dict(rcnn=dict(sampler=dict(type='os.system'))))
    assert validate_untrusted(cfg, 'x.pth')['model']['train_cfg'] is None


@pytest.mark.parametrize(
    'numerics', ['timm', dict(base='timm', norm_cfg=dict(eps=1e-5), act_cfg=dict(type='SiLU'))]
)
def test_numerics_are_kept_in_both_forms(numerics):
    """A name, and a dict as ``zoo --as-config`` prints it."""
    cfg = changed('model.backbone.numerics', numerics)
    assert validate_untrusted(cfg, 'x.pth')['model']['backbone']['numerics'] == numerics


def test_the_use_test_keeps_the_data_and_the_ema_hook():
    admitted = validate_untrusted(CONFIG, 'x.pth', 'test')
    assert admitted['test_dataloader'] == CONFIG['test_dataloader']
    assert admitted['custom_hooks'] == [dict(type='EMAHook')]
    with rejects("'LocalVisBackend' as a visualizer, which is not in"):
        validate_untrusted(changed('visualizer', dict(type='LocalVisBackend')), 'x.pth', 'test')


NECK, LOSS, DATASET = 'model.neck', 'model.head.loss', 'test_dataloader.dataset'
STEP = f'{DATASET}.pipeline.0'


@pytest.mark.parametrize(
    ('place', 'value', 'words'),
    [
        ('model.type', 'os.system', "at model.type 'os.system' as a part of a model"),
        ('model.type', ['os.system'], 'at model.type '),
        (NECK, dict(type='mmpretrain.ImageRetrievalInferencer'), 'as a part of a model'),
        (NECK, dict(type='mmengine.fileio.load'), 'as a part of a model'),
        (NECK, dict(type='HuggingFaceClassifier', model_name='x'), 'as a part of a model'),
        (NECK, dict(type='GlobalAveragePooling', _scope_='local'), "_scope_ the package 'local'"),
        (f'{LOSS}.type', 'CIFAR10', "'CIFAR10' as a part of a model"),
        (f'{LOSS}.type', 'Accuracy', "'Accuracy' as a part of a model"),
        (f'{LOSS}.class_weight', 'x.pkl', "at model.head.loss.class_weight 'x.pkl'"),
        ('model.backbone.padding_mode', 'local', "at model.backbone.padding_mode 'local'"),
        ('model.backbone.conv_type', 'local', "conv_type 'local' as a part of a model"),
        (f'{LOSS}.class_weight', b'x.pkl', "at model.head.loss.class_weight b'x.pkl'"),
        (f'{LOSS}.class_weight', {'x.pkl'}, 'at model.head.loss.class_weight {'),
        (f'{LOSS}.reduction', '/x.pkl', "at model.head.loss.reduction '/x.pkl'"),
        (f'{LOSS}.reduction', dict(class_weight='x'), 'at model.head.loss.reduction.class_weight'),
        ('model.backbone.act_cfg', dict(type='os.system'), "act_cfg.type 'os.system'"),
        ('model.backbone.arch', 'timm://hf-hub:me/x', "at model.backbone.arch 'timm://hf-hub"),
        ('model.prototype', [dict(data=dict(type='BaseDataset'))], 'model.prototype.0.data.type'),
        ('model.test_cfg', dict(nms=dict(type='exec("")')), 'as a part of a model'),
        ('model.warp_mode', '__import__("os")', 'at model.warp_mode '),
        ('model.vocabulary', 'http://127.0.0.1/x.pkl', 'at model.vocabulary '),
        (STEP, dict(type='LinearClsHead'), "'LinearClsHead' as a transform"),
        (STEP, dict(type='Albumentations', transforms=[]), "'Albumentations' as a transform"),
        (STEP, dict(type='torchvision/Lambda', lambd='x'), 'as a transform'),
        (f'{STEP}.resize_type', 'mmengine.load', "resize_type 'mmengine.load' as a transform"),
        (f'{STEP}.decode_backend', 'pickle', "decode_backend 'pickle'"),
        (f'{STEP}.backend_args', dict(backend='petrel'), "backend_args.backend 'petrel'"),
        (f'{DATASET}.type', 'subprocess.call', "at test_dataloader.dataset.type 'subprocess.call'"),
        (f'{DATASET}.metainfo.classes', '/any/file', "'/any/file' in place of a list of names"),
        (f'{DATASET}.metainfo.palette', '/any/file', 'at test_dataloader.dataset.metainfo.palette'),
        ('default_scope', 'local', "at default_scope the package 'local'"),
    ],
)
@pytest.mark.parametrize('use', ['predict', 'test'])
def test_names_outside_the_table_are_refused_with_their_place(place, value, words, use):
    with pytest.raises(ConfigError) as error:
        validate_untrusted(changed(place, value), 'x.pth', use)
    assert words in str(error.value)
    assert str(error.value).startswith("The config in 'x.pth' names at ")
    assert str(error.value).endswith(f'; {UNTRUSTED_REMEDY}.')


@pytest.mark.parametrize(
    ('place', 'value'),
    [
        (f'{DATASET}.ann_file', 'x.pkl'),
        (f'{DATASET}.ann_file', 'x.txt.yaml'),
        (f'{DATASET}.ann_file', 'http://127.0.0.1/x.json'),
        (f'{DATASET}.ann_file', '../x.txt'),
        (f'{DATASET}.ann_file', 0),
        (f'{DATASET}.data_prefix', '../other'),
        (f'{DATASET}.data_root', 's3://x'),
        (f'{DATASET}.data_root', r'\\host\share'),
        (f'{DATASET}.data_root', r'\??\UNC\host\share'),
        (f'{DATASET}.data_prefix', '//host/share'),
        (f'{DATASET}.ann_file', r'\\host\share\x.json'),
        (f'{DATASET}.img_suffix', '/../x'),
        (f'{DATASET}.proposal_file', 'x.json'),
        (f'{DATASET}.hierarchy_file', 'x.json'),
        (f'{DATASET}.download', True),
        (DATASET, dict(type='MNIST', data_root='x')),
        (DATASET, dict(type='CIFAR10', data_root='x')),
        (DATASET, dict(type='ConcatDataset', datasets=[dict(type='MNIST')])),
        (DATASET, dict(type='RepeatDataset', times=2, dataset=dict(type='CIFAR10'))),
        ('test_dataloader.multiprocessing_context', 'x'),
        ('test_dataloader.sampler', dict(type='DefaultSampler', seed='x')),
        ('test_evaluator.0.csv_dir', 'x'),
        ('test_evaluator.0.ann_file', 'x.pkl'),
        ('test_evaluator.0', dict(type='ShapeBiasMetric', csv_dir='x', dataset_name='x')),
        ('test_evaluator.0', dict(type='ReportVQA', file_path='x')),
        ('test_evaluator.0', dict(type='DumpResults', out_file_path='x.pkl')),
        ('test_cfg', dict(type='EpochBasedTrainLoop', max_epochs=1)),
        ('tta_model', dict(type='os.system')),
        ('tta_pipeline', [dict(type='TestTimeAug', transforms=[[dict(type='os.system')]])]),
        ('env_cfg', dict(dist_cfg=dict(init_method='file:///x'))),
        ('visualizer', dict(type='Visualizer', name='/x')),
        ('custom_hooks.0.ema_type', 'os.system'),
        ('lora', dict(targets=['/x'])),
    ],
)
def test_the_use_test_refuses_other_files_and_writers(place, value):
    named_place = place.removesuffix('.ann_file')  # some messages name the whole dataset
    with rejects(rf'names at {named_place}.* which is not in the table'):
        validate_untrusted(changed(place, value), 'x.pth', 'test')
    validate_untrusted(CONFIG, 'x.pth', 'test')  # without the change it is admitted


@pytest.mark.parametrize(
    ('place', 'value'),
    [
        ('custom_hooks', 5),
        ('test_dataloader', 5),
        ('test_dataloader', 'x'),
        ('model.head', {b'x': 1}),
        (f'{DATASET}.pipeline', 'x'),
    ],
)
def test_values_of_wrong_types_are_refused(place, value):
    with rejects(rf'names at {place}'):
        validate_untrusted(changed(place, value), 'x.pth', 'test')


def test_output_folders_of_metrics_are_left_out():
    metric = dict(type='Accuracy', collect_dir='x', topk=(1,))
    admitted = validate_untrusted(changed('test_evaluator.0', metric), 'x.pth', 'test')
    assert admitted['test_evaluator'] == [dict(type='Accuracy', topk=(1,))]


HOSTILE = ('/x.pkl', 'http://127.0.0.1/x.pkl', b'x.pkl', '__import__("os")', '../x.txt', 'x y')


@pytest.mark.parametrize('name', ['model', 'transform', 'dataset', 'metric', 'sampler', 'hook'])
def test_no_argument_of_a_registered_class_takes_files_addresses_or_code(name):
    """For MMPretrain's classes; benchmarks/hostile_configs.py covers all frameworks."""
    place = PLACES[name]
    refused = 0
    for registry in place.registries:
        registry.children['mmpretrain'].import_from_location()
        for class_name, cls in registry.children['mmpretrain'].module_dict.items():
            for argument in Signature.of(cls).fields:
                for value in HOSTILE:
                    part = {'type': class_name, argument: value}
                    admission = _Admission('x.pth')
                    try:
                        part = admission.validate_section(part, place, NOTHING, name, 'mmpretrain')
                    except ConfigError:
                        refused += 1
                        continue
                    assert part.get(argument) is None or place.arguments[argument] in PATHS
                    assert '..' not in str(part) or argument == 'data_root'
                    assert '://' not in str(part)
                    assert not isinstance(part.get(argument), bytes)
    assert refused


def test_string_arguments_of_our_classes_are_in_the_table():
    place = PLACES['model']
    arguments, unused = place.arguments, f'{place.unused} {place.emptied}'.split()
    classes = [MODELS.get(name) for name in (*MODELS.module_dict, *MODELS.lazy_modules)]
    for cls in [*classes, EncoderOptions, RotaryOptions]:
        for argument, annotation in Signature.of(cls).fields.items():
            takes_words = "Literal['" in str(annotation) or fits(annotation, 'word')
            if takes_words and annotation is not Any:
                assert argument in {*arguments, *unused}, (cls.__name__, argument)


FRAMEWORK_CONFIGS = {
    'mmpretrain': (
        'convnext/convnext-tiny_32xb128_in1k',
        'resnet/resnet50_8xb32_in1k',
        'swin_transformer/swin-tiny_16xb64_in1k',
        'vision_transformer/vit-base-p16_64xb64_in1k-384px',
    ),
    'mmdet': (
        'deformable_detr/deformable-detr_r50_16xb2-50e_coco',
        'detr/detr_r50_8xb2-150e_coco',
        'dino/dino-4scale_r50_8xb2-12e_coco',
        'faster_rcnn/faster-rcnn_r50_fpn_1x_coco',
        'mask2former/mask2former_r50_8xb2-lsj-50e_coco-panoptic',
        'mask_rcnn/mask-rcnn_r50_fpn_1x_coco',
        'pascal_voc/retinanet_r50_fpn_1x_voc0712',
        'retinanet/retinanet_r50_fpn_1x_coco',
        'rtmdet/rtmdet_tiny_8xb32-300e_coco',
        'yolox/yolox_s_8xb8-300e_coco',
    ),
    'mmseg': (
        'deeplabv3plus/deeplabv3plus_r50-d8_4xb4-40k_voc12aug-512x512',
        'mask2former/mask2former_swin-t_8xb2-160k_ade20k-512x512',
        'segformer/segformer_mit-b0_8xb2-160k_ade20k-512x512',
        'swin/swin-tiny-patch4-window7-in1k-pre_upernet_8xb2-160k_ade20k-512x512',
    ),
}


@pytest.mark.nightly
@pytest.mark.parametrize(
    ('framework', 'name'),
    [(key, name) for key, names in FRAMEWORK_CONFIGS.items() for name in names],
)
def test_configs_of_the_frameworks_are_admitted(framework, name):
    package = pytest.importorskip(framework)
    import vit_plugin.detection  # noqa: F401

    file = Path(package.__file__).parent / '.mim/configs' / f'{name}.py'
    if not file.is_file():
        pytest.skip(f'{framework} was installed without its configs')
    cfg = Config.fromfile(file, import_custom_modules=False, format_python_code=False).to_dict()
    for use in ('predict', 'test', 'probe'):
        admitted = validate_untrusted(cfg, 'x.pth', use)
        assert admitted['model']['type'] == cfg['model']['type']
    assert admitted['test_evaluator']


def test_looking_up_names_imports_no_module(tmp_path, monkeypatch):
    for name in ('registry.py', '__init__.py'):
        Path(tmp_path, 'local').mkdir(exist_ok=True)
        Path(tmp_path, 'local', name).write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    monkeypatch.syspath_prepend(tmp_path)
    for place, value in (
        ('model.type', 'local'),
        ('model.type', 'local.X'),
        ('model.type', 'local.registry'),
        ('model.type', 'mmpretrain.local'),
        ('default_scope', 'local'),
        ('model._scope_', 'local'),
        (f'{STEP}.resize_type', 'local'),
    ):
        with rejects('names at '):
            validate_untrusted(changed(place, value), 'x.pth')
    assert not (tmp_path / 'ran').exists()


def test_lazily_registered_classes_are_found_without_an_import(monkeypatch):
    monkeypatch.setitem(MODELS.lazy_modules, 'Nowhere', 'vit_plugin.nowhere')
    found = find_registered(MODELS, 'vit_plugin.Nowhere', 'mmpretrain')
    assert found == ('vit_plugin.nowhere', 'Nowhere')
