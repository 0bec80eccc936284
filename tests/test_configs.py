"""Every recipe builds, agrees with the table of variants, and trains a step on small images."""

import re
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path

import mmcv
import numpy as np
import pages
import pytest
import torch
from extras import needs_mmdet
from mmengine.config import Config
from mmengine.logging import MessageHub
from mmengine.model import revert_sync_batchnorm
from mmengine.optim import build_optim_wrapper
from mmengine.registry import MODELS, init_default_scope
from model_states import assert_all_learn
from rejection import rejects
from tiny_models import TINY
from torch import Tensor, nn
from torch.nn.functional import softplus

from vit_plugin.arch import parse_arch
from vit_plugin.config import check_channels, read_config
from vit_plugin.config.scope import in_scope
from vit_plugin.deploy.deployed import deploy
from vit_plugin.deploy.export import export
from vit_plugin.untrusted import validate_untrusted

HOSTS = {  # folder of recipes -> the framework that runs them
    'vit': 'mmpretrain',
    'hybrid_vit': 'mmpretrain',
    'self_supervised': 'mmpretrain',
    'distillation': 'mmpretrain',
    'detection': 'mmdet',
    'segmentation': 'mmseg',
}
CONFIGS = sorted(path for path in Path('configs').glob('*/*.py') if path.parent.name != '_base_')
ADAPTER = 'vit_plugin.ViTAdapter'
# Parameters of DPT that published files have, although no forward uses them.
UNUSED = 'decode_head.fusion.0.unit1.'
VITS = tuple(
    f'vit_plugin.{name}' for name in ('VisionTransformer', 'IBOTViT', 'MAEViT', 'SimMIMViT')
)
COCO_IMAGES = 118000  # for training, as the schedules count them

# Smaller values for those settings that a recipe has: few layers, proposals and queries, and no
# mixed precision.
SMALL = {
    'model.data_preprocessor.pad_size_divisor': 32,
    'model.data_preprocessor.size': (64, 64),
    'model.encoder.num_layers': 1,
    'model.decoder.num_layers': 1,
    'model.train_cfg.rpn_proposal.max_per_img': 20,
    'model.num_queries': 20,
    'model.bbox_head.num_queries': 10,
    'model.decode_head.num_queries': 20,
    'model.decode_head.pixel_decoder.encoder.num_layers': 1,
    'model.decode_head.transformer_decoder.num_layers': 1,
    'model.dn_cfg.group_cfg.num_dn_queries': 10,
    'model.decode_head.num_classes': 150,  # as in segmentation_batch
    'model.auxiliary_head.num_classes': 150,
    'optim_wrapper.type': 'OptimWrapper',
}


# Parts of the names of dense recipes that cannot be exported, and of the errors that say why.
EXPORT_ERRORS = {
    'rcnn': 'steps that cannot be exported',
    'dino-4scale': 'steps that cannot be exported',
    '_r18': 'not one of vit_plugin',
    'mask2former': 'torch.export cannot trace this model',
}

# Dense and self-supervised recipes that take a step in each run of the tests, one of each kind; the
# others do so nightly.
QUICK = (
    'mask-rcnn_hybrid',
    'retinanet_hybrid-vit-d4',
    'vit-base-p16_linear',
    'dino_vit-d6',
    'dinov2_vit-d6',
    'mae_vit-d6',
    'mocov3_hybrid-vit-d2',
    'simmim',
)


def recipes(*folders: str, nightly: bool = False) -> pytest.MarkDecorator:
    """Parametrize a test by the recipes in some folders, or in all.

    A recipe is skipped if its framework, which has its base configs, is not installed. With
    ``nightly``, recipes that are not in ``QUICK`` run nightly.
    """

    def marks(path: Path) -> list[pytest.MarkDecorator]:
        host = HOSTS[path.parent.name]
        slow = nightly and not path.stem.startswith(QUICK)
        return [
            pytest.mark.skipif(not find_spec(host), reason=f'{host} is not installed'),
            *([pytest.mark.nightly] if slow else []),
        ]

    return pytest.mark.parametrize(
        'path',
        [
            pytest.param(path, id=path.stem, marks=marks(path))
            for path in CONFIGS
            if not folders or path.parent.name in folders
        ],
    )


@pytest.mark.parametrize(
    'path', [path for path in CONFIGS if '-20k_in1k' in path.stem], ids=lambda path: path.stem
)
def test_fine_tuning_starts_from_weights_of_the_same_variant(path):
    backbone = read_config(path).model.backbone
    # Such as R50+ViT-B_16, for the arch R50+B/16.
    file = backbone.init_cfg.checkpoint.rsplit('/', 1)[1].removesuffix('.npz').split('-i21k')[0]
    assert re.sub(r'ViT-|\W|_', '', file) == re.sub(r'\W', '', backbone.arch)


def test_every_folder_of_recipes_has_a_host():
    assert {path.parent.name for path in CONFIGS} == set(HOSTS)


@pytest.mark.parametrize(
    ('recipe', 'classes', 'parameters'),
    [
        ('vit-d24-w256-p4_1xb256-180e_cifar100-folder', 100, 12_862_820),
        ('vit-d6-w256-p4_1xb256-180e_cifar10-folder', 10, 3_328_778),
        # The published number was counted with CIFAR-100's 100 outputs.
        ('vit-d6-w256-p4_1xb256-180e_cifar10-folder', 100, 3_374_948),
    ],
)
def test_cifar_recipes_have_the_published_models(recipe, classes, parameters):
    cfg = read_config(f'configs/vit/{recipe}.py')
    assert cfg.model.head.num_classes == (100 if 'cifar100' in recipe else 10)
    cfg.model.head.num_classes = classes
    with torch.device('meta'), in_scope('mmpretrain'):
        model = MODELS.build(dict(cfg.model, data_preprocessor=None))
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters
    assert set(cfg.optim_wrapper) == {'type', 'optimizer'}  # so that all weights decay
    assert cfg.val_evaluator[1]['items'] == ('precision', 'recall', 'f1-score')
    assert cfg.val_evaluator[1].average == 'macro'


@pytest.mark.parametrize('path', CONFIGS, ids=lambda path: path.stem)
def test_docstring_names_the_command(path):
    assert str(path) in path.read_text().split('"""')[1]


@recipes('vit', 'hybrid_vit')
@pytest.mark.filterwarnings('ignore')
def test_classifier_trains_a_step(path):
    cfg = read_config(path)
    init_default_scope(cfg.default_scope)
    assert cfg.model.head.in_channels == parse_arch(cfg.model.backbone.arch).embed_dims
    assert cfg.model.head.num_classes == cfg.data_preprocessor.num_classes
    backbone = cfg.model.backbone
    if '_in' in path.stem:  # of ImageNet
        assert backbone.setdefault('img_size', 224) == (384 if '384px' in path.stem else 224)
        shrink(cfg)
    model = MODELS.build(dict(cfg.model, data_preprocessor=cfg.data_preprocessor)).train()
    head = model.head.layers.head.weight
    wrapper = build_optim_wrapper(model, cfg.optim_wrapper)
    side, channels = backbone.img_size, backbone.get('patch_embed', {}).get('in_channels', 3)
    batch = dict(
        inputs=[torch.randint(0, 256, (channels, side, side), dtype=torch.uint8)] * 2,
        data_samples=[sample(label) for label in (0, 1)],
    )
    expected = loss_of_zero_head(model.head).item()
    assert model.train_step(batch, wrapper)['loss'].item() == pytest.approx(expected, rel=1e-3)
    assert head.abs().max() > 0  # all weights of the head were zero before the step


@recipes('self_supervised', nightly=True)
@pytest.mark.filterwarnings('ignore')
def test_self_supervised_recipe_trains_a_step(path):
    cfg = read_config(path)
    init_default_scope(cfg.default_scope)
    MessageHub.get_current_instance().update_info('max_iters', 10)
    side = 32
    if '_in1k' in path.stem:
        side = 64
        shrink(cfg)
        if cfg.model.neck.type == 'MAEPretrainDecoder':
            cfg.model.neck.update(num_patches=16, decoder_depth=1)
    model = revert_sync_batchnorm(
        MODELS.build(dict(cfg.model, data_preprocessor=cfg.data_preprocessor))
    ).train()
    cfg.optim_wrapper.pop('loss_scale', None)
    wrapper = build_optim_wrapper(model, dict(cfg.optim_wrapper, type='OptimWrapper'))
    images = torch.randint(0, 256, (4, 3, side, side), dtype=torch.uint8)
    samples = [sample(i % 2) for i in range(4)]
    for data_sample in samples:
        stride = model.backbone.patch_embed.stride
        data_sample.set_field((torch.rand(side // stride, side // stride) < 0.5).long(), 'mask')
    has_views = any(
        step['type'] == 'MultiView' for step in cfg.train_dataloader.dataset.get('pipeline', ())
    )
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    batch = model.data_preprocessor(
        dict(inputs=[images] * 3 if has_views else images, data_samples=samples), True
    )
    loss, _ = model.parse_losses(model(**batch, mode='loss'))
    wrapper.backward(loss)
    untrained = {
        name
        for name, parameter in model.named_parameters()
        if parameter.requires_grad and parameter.grad is None
    }
    assert not untrained  # DDP fails on parameters without gradients
    wrapper.step()
    assert torch.isfinite(loss)
    assert any(
        not torch.equal(parameter, before[name]) for name, parameter in model.named_parameters()
    )


@recipes('distillation')
@pytest.mark.filterwarnings('ignore')
def test_distillation_recipe_trains_a_step(path):
    """With a tiny teacher: that of the recipe comes from another run or from a download."""
    cfg = read_config(path)
    init_default_scope(cfg.default_scope)
    arch = dict(TINY, num_layers=1)
    cfg.model.teacher = dict(
        type='ImageClassifier',
        backbone=dict(type='vit_plugin.VisionTransformer', arch=arch, img_size=32),
        head=dict(type='vit_plugin.ViTClsHead', num_classes=10, in_channels=32),
    )
    model = MODELS.build(dict(cfg.model, data_preprocessor=cfg.data_preprocessor)).train()
    wrapper = build_optim_wrapper(model, dict(cfg.optim_wrapper, type='OptimWrapper'))
    before = [parameter.detach().clone() for parameter in model.parameters()]
    batch = dict(
        inputs=torch.randint(0, 256, (4, 3, 32, 32), dtype=torch.uint8),
        data_samples=[sample(i % 2) for i in range(4)],
    )
    losses = model(**model.data_preprocessor(batch, True), mode='loss')
    assert {f'loss_{name}' for name in model.losses} <= losses.keys()
    wrapper.backward(model.parse_losses(losses)[0])
    assert_all_learn(model)
    wrapper.step()
    assert not all(map(torch.equal, before, model.parameters()))


@pytest.mark.parametrize(
    'path', sorted(Path('configs/_base_/datasets').glob('imagenet*px*.py')), ids=lambda p: p.stem
)
@pytest.mark.filterwarnings('ignore')
def test_imagenet_pipelines_give_the_named_size(path, tmp_path):
    from mmengine.dataset import Compose

    init_default_scope('mmpretrain')
    cfg = Config.fromfile(path)
    mmcv.imwrite(
        np.random.default_rng(0).integers(0, 256, (300, 400, 3), dtype=np.uint8),
        str(tmp_path / 'image.png'),
    )
    for loader in (cfg.train_dataloader, cfg.val_dataloader):
        if loader:
            packed = Compose(loader.dataset.pipeline)(
                dict(img_path=str(tmp_path / 'image.png'), gt_label=1)
            )
            assert packed['inputs'].shape == (3, *[int(re.search(r'_(\d+)px', path.stem)[1])] * 2)
            assert packed['data_samples'].gt_label == 1


@pytest.mark.filterwarnings('ignore')
def test_3augment_blurs_at_random_and_weighs_colors():
    from mmengine.dataset import Compose

    init_default_scope('mmpretrain')
    cfg = Config.fromfile('configs/_base_/datasets/imagenet_bs256_224px_3augment.py')
    steps = {step.type: step for step in cfg.train_dataloader.dataset.pipeline}
    gray, _, blur = (Compose(one).transforms[0] for one in steps['RandomChoice'].transforms)
    radii = [blur.random_magnitude() for _ in range(40)]
    assert 0.1 <= min(radii) < 1 < max(radii) <= 2
    blue = np.full((4, 4, 3), (255, 0, 0), np.uint8)
    assert gray(dict(img=blue))['img'].max() == 29


def loss_of_zero_head(head: nn.Module) -> Tensor:
    """The loss while all weights are zero: all logits are the bias, so labels do not matter."""
    classes, bias = head.num_classes, head.layers.head.bias[0]
    if getattr(head.loss_module, 'use_sigmoid', False):
        return head.loss_module.loss_weight * (classes * softplus(bias) - bias)
    return torch.tensor(float(classes)).log()


def sample(label: int):
    from mmpretrain.structures import DataSample

    return DataSample().set_gt_label(label)


@recipes('detection', 'segmentation')
@pytest.mark.filterwarnings('ignore')
def test_checkpoints_are_saved_at_least_as_often_as_validated(path):
    cfg = read_config(path)
    assert cfg.default_hooks.checkpoint.interval <= cfg.train_cfg.val_interval


@recipes('detection', 'segmentation', nightly=True)
@pytest.mark.filterwarnings('ignore')
def test_detector_or_segmentor_trains_a_step(path):
    train_a_step(read_config(path))


@pytest.mark.nightly
@recipes('detection', 'segmentation')
@pytest.mark.filterwarnings('ignore')
def test_detector_or_segmentor_exports_or_raises(path, tmp_path):
    pytest.importorskip('onnxscript')
    cfg = read_config(path)
    init_default_scope(cfg.default_scope)
    __import__(f'{cfg.default_scope}.models')
    shrink(cfg)
    model = revert_sync_batchnorm(MODELS.build(cfg.model)).eval()
    model.init_weights()
    if hasattr(model.backbone, 'queries'):
        model.backbone.queries.set_probs([0.0, 0.0])  # as after training
    if model.test_cfg.get('mode') == 'slide':
        with rejects("mode='slide' cuts an image into windows"):
            deploy(model)
        model.test_cfg.mode = 'whole'
    reason = next((reason for part, reason in EXPORT_ERRORS.items() if part in path.stem), None)
    with rejects(reason) if reason else nullcontext():
        for size in ((64, 64), (64, 96)):
            assert export(deploy(model), tmp_path / 'model.onnx', size) < 1e-4


@needs_mmdet
@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize(
    'block',
    [
        pytest.param(
            block.text,
            id=f'{block.line}',
            marks=[] if 'faster_rcnn' in block.text else [pytest.mark.nightly],
        )
        for block in pages.blocks('docs/detection.md', 'python')
        if '_base_ =' in block.text
    ],
)
def test_config_on_the_detection_page_trains_a_step(block, tmp_path):
    config = tmp_path / 'config.py'
    config.write_text(block)
    train_a_step(read_config(str(config)))


@pytest.mark.parametrize('other', ['dinov2', 'siglip2'])
@pytest.mark.parametrize(
    'path', [pytest.param(path, id=path.stem) for path in CONFIGS if 'dinov3-vit-b' in path.stem]
)
@pytest.mark.filterwarnings('ignore')
def test_changing_one_line_changes_the_backbone(path, other, tmp_path):
    pytest.importorskip(HOSTS[path.parent.name])
    before = path.read_text().replace("'../_base_/", f"'{Path('configs/_base_').resolve()}/")
    after = before.replace("/dinov3-vit-base-p16.py'", f"/{other}-vit-base-p16.py'")
    assert (
        sum(old != new for old, new in zip(before.splitlines(), after.splitlines(), strict=True))
        == 1
    )
    (tmp_path / 'recipe.py').write_text(after)
    cfg = read_config(str(tmp_path / 'recipe.py'))
    init_default_scope(cfg.default_scope)
    check_channels(cfg.model)
    assert other in cfg.model.backbone.arch.replace('siglip_512.v2', 'siglip2')
    with torch.device('meta'):
        model = MODELS.build(cfg.model)
    assert model.backbone.patch_embed.stride == 16
    assert model.backbone.init_cfg['checkpoint'] == cfg.model.backbone.arch
    assert (model.backbone.rope.num_layers, model.backbone.pos_embed is None) == (12, False)


def train_a_step(cfg: Config) -> None:
    """Train a shrunken dense model for one step.

    Only frozen parameters of the backbone get no gradient, and the loss is finite.
    """
    init_default_scope(cfg.default_scope)
    check_channels(cfg.model)
    shrink(cfg)
    model = revert_sync_batchnorm(MODELS.build(cfg.model)).train()
    model.init_weights()  # some parameters of DINO are uninitialized memory before
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    wrapper = build_optim_wrapper(model, cfg.optim_wrapper)
    batch = model.data_preprocessor(DENSE_BATCH[cfg.default_scope](), training=True)
    loss, _ = model.parse_losses(model(**batch, mode='loss'))
    wrapper.backward(loss)
    transformer, prefix = cfg.model.backbone, 'backbone.'
    if transformer.type == ADAPTER:
        transformer, prefix = transformer.backbone, 'backbone.backbone.'
    learned = [item for item in model.named_parameters() if UNUSED not in item[0]]
    untrained = {name for name, parameter in learned if parameter.grad is None}
    frozen = {name for name, parameter in learned if not parameter.requires_grad}
    assert untrained == frozen  # DDP fails on others without gradients
    assert all(name.startswith(prefix) for name in frozen)
    assert bool(frozen) == (transformer.get('frozen_stages', -1) > 0)
    wrapper.step()
    assert torch.isfinite(loss)
    changed = {
        name
        for name, parameter in model.named_parameters()
        if not torch.equal(parameter, before[name])
    }
    assert changed
    assert not changed & untrained


def shrink(cfg: Config) -> None:
    """Keep all widths, but cut the model to two blocks (or one for each output), a block in each
    stage of a CNN, and images of 64 pixels. No weights are loaded.
    """
    cfg.merge_from_dict(
        {key: value for key, value in SMALL.items() if has_setting(cfg, key.split('.'))}
    )
    backbone = cfg.model.backbone
    if backbone.type == ADAPTER:  # blocks after the last group are not built
        backbone.update(interactions=(0, 1, 2, 3))
        backbone.backbone.update(img_size=64, init_cfg=None)
    if backbone.type in ('vit_plugin.EoMT', 'vit_plugin.PMT'):
        backbone.update(
            arch='timm://vit_small_patch16_dinov3.lvd1689m',
            img_size=64,
            init_cfg=None,
            num_queries=20,
            num_blocks=2,
            **(dict(frozen_stages=12) if 'frozen_stages' in backbone else {}),
        )
    if backbone.type == 'vit_plugin.TimmBackbone':  # without the tag of pretrained weights
        backbone.update(model_name=backbone.model_name.partition('.')[0], init_cfg=None)
    if backbone.type not in VITS:
        return
    blocks = max(2, len(backbone.get('out_indices', ())))
    if str(backbone.arch).startswith('timm://'):
        backbone.update(
            img_size=64,
            init_cfg=None,
            out_indices=range(blocks) if 'out_indices' in backbone else 1,
        )
        return
    arch = parse_arch(backbone.arch)
    backbone.update(
        img_size=64, init_cfg=None, out_indices=range(blocks) if 'out_indices' in backbone else -1
    )
    backbone.arch = dict(
        embed_dims=arch.embed_dims,
        num_layers=blocks,
        num_heads=arch.num_heads,
        feedforward_channels=arch.feedforward_channels,
    )
    patch_embed = backbone.get('patch_embed', {})
    stem = patch_embed if 'type' in patch_embed else {**arch.patch_embed, **patch_embed}
    if stem.get('type') == 'ResNetEmbed':
        stem = dict(stem, stage_depths=[1] * len(stem['stage_depths']))
    backbone.patch_embed = stem
    if 'window' in backbone.get('encoder', {}):
        backbone.encoder.window.global_blocks = (1,)
    if 'frozen_stages' in backbone:
        backbone.frozen_stages = blocks


def has_setting(cfg: Config, keys: list[str]) -> bool:
    """Whether a config has a nested key."""
    for key in keys:
        if key not in cfg:
            return False
        cfg = cfg[key]
    return True


def detection_batch() -> dict:
    from mmdet.testing import demo_mm_inputs

    return demo_mm_inputs(2, [(3, 64, 64)] * 2, num_items=[2, 2], num_classes=3, with_mask=True)


def segmentation_batch() -> dict:
    from mmengine.structures import PixelData
    from mmseg.structures import SegDataSample

    images = torch.randint(0, 256, (2, 3, 64, 64), dtype=torch.uint8)
    labels = torch.randint(0, 150, (2, 1, 64, 64))
    samples = [
        SegDataSample(gt_sem_seg=PixelData(data=label), gt_depth_map=PixelData(data=0.1 * label))
        for label in labels
    ]
    return dict(inputs=list(images), data_samples=samples)


DENSE_BATCH = {'mmdet': detection_batch, 'mmseg': segmentation_batch}


@recipes()
@pytest.mark.filterwarnings('ignore')
def test_recipe_name_matches_batch_and_schedule(path):
    cfg = read_config(path)
    processes, batch = map(int, re.search(r'_(\d+)xb(\d+)', path.stem).groups())
    loop, total = cfg.train_cfg, processes * batch
    assert cfg.train_dataloader.batch_size == batch
    assert cfg.auto_scale_lr.base_batch_size == total
    if epochs := re.search(r'-(\d+)(e|x)_', path.stem):  # epochs, or schedules of 12 epochs
        expected = int(epochs[1]) * {'e': 1, 'x': 12}[epochs[2]]
        assert expected == (loop.get('max_epochs') or round(loop.max_iters * total / COCO_IMAGES))
    if steps := re.search(r'-(\d+)k_', path.stem):
        assert loop.max_iters == 1000 * int(steps[1])
    assert cfg.schedule_length == (loop.get('max_epochs') or loop.max_iters)


@recipes(nightly=True)
@pytest.mark.filterwarnings('ignore')
def test_recipe_in_a_checkpoint_is_accepted(path):
    cfg = read_config(path).to_dict()
    for use in ('start', 'predict', *(('test', 'probe') if 'test_dataloader' in cfg else ())):
        accepted = validate_untrusted(cfg, 'x.pth', use)
        assert accepted['model']['backbone'].keys() >= {'type'}


def test_pure_and_hybrid_digits_cost_the_same():
    from torch.utils.flop_counter import FlopCounterMode

    flops = []
    for path in (
        'configs/vit/vit-mini-p2_1xb16_digits.py',
        'configs/hybrid_vit/hybrid-vit-mini-p2_1xb16_digits.py',
    ):
        model = MODELS.build(read_config(path).model.backbone).eval()
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            model(torch.zeros(1, 1, 8, 8))
        flops.append(counter.get_total_flops())
    assert flops[0] == pytest.approx(flops[1], rel=0.05)
