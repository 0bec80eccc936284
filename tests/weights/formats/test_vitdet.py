"""ViTDet's checkpoints, against a plain implementation of its windows and relative positions."""

import pickle

import pytest
import torch
import torch.nn.functional as F
from model_states import assert_same_state
from torch import Tensor, nn

from vit_plugin.models import SimpleFPN, VisionTransformer, load_weights
from vit_plugin.weights import export

WIDTH, HEADS, PATCH, WINDOW = 32, 2, 4, 3
GRID = (5, 7)  # of the images: not square, and not a multiple of the window


def backbone(**kwargs) -> VisionTransformer:
    """Blocks 0 and 2 in windows, block 1 global, on a native grid of 8 x 8 patches."""
    return VisionTransformer(
        **{
            **dict(
                arch=dict(
                    embed_dims=WIDTH,
                    num_layers=3,
                    num_heads=HEADS,
                    feedforward_channels=64,
                    patch_size=PATCH,
                ),
                img_size=32,
                with_cls_token=False,
                out_type='featmap',
                numerics='timm',
                pos_embed=dict(type='learned', relative=True, interpolate_mode='bicubic'),
                encoder=dict(final_norm=False, window=dict(size=WINDOW, global_blocks=(-2,))),
            ),
            **kwargs,
        }
    ).eval()


def checkpoint(table: int = 4, global_size: int = 8) -> dict[str, Tensor]:
    """Random weights with detectron2's names.

    Args:
        table: side of the table of absolute positions, which also has a row for a class token.
        global_size: side of the grid that the relative positions of block 1 are for.
    """
    shapes = {
        'pos_embed': (1, table**2 + 1, WIDTH),
        'patch_embed.proj.weight': (WIDTH, 3, PATCH, PATCH),
        'patch_embed.proj.bias': (WIDTH,),
    }
    for i in range(3):
        rows = 2 * (global_size if i == 1 else WINDOW) - 1
        shapes |= {
            f'blocks.{i}.{name}': shape
            for name, shape in {
                'norm1.weight': (WIDTH,),
                'norm1.bias': (WIDTH,),
                'norm2.weight': (WIDTH,),
                'norm2.bias': (WIDTH,),
                'attn.qkv.weight': (3 * WIDTH, WIDTH),
                'attn.qkv.bias': (3 * WIDTH,),
                'attn.proj.weight': (WIDTH, WIDTH),
                'attn.proj.bias': (WIDTH,),
                'attn.rel_pos_h': (rows, WIDTH // HEADS),
                'attn.rel_pos_w': (rows, WIDTH // HEADS),
                'mlp.fc1.weight': (64, WIDTH),
                'mlp.fc1.bias': (64,),
                'mlp.fc2.weight': (WIDTH, 64),
                'mlp.fc2.bias': (WIDTH,),
            }.items()
        }
    weights = {f'backbone.net.{name}': 0.3 * torch.randn(shape) for name, shape in shapes.items()}
    return weights | {
        'proposal_generator.rpn_head.conv.weight': torch.ones(1),
        'roi_heads.box_head.fc1.bias': torch.ones(1),
        'pixel_mean': torch.ones(3, 1, 1),
    }


def attention(x: Tensor, weights: dict[str, Tensor]) -> Tensor:
    """Attention over a map (h, w, C), query by query, with the bias looked up pair by pair."""
    h, w, _ = x.shape
    q, k, v = (
        F.linear(x.flatten(0, 1), weights['attn.qkv.weight'], weights['attn.qkv.bias'])
        .unflatten(1, (3, HEADS, -1))
        .unbind(1)
    )  # (h*w, heads, d)
    tables = []
    for name, size in (('h', h), ('w', w)):
        table = weights[f'attn.rel_pos_{name}']
        if len(table) != 2 * size - 1:
            table = F.interpolate(table.t()[None], size=2 * size - 1, mode='linear')[0].t()
        tables.append(table)
    out = torch.empty_like(q)
    for i in range(h * w):
        logits = (k * q[i]).sum(-1) * q.shape[-1] ** -0.5  # (h*w, heads)
        for j in range(h * w):
            rows = tables[0][i // w - j // w + h - 1] + tables[1][i % w - j % w + w - 1]
            logits[j] += q[i] @ rows
        out[i] = (logits.softmax(dim=0)[..., None] * v).sum(dim=0)
    return F.linear(
        out.flatten(1), weights['attn.proj.weight'], weights['attn.proj.bias']
    ).unflatten(0, (h, w))


def expected(state: dict[str, Tensor], image: Tensor, table: Tensor) -> Tensor:
    """ViTDet's map (C, h, w) of an image, given absolute positions (h, w, C)."""
    state = {name.removeprefix('backbone.net.'): value for name, value in state.items()}
    x = F.conv2d(
        image, state['patch_embed.proj.weight'], state['patch_embed.proj.bias'], stride=PATCH
    )[0]
    x = x.permute(1, 2, 0) + table
    h, w, _ = x.shape
    for i in range(3):
        block = {name.removeprefix(f'blocks.{i}.'): value for name, value in state.items()}
        normed = F.layer_norm(x, (WIDTH,), block['norm1.weight'], block['norm1.bias'], 1e-6)
        if i == 1:
            x = x + attention(normed, block)
        else:
            padded = F.pad(normed, (0, 0, 0, -w % WINDOW, 0, -h % WINDOW))  # zeros, after the norm
            out = torch.empty_like(padded)
            for y in range(0, len(padded), WINDOW):
                for column in range(0, padded.shape[1], WINDOW):
                    window = slice(y, y + WINDOW), slice(column, column + WINDOW)
                    out[window] = attention(padded[window], block)
            x = x + out[:h, :w]
        hidden = F.layer_norm(x, (WIDTH,), block['norm2.weight'], block['norm2.bias'], 1e-6)
        hidden = F.gelu(F.linear(hidden, block['mlp.fc1.weight'], block['mlp.fc1.bias']))
        x = x + F.linear(hidden, block['mlp.fc2.weight'], block['mlp.fc2.bias'])
    return x.permute(2, 0, 1)


def interpolated(table: Tensor, old: tuple[int, int], new: tuple[int, int]) -> Tensor:
    """A table (h*w, C) of positions for the old grid (h, w), as one for the new grid (h, w, C)."""
    image = table.unflatten(0, old).permute(2, 0, 1)[None]
    return F.interpolate(image, new, mode='bicubic', antialias=True)[0].permute(1, 2, 0)


def renamed(style: str, weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Weights with detectron2's names under the names of a style: ``'detectron2'``, ``'mmdet'``."""
    if style == 'detectron2':
        return weights
    return {name.replace('backbone.net.', 'backbone.'): value for name, value in weights.items()}


@pytest.mark.parametrize('style', ['detectron2', 'mmdet'])
@pytest.mark.parametrize('img_size', [(20, 28), (32, 32)])
def test_map_equals_vitdets(style, img_size):
    weights = checkpoint()
    model = backbone(img_size=img_size)
    report = load_weights(model, renamed(style, weights))
    if style == 'detectron2':
        assert report.format == 'vitdet'
        assert set(report.ignored.values()) == {'of the detector'}
    grid = tuple(side // PATCH for side in img_size)
    assert report.adapted['pos_embed'] == (
        f'positions of 4 x 4 patches to {grid[0]} x {grid[1]}, '
        'the rows of the tokens before the patches are left out, as the model has no such tokens'
    )
    # The relative positions of the checkpoint are for a grid of 8 x 8, that of img_size=(32, 32).
    assert report.adapted.get('blocks.1.attn.rel_pos_h') == (
        None if grid == (8, 8) else '15 relative positions to 9'
    )
    image = torch.randn(1, 3, 20, 28)
    table = weights['backbone.net.pos_embed'][0, 1:]
    table = interpolated(table, (4, 4), grid)  # at loading
    if grid != GRID:  # in the forward
        table = interpolated(table.flatten(0, 1), grid, GRID)
    with torch.no_grad():
        torch.testing.assert_close(
            model(image)[0][0], expected(weights, image, table), atol=2e-5, rtol=2e-5
        )


def pickled(path, weights: dict[str, Tensor]) -> str:
    """Write a file like those of detectron2's model zoo."""
    path.write_bytes(
        pickle.dumps(
            {
                'model': {name: value.numpy() for name, value in weights.items()},
                '__author__': 'somebody',
                'matching_heuristics': False,
            }
        )
    )
    return str(path)


@pytest.mark.parametrize('prefix', [None, 'backbone.'])
def test_a_backbone_loads_files_of_the_model_zoo(tmp_path, prefix):
    weights = checkpoint(table=8)
    cfg = dict(type='Pretrained', checkpoint=pickled(tmp_path / 'model_final.pkl', weights))
    model = backbone(init_cfg=cfg if prefix is None else dict(cfg, prefix=prefix))
    model.init_weights()
    for name, value in model.named_parameters():
        theirs = weights[f'backbone.net.{name}']
        assert torch.equal(value, theirs[:, 1:] if name == 'pos_embed' else theirs), name


def pyramid(style: str) -> dict[str, Tensor]:
    """Random weights of the pyramid with the names of detectron2 or MMDetection."""
    shapes = {
        '2.0.weight': (32, 16, 2, 2),
        '2.0.bias': (16,),
        '2.1.weight': (16,),
        '2.1.bias': (16,),
        '2.3.weight': (16, 8, 2, 2),
        '2.3.bias': (8,),
        '3.0.weight': (32, 16, 2, 2),
        '3.0.bias': (16,),
    }
    named = {
        f'backbone.simfp_{name}'
        if style == 'detectron2'
        else f'neck.fpn{int(name[0]) - 1}{name[1:]}': shape
        for name, shape in shapes.items()
    }
    # detectron2's index of the lateral convolution in each level, and its input channels.
    for level, (first, width) in enumerate(((4, 8), (1, 16), (0, 32), (1, 32))):
        for k, (kernel, channels, convs) in enumerate(
            ((1, width, 'lateral_convs'), (3, 12, 'fpn_convs'))
        ):
            if style == 'detectron2':
                conv = f'backbone.simfp_{level + 2}.{first + k}'
                norm = f'{conv}.norm'
            else:
                conv = f'neck.{convs}.{level}.conv'
                norm = f'neck.{convs}.{level}.norm_layer'
            named[f'{conv}.weight'] = (12, channels, kernel, kernel)
            named |= dict.fromkeys((f'{norm}.weight', f'{norm}.bias'), (12,))
    return {name: torch.randn(shape) for name, shape in named.items()}


@pytest.mark.parametrize('style', ['detectron2', 'mmdet'])
def test_a_detector_loads_the_pyramid(style):
    detector = nn.ModuleDict(
        dict(backbone=backbone(), neck=SimpleFPN(32, 12), rpn_head=nn.Conv2d(12, 1, 1))
    ).eval()
    neck = pyramid(style)
    report = load_weights(detector, renamed(style, checkpoint()) | neck)
    assert report.format == 'vitdet'
    assert set(report.initialized) == {'rpn_head.weight', 'rpn_head.bias'}
    assert set(report.ignored.values()) == {'of the detector'}
    assert len(detector['neck'].state_dict()) == len(neck)
    levels = detector['neck'].levels
    resize, lateral = (
        ('backbone.simfp_2.3', 'backbone.simfp_4.0')
        if style == 'detectron2'
        else ('neck.fpn1.3', 'neck.lateral_convs.2.conv')
    )
    assert torch.equal(levels[0].resize[3].weight, neck[f'{resize}.weight'])
    assert torch.equal(levels[2].lateral.conv.weight, neck[f'{lateral}.weight'])
    state = {
        name.removeprefix('backbone.'): value
        for name, value in detector.state_dict().items()
        if not name.startswith('rpn_head')
    }
    exported, omitted, _ = export(state, 'vitdet', HEADS)
    assert not omitted
    if style == 'detectron2':
        assert exported.keys() == {name for name in checkpoint() if 'net.' in name} | neck.keys()
    reloaded = nn.ModuleDict(dict(backbone=backbone(), neck=SimpleFPN(32, 12)))
    load_weights(reloaded, exported)
    assert_same_state(reloaded, detector)


def test_weights_of_a_plain_vit_start_a_detector():
    """ViTDet's recipes start with MAE's weights; missing relative positions start at zero."""
    plain = backbone(pos_embed='learned', encoder=dict(final_norm=False))
    mae = {
        **{
            name: value
            for name, value in plain.state_dict().items()
            if name != 'position._extra_state'
        },
        'mask_token': torch.zeros(1, 1, 8),
        'decoder_norm.weight': torch.ones(8),
        'cls_token': torch.zeros(1, 1, WIDTH),
        'norm.weight': torch.ones(WIDTH),
        'norm.bias': torch.zeros(WIDTH),
        'pos_embed': torch.cat((torch.randn(1, 1, WIDTH), plain.pos_embed.detach()), dim=1),
    }
    detector = backbone(encoder=dict(final_norm=False))
    report = load_weights(detector, mae)
    assert (
        report.initialized['blocks.2.attn.rel_pos_h']
        == 'relative positions start at zero, which changes nothing'
    )
    images = torch.randn(1, 3, 32, 32)
    torch.testing.assert_close(detector(images), plain(images))
    windowed = backbone()
    windowed.load_state_dict(mae, strict=False)
    assert torch.equal(windowed.blocks[1].attn.qkv.weight, plain.blocks[1].attn.qkv.weight)
