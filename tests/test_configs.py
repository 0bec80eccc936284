"""Every recipe builds, agrees with the table of variants, and trains a step on images of its size."""

import re
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.optim import build_optim_wrapper
from mmengine.registry import MODELS, init_default_scope

from vit_plugin.arch import parse_arch

CONFIGS = sorted(path for path in Path('configs').glob('*/*.py') if path.parent.name != '_base_')


def test_there_are_recipes_of_both_kinds():
    assert {path.parent.name for path in CONFIGS} == {'vit', 'hybrid_vit'}


@pytest.mark.parametrize('path', CONFIGS, ids=lambda path: path.stem)
def test_docstring_names_the_command(path):
    assert f'{path}' in path.read_text().split('"""')[1]


@pytest.mark.parametrize('path', CONFIGS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings('ignore')
def test_recipe_trains_a_step(path, no_default_scope):
    cfg = Config.fromfile(path)
    init_default_scope(cfg.default_scope)
    assert cfg.model.head.in_channels == parse_arch(cfg.model.backbone.arch).embed_dims
    assert cfg.model.head.num_classes == cfg.data_preprocessor.num_classes
    backbone = cfg.model.backbone
    if '384px' in path.stem:  # as wide and as many pixels as it says, but two blocks deep
        assert backbone.img_size == 384
        arch = parse_arch(backbone.arch)
        backbone.patch_embed = arch.patch_embed
        backbone.arch = dict(embed_dims=arch.embed_dims, num_layers=2, num_heads=arch.num_heads,
                             feedforward_channels=arch.feedforward_channels)
    model = MODELS.build(dict(cfg.model, data_preprocessor=cfg.data_preprocessor)).train()
    head = model.head.layers.head.weight
    wrapper = build_optim_wrapper(model, cfg.optim_wrapper)
    side = backbone.img_size
    batch = dict(inputs=[torch.randint(0, 256, (backbone.get('in_channels', 3), side, side), dtype=torch.uint8)] * 2,
                 data_samples=[sample(label) for label in (0, 1)])
    losses = model.train_step(batch, wrapper)
    assert losses['loss'].item() == pytest.approx(torch.log(torch.tensor(float(cfg.model.head.num_classes))).item(),
                                                  rel=1e-3)  # the head starts at zero
    assert head.abs().max() > 0


def sample(label: int):
    from mmpretrain.structures import DataSample
    return DataSample().set_gt_label(label)


@pytest.mark.parametrize('path', CONFIGS, ids=lambda path: path.stem)
def test_name_tells_the_batch_and_the_schedule(path):
    cfg = Config.fromfile(path)
    processes, batch = map(int, re.search(r'_(\d+)xb(\d+)', path.stem).groups())
    assert cfg.train_dataloader.batch_size == batch
    assert cfg.auto_scale_lr.base_batch_size == processes * batch
    if epochs := re.search(r'-(\d+)e_', path.stem):
        assert cfg.train_cfg.max_epochs == int(epochs[1]) == cfg.param_scheduler.total_steps
    if steps := re.search(r'-(\d+)k_', path.stem):
        assert cfg.train_cfg.max_iters == 1000 * int(steps[1]) == cfg.param_scheduler[-1].end


def test_pure_and_hybrid_digits_cost_the_same():
    from torch.utils.flop_counter import FlopCounterMode
    flops = []
    for path in ('configs/vit/vit-mini-p2_1xb16_digits.py', 'configs/hybrid_vit/hybrid-vit-mini-p2_1xb16_digits.py'):
        model = MODELS.build(Config.fromfile(path).model.backbone).eval()
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            model(torch.zeros(1, 1, 8, 8))
        flops.append(counter.get_total_flops())
    assert flops[0] == pytest.approx(flops[1], rel=0.05)
