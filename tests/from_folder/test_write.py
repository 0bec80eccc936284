"""From a folder of images to a config that is written, read and checked."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from extras import needs_mmdet, needs_mmseg
from foreign_data import (
    BOXES,
    createml,
    cvat_coco,
    labelme,
    roboflow_coco,
    roboflow_voc,
    ultralytics_yolo,
)
from image_folders import write_digits, write_masks, write_voc
from mmengine.dataset import pseudo_collate
from mmengine.registry import DATASETS, MODELS, init_default_scope
from rejection import rejects

from vit_plugin.config import apply_loader_defaults, read_config
from vit_plugin.config.runnable import check_config
from vit_plugin.from_folder.request import Request
from vit_plugin.from_folder.run_folder import release_if_failed
from vit_plugin.from_folder.write import recipe_class, write_config

ARCH = 'timm://test_vit'
# One writer of each annotation format; other writers are tried nightly.
QUICK = {ultralytics_yolo, roboflow_coco, roboflow_voc, labelme, createml}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def request_for(**arguments) -> Request:
    return Request(**dict(dict(data='digits', arch=ARCH), **arguments))


def test_patience_without_effect_is_reported(folder, capsys):
    write_digits(folder / 'digits', per_class=10)
    write_config(request_for(epochs=3, patience=3))
    assert (
        '--patience 3 ends nothing, since there are only 3 validations.' in capsys.readouterr().out
    )
    write_config(request_for(epochs=3, patience=2))
    assert '--patience' not in capsys.readouterr().out


def test_config_of_a_classifier_is_complete(folder, capsys):
    write_digits(folder / 'digits', per_class=10)
    path = write_config(request_for())
    assert path == Path('work_dirs/digits/config.py')
    assert (
        '3 classes. 27 images to train on, 3 images held out, a tenth of each class'
        in capsys.readouterr().out
    )
    cfg = read_config(path)
    check_config(cfg)
    assert cfg.work_dir == str(folder / 'work_dirs/digits')
    assert cfg.train_dataloader.dataset.data_prefix == str(folder / 'digits')
    assert cfg.train_dataloader.dataset.ann_file == str(folder / 'work_dirs/digits/train.txt')
    assert cfg.model.head.num_classes == cfg.data_preprocessor.num_classes == 3
    assert cfg.model.backbone.img_size == 64  # 8 pixels are fewer than 4 patches of 16
    assert cfg.train_dataloader.dataset.metainfo.classes == ['digit 0', 'digit 1', 'digit 2']
    assert cfg.train_dataloader.dataset.pipeline == cfg.train_pipeline
    assert cfg.test_dataloader == cfg.val_dataloader
    assert 'load_from' not in path.read_text()
    assert cfg.optim_wrapper.paramwise_cfg.layer_decay_rate == 1
    lists = {
        name: Path(f'work_dirs/digits/{name}.txt').read_text().splitlines()
        for name in ('train', 'val')
    }
    assert [len(lines) for lines in lists.values()] == [27, 3]
    assert lists['train'][0].startswith('digit 0/')
    assert all(Path('digits', line.rsplit(' ', 1)[0]).is_file() for line in lists['val'])
    text = path.read_text()
    assert max(map(len, text.splitlines())) <= 120
    assert write_config(request_for()).read_text() == text


def test_weights_give_settings_for_fine_tuning(folder):
    write_digits(folder / 'digits')
    torch.save({}, 'weights.pth')
    cfg = read_config(
        write_config(
            request_for(weights='weights.pth', epochs=3, batch_size=4, img_size=32, work_dir='w')
        )
    )
    assert cfg.load_from == str(folder / 'weights.pth')  # absolute, for any working directory
    assert (cfg.train_cfg.max_epochs, cfg.train_dataloader.batch_size) == (3, 4)
    assert cfg.model.backbone.img_size == 32
    assert 0 < cfg.optim_wrapper.paramwise_cfg.layer_decay_rate < 1
    # timm tests this model with the same steps.
    assert [step.type for step in cfg.test_pipeline[1:3]] == ['ResizeEdge', 'CenterCrop']
    assert (
        read_config(write_config(request_for(weights='weights.pth'))).model.backbone.img_size == 160
    )


def test_size_and_normalization_are_read_from_a_checkpoint(folder, capsys):
    write_digits(folder / 'digits')
    text = (
        'model = dict(backbone=dict(img_size=32))\ndata_preprocessor = dict(mean=[1., 2., 3.], '
        'std=[4., 5., 6.])\n'
    )
    torch.save(dict(meta=dict(cfg=text), state_dict={}), 'epoch_1.pth')
    cfg = read_config(write_config(request_for(arch='Ti/16', weights='epoch_1.pth')))
    assert cfg.model.backbone.img_size == cfg.train_pipeline[1].scale == 32
    assert (cfg.data_preprocessor.mean, cfg.data_preprocessor.std) == ([1, 2, 3], [4, 5, 6])
    assert 'do not say' not in capsys.readouterr().out
    torch.save({}, 'weights.pth')
    path = write_config(request_for(arch='Ti/16', weights='weights.pth', work_dir='other'))
    note = 'The weights do not say the mean and deviation and the size of their images'
    assert note in capsys.readouterr().out
    assert note in ' '.join(path.read_text().split())
    np.savez('authors.npz', bias=np.zeros(1))  # such files have the authors' preprocessing
    write_config(request_for(arch='Ti/16', weights='authors.npz', work_dir='third'))
    assert 'The weights do not say the size of their images' in capsys.readouterr().out


@pytest.mark.parametrize('name', ['back\\slash', 'a \\U b', '"""', "'''", 'one"'])
def test_any_folder_name_is_read_back(folder, name):
    write_digits(folder / name)
    cfg = read_config(write_config(request_for(data=name, work_dir='run')))
    assert cfg.train_dataloader.dataset.data_prefix == str(folder / name)


def test_earlier_runs_are_not_classes(folder):
    write_digits(folder)
    write_digits(folder / 'work_dirs/old')
    cfg = read_config(write_config(request_for(data='.', work_dir='work_dirs/new')))
    assert cfg.classes == ['digit 0', 'digit 1', 'digit 2']


def test_changed_config_in_the_work_directory_is_kept(folder, capsys):
    """Naming its folder raises; without a name, the next free folder is used, each time."""
    write_digits(folder / 'digits')
    path = write_config(request_for())
    changed = path.read_text().replace('batch_size=', 'batch_size=1 + ')
    path.write_text(changed)
    with rejects(r'another config\.py; continue with that one by vit-plugin train work_dirs'):
        write_config(request_for(work_dir='work_dirs/digits'))
    for _ in range(2):
        request = request_for()
        assert write_config(request) == Path(request.work_dir, 'config.py')
        assert request.work_dir == 'work_dirs/digits-2'
        assert 'work_dirs/digits holds another run or config' in capsys.readouterr().out
    assert path.read_text() == changed
    cfg = read_config('work_dirs/digits-2/config.py')
    assert cfg.train_dataloader.dataset.ann_file == str(folder / 'work_dirs/digits-2/train.txt')


def test_folder_of_a_failed_training_is_reused(folder):
    """Also with other flags, unless its config was changed by hand."""
    write_digits(folder / 'digits')
    first = write_config(request_for())
    with pytest.raises(OSError, match='no network'), release_if_failed(first.parent):
        raise OSError('no network')
    assert write_config(request_for(epochs=7)) == first
    assert write_config(request_for(epochs=8)) != first  # that training has not ended
    with release_if_failed(first.parent, at_end=True):
        pass
    assert write_config(request_for(epochs=9, work_dir='work_dirs/digits')) == first
    with release_if_failed(first.parent, at_end=True):
        pass
    first.write_text(first.read_text() + 'log_level = "ERROR"\n')
    assert write_config(request_for(epochs=10)) != first


def test_few_validation_images_save_no_best_checkpoint(folder, capsys):
    for per_class, save_best in ((30, None), (170, 'auto')):
        data = str(write_digits(folder / f'digits{per_class}', per_class))
        cfg = read_config(str(write_config(request_for(data=data))))
        assert cfg.default_hooks.checkpoint.save_best == save_best
        note = 'cannot tell the best epoch: the last weights are the result.'
        assert (note in capsys.readouterr().out) == (save_best is None)


def test_work_dir_has_the_name_of_a_link(folder):
    (folder / 'dataset_v2_final').mkdir()
    (folder / 'cats').symlink_to('dataset_v2_final')
    assert request_for(data='cats').work_dir == 'work_dirs/cats'
    assert request_for(data='cats/../cats/').work_dir == 'work_dirs/cats'
    assert request_for(data='.').work_dir == f'work_dirs/{folder.name}'


def test_each_attempt_gets_a_new_folder(folder):
    """With the same or other flags, also while the first one trains; --resume finds its folder."""
    write_digits(folder / 'digits')
    first = write_config(request_for())
    for name in ('.running.json', 'epoch_1.pth', 'best_accuracy_top1_epoch_1.pth'):
        first.with_name(name).write_text('')
        before = {path: path.stat().st_mtime_ns for path in first.parent.iterdir()}
        assert write_config(request_for()) == Path('work_dirs/digits-2/config.py')
        assert write_config(request_for(), resume=True) == first
        with rejects(r'holds a run of the same config; continue it with'):
            write_config(request_for(work_dir='work_dirs/digits'))
        assert before == {path: path.stat().st_mtime_ns for path in first.parent.iterdir()}
        first.with_name(name).unlink()
    first.with_name('epoch_1.pth').write_text('')
    longer = write_config(request_for(epochs=7))
    assert longer == Path('work_dirs/digits-3/config.py')  # the second was not trained
    longer.with_name('epoch_1.pth').write_text('')
    assert write_config(request_for(epochs=7), resume=True) == longer
    assert write_config(request_for(), resume=True) == first
    with rejects(r'--resume: the runs in work_dirs/digits, work_dirs/dig'):
        write_config(request_for(epochs=8), resume=True)


def test_config_does_not_depend_on_the_machine(folder, monkeypatch):
    """So the same command resumes on a machine with other cores, and after the folder was moved."""
    write_digits(folder / 'digits')
    path = write_config(request_for(work_dir='a'))
    assert 'num_workers=' not in path.read_text()
    monkeypatch.setattr('os.sched_getaffinity', lambda process: range(64))
    path.with_name('epoch_1.pth').write_text('')
    path.parent.rename('b')
    assert write_config(request_for(work_dir='b'), resume=True) == Path('b/config.py')
    cfg = read_config('b/config.py')
    assert cfg.work_dir == str(folder / 'b')
    assert cfg.train_dataloader.dataset.ann_file == str(folder / 'b/train.txt')
    apply_loader_defaults(cfg)
    assert (cfg.train_dataloader.num_workers, cfg.val_dataloader.persistent_workers) == (4, True)


@pytest.mark.parametrize('name', ["it's", 'a "b"'])
def test_folder_names_with_quotes_are_read_back(folder, name):
    write_digits(folder / 'digits')
    cfg = read_config(write_config(request_for(work_dir=name)))
    assert cfg.work_dir == str(folder / name)
    assert cfg.train_dataloader.dataset.ann_file == str(folder / name / 'train.txt')


@needs_mmdet
@pytest.mark.parametrize(
    ('arch', 'strides'),
    [
        (ARCH, [8, 16, 32]),
        pytest.param('R26+Ti/32', [8, 16, 32], marks=pytest.mark.nightly),
        pytest.param('R+Ti/16', [8, 16, 32], marks=pytest.mark.nightly),
        pytest.param('Ti/14', [7, 14, 28], marks=pytest.mark.nightly),
    ],
)
def test_detector_has_anchors_on_every_map(folder, arch, strides):
    write_voc(folder / 'cells')
    cfg = read_config(write_config(request_for(data='cells', task='detection', arch=arch)))
    check_config(cfg)
    assert cfg.train_dataloader.dataset.metainfo.classes == ['bar', 'square']
    init_default_scope('mmdet')
    model = MODELS.build(cfg.model)
    side = 8 * strides[1]
    with torch.no_grad():
        maps = model.extract_feat(torch.zeros(1, 3, side, side))
    assert [side // feature.shape[-1] for feature in maps] == strides
    assert list(model.bbox_head.prior_generator.strides) == [(stride, stride) for stride in strides]


@needs_mmdet
@pytest.mark.parametrize(
    'write',
    [
        pytest.param(
            writer, id=writer.__name__, marks=() if writer in QUICK else pytest.mark.nightly
        )
        for writer in BOXES
    ],
)
def test_every_format_of_boxes_becomes_our_annotation_files(folder, write):
    write(folder / 'shapes')
    cfg = read_config(write_config(request_for(data='shapes', task='detection', img_size=128)))
    check_config(cfg)
    assert cfg.train_pipeline[2].scale == (128, 96)
    init_default_scope('mmdet')
    import mmdet.datasets  # noqa: F401

    sizes = {}
    for split in ('train', 'val', 'test'):
        dataset = cfg[f'{split}_dataloader'].dataset
        assert Path(dataset.ann_file).parent == folder / 'work_dirs/shapes'
        if split != 'train':
            assert cfg[f'{split}_evaluator'].ann_file == dataset.ann_file
        built = DATASETS.build(dataset)
        sizes[split] = len(built)
        assert built.metainfo['classes'] == ['bar', 'square']
        assert len(built.get_data_info(0)['instances']) == 2
    has_splits = BOXES[write][1]
    assert sizes == (dict(train=6, val=2, test=2) if has_splits else dict(train=9, val=1, test=1))


def test_test_split_is_used_only_for_the_test(folder):
    for split, count in (('train', 10), ('val', 2), ('test', 3)):
        write_digits(folder / 'digits' / split, per_class=count)
    cfg = read_config(write_config(request_for()))
    check_config(cfg)
    files = [
        Path(cfg[f'{split}_dataloader'].dataset.ann_file) for split in ('train', 'val', 'test')
    ]
    assert [len(file.read_text().splitlines()) for file in files] == [30, 6, 9]


@pytest.mark.parametrize('kind', ['latin-1', 'several classes'])
def test_labels_that_lines_cannot_hold_are_in_json(folder, kind):
    write_digits(folder / 'digits', per_class=10)
    if kind == 'latin-1':
        os.rename(
            os.fsencode(folder / 'digits/digit 0'), os.fsencode(folder / 'digits') + b'/b\xe4r'
        )
    else:
        images = sorted((folder / 'digits').rglob('*.png'))
        rows = [f'{path.name[:3]}{i},{"a|b" if i % 2 else "b"}' for i, path in enumerate(images)]
        (folder / 'flat').mkdir()
        for path, row in zip(images, rows, strict=True):
            path.rename(folder / f'flat/{row.split(",")[0]}.png')
        shutil.rmtree(folder / 'digits')
        (folder / 'flat').rename(folder / 'digits')
        (folder / 'digits/labels.csv').write_text('\n'.join(['file,labels', *rows]))
    cfg = read_config(write_config(request_for()))
    check_config(cfg)
    init_default_scope('mmpretrain')
    import mmpretrain.datasets  # noqa: F401

    dataset = DATASETS.build(cfg.train_dataloader.dataset)
    assert dataset[0]['inputs'].shape == (3, 64, 64)
    assert (cfg.model.head.type == 'MultiLabelLinearClsHead') == (kind == 'several classes')


def test_files_left_out_are_in_a_report(folder, capsys):
    write_digits(folder / 'digits', per_class=10)
    (folder / 'digits/notes.docx').touch()
    (folder / 'digits/digit 1/broken.jpg').touch()
    write_config(request_for())
    shown = capsys.readouterr().out
    assert 'train  27      3        digit 0 (9)     digit 2 (9)' in shown
    assert 'All images have 8 x 8 pixels.' in shown
    assert '- files left out, .docx: 1, the first is notes.docx' in shown
    facts = json.loads(Path('work_dirs/digits/data_report.json').read_text())
    assert facts['parts']['train'] == dict(images=27, by_class={f'digit {i}': 9 for i in range(3)})
    assert [kind['count'] for kind in facts['findings']] == [1, 1]
    page = Path('work_dirs/digits/data_report.md').read_text()
    assert '| digit 2 | 9 | 1 |' in page
    assert 'broken.jpg' in page


@pytest.mark.nightly
def test_default_arch_is_a_small_hybrid(folder, capsys):
    # A missing folder of this name is filled with the digits of scikit-learn.
    cfg = read_config(write_config(Request('digits')))
    assert '1618 images to train on, 179 images held out' in capsys.readouterr().out
    check_config(cfg)
    assert len(list(Path('digits').glob('?/*.png'))) == 1797
    assert cfg.model.backbone.patch_embed.whitened
    assert (cfg.model.backbone.img_size, cfg.model.backbone.out_type) == (32, 'avg_featmap')
    write_digits(folder / 'large', size=150)
    cfg = read_config(write_config(Request('large', work_dir='large_run')))
    assert (cfg.model.backbone.patch_embed.channels, cfg.model.backbone.img_size) == (
        (16, 32, 64, 128),
        128,
    )
    assert 'Few photographs teach little from scratch' in ' '.join(
        Path('large_run/config.py').read_text().split()
    )


def test_short_trainings_augment_less(folder):
    write_digits(folder / 'digits', per_class=10)
    few, many = (
        read_config(write_config(Request('digits', epochs=epochs, work_dir=f'{epochs}')))
        for epochs in (3, 3000)
    )
    few_types, many_types = ([step.type for step in cfg.train_pipeline] for cfg in (few, many))
    assert ('RandAugment' in few_types, 'RandAugment' in many_types) == (False, True)
    assert ('train_cfg' in few.model, 'train_cfg' in many.model) == (False, True)


def test_model_is_read_from_a_checkpoint(folder):
    write_digits(folder / 'digits')
    first = write_config(Request('digits', no_flip=True))
    torch.save(dict(meta=dict(cfg=first.read_text()), state_dict={}), 'epoch_1.pth')
    cfg = read_config(write_config(Request('digits', weights='epoch_1.pth', work_dir='tuned')))
    assert cfg.model.backbone == read_config(first).model.backbone
    assert [
        any(step.type == 'RandomFlip' for step in read_config(path).train_pipeline)
        for path in (first, 'tuned/config.py')
    ] == [False, True]


@pytest.mark.parametrize(
    ('size', 'task', 'channels', 'blocks'),
    [
        (32, 'classification', (64, 128, 192), 2),
        (32, 'detection', (32, 64, 128), 2),
        (64, 'classification', (32, 64, 128), 2),
        (192, 'detection', (128, 256), 4),
        (192, 'segmentation', (32, 64, 128), 2),
    ],
)
def test_stem_of_the_small_hybrid_follows_from_the_images(size, task, channels, blocks):
    start = recipe_class(task)(Request('any', task)).start
    backbone = start.build_meta_backbone(size, img_size=size)
    assert backbone.num_layers == blocks
    assert tuple(backbone.patch_embed.feature_channels) == channels


@needs_mmdet
def test_small_hybrid_is_the_default_detector_backbone(folder):
    cfg = read_config(
        write_config(Request(write_voc(folder / 'boxes').name, task='detection', no_flip=True))
    )
    check_config(cfg)
    assert cfg.model.backbone.patch_embed.type == 'PooledResNetEmbed'
    assert all(step.type != 'RandomFlip' for step in cfg.train_pipeline)


@needs_mmdet
@pytest.mark.parametrize(
    ('arch', 'optimizer', 'rate'), [('', 'vit_plugin.Muon', 1.4e-3), (ARCH, 'AdamW', 3.5e-4)]
)
def test_only_small_hybrids_are_trained_with_muon(folder, arch, optimizer, rate):
    name = write_voc(folder / 'boxes').name
    cfg = read_config(write_config(Request(name, task='detection', arch=arch, batch_size=2)))
    assert cfg.optim_wrapper.optimizer.type == optimizer
    assert cfg.optim_wrapper.optimizer.lr == rate


@needs_mmdet
@pytest.mark.parametrize(
    ('model', 'rate', 'keys'),
    [('retinanet', 5e-4, dict(backbone=dict(lr_mult=0.1))), ('lw-detr', 5e-5, None)],
)
def test_pretrained_backbone_has_a_lower_rate(folder, model, rate, keys):
    name = write_voc(folder / 'boxes').name
    torch.save({}, 'weights.pth')
    request = Request(name, task='detection', model=model, arch=ARCH, weights='weights.pth')
    wrapper = read_config(write_config(request)).optim_wrapper
    assert (wrapper.optimizer.lr, wrapper.paramwise_cfg.get('custom_keys')) == (rate, keys)


@needs_mmdet
@pytest.mark.parametrize(('epochs', 'varied'), [(3, False), (30, True)])
def test_long_trainings_vary_the_scale(folder, epochs, varied):
    cfg = read_config(
        write_config(Request(write_voc(folder / 'boxes').name, task='detection', epochs=epochs))
    )
    check_config(cfg)
    assert ('RandomResize' in [step.type for step in cfg.train_pipeline]) == varied
    assert cfg.test_pipeline[1].type == 'Resize'


def test_balance_and_patience_are_in_the_config(folder):
    write_digits(folder / 'digits', per_class=10)
    cfg = read_config(write_config(Request('digits', balance=True, patience=3)))
    check_config(cfg)
    assert cfg.train_dataloader.dataset.type == 'ClassBalancedDataset'
    assert cfg.train_dataloader.dataset.dataset.pipeline == cfg.train_pipeline
    assert cfg.default_hooks.early_stopping.patience == 3
    text = Path('work_dirs/digits/config.py').read_text()
    assert '--balance --patience 3 ' in text
    assert 'an epoch may have more steps' in ' '.join(text.split())


@needs_mmdet
@pytest.mark.filterwarnings('ignore:__array__ implementation:DeprecationWarning')  # of MMDetection
@pytest.mark.parametrize('arch', ['', pytest.param(ARCH, marks=pytest.mark.nightly)])
def test_instance_segmentation_has_a_finite_mask_loss(folder, arch):
    cvat_coco(folder / 'shapes')
    cfg = read_config(write_config(Request('shapes', task='instance', arch=arch, epochs=1)))
    check_config(cfg)
    init_default_scope('mmdet')
    import mmdet.datasets
    import mmdet.models  # noqa: F401

    dataset = DATASETS.build(cfg.train_dataloader.dataset)
    model = MODELS.build(cfg.model)
    losses = model(
        **model.data_preprocessor(pseudo_collate([dataset[0], dataset[1]]), True), mode='loss'
    )
    assert losses['loss_mask'].isfinite()


@needs_mmseg
@pytest.mark.parametrize(
    ('arch', 'out_type'),
    [('', 'pyramid'), pytest.param(ARCH, 'featmap', marks=pytest.mark.nightly)],
)
def test_segmentor_config_builds(folder, arch, out_type):
    write_masks(folder / 'scenes')
    cfg = read_config(write_config(Request('scenes', task='segmentation', arch=arch, epochs=1)))
    check_config(cfg)
    assert cfg.model.backbone.out_type == out_type
    assert cfg.model.decode_head.num_classes == 3
    init_default_scope('mmseg')
    model = MODELS.build(cfg.model)
    assert model.decode_head(model.backbone(torch.zeros(2, 3, 64, 64))).shape[:2] == (2, 3)
