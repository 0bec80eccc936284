"""Write small files in the formats of published detectors, as their own libraries do."""

import json
from argparse import Namespace
from pathlib import Path
from typing import Any

import torch
from authors import FOLDER, recorded
from safetensors.torch import save_file
from torch import Tensor

# Sizes of the small RF-DETR. PATCH is in pixels, SIDE of the image in patches; WIDTH is that of the
# backbone, DIMS that of the decoder. ROWS is the number of class logits: COCO's ids go up to 90.
PATCH, SIDE, WINDOWS, QUERIES, GROUPS = 16, 4, 2, 5, 2
BLOCKS, WIDTH, DIMS, ROWS = 12, 64, 32, 91
EOMT_HEADS = 2  # in the golden files
EOMT_SIDE = 2  # of the images, in patches


def roboflow_weights(rows: int = ROWS, seed: int = 0, masks: bool = False) -> dict[str, Tensor]:
    """Random weights of a small RF-DETR, or with ``masks`` RF-DETR-Seg, by Roboflow's names.

    Names and shapes are those of ``rfdetr``'s Nano with smaller widths and one decoder layer.
    """
    generator = torch.Generator().manual_seed(seed)
    encoder = 'backbone.0.encoder.encoder'
    shapes: dict[str, tuple[int, ...]] = {
        f'{encoder}.embeddings.cls_token': (1, 1, WIDTH),
        f'{encoder}.embeddings.mask_token': (1, WIDTH),
        f'{encoder}.embeddings.position_embeddings': (1, SIDE**2 + 1, WIDTH),
        f'{encoder}.embeddings.patch_embeddings.projection.weight': (WIDTH, 3, PATCH, PATCH),
        f'{encoder}.embeddings.patch_embeddings.projection.bias': (WIDTH,),
        'refpoint_embed.weight': (QUERIES * GROUPS, 4),
        'query_feat.weight': (QUERIES * GROUPS, DIMS),
    }

    def linear(name: str, out: int, inputs: int) -> None:
        shapes.update({f'{name}.weight': (out, inputs), f'{name}.bias': (out,)})

    def norm(name: str, width: int) -> None:
        shapes.update({f'{name}.weight': (width,), f'{name}.bias': (width,)})

    def conv(name: str, out: int, inputs: int, size: int) -> None:
        shapes[f'{name}.conv.weight'] = (out, inputs, size, size)
        norm(f'{name}.bn', out)

    for i in range(BLOCKS):
        block = f'{encoder}.encoder.layer.{i}'
        for part in ('attention.query', 'attention.key', 'attention.value', 'output.dense'):
            linear(f'{block}.attention.{part}', WIDTH, WIDTH)
        linear(f'{block}.mlp.fc1', WIDTH, WIDTH)
        linear(f'{block}.mlp.fc2', WIDTH, WIDTH)
        for k in (1, 2):
            norm(f'{block}.norm{k}', WIDTH)
            shapes[f'{block}.layer_scale{k}.lambda1'] = (WIDTH,)
    norm(f'{encoder}.layernorm', WIDTH)
    stage = 'backbone.0.projector.stages.0'
    conv(f'{stage}.0.cv1', DIMS, 4 * WIDTH, 1)
    conv(f'{stage}.0.cv2', DIMS, 5 * DIMS // 2, 1)
    for j in range(3):
        for k in (1, 2):
            conv(f'{stage}.0.m.{j}.cv{k}', DIMS // 2, DIMS // 2, 3)
    norm(f'{stage}.1', DIMS)
    layer = 'transformer.decoder.layers.0'
    shapes[f'{layer}.self_attn.in_proj_weight'] = (3 * DIMS, DIMS)
    shapes[f'{layer}.self_attn.in_proj_bias'] = (3 * DIMS,)
    linear(f'{layer}.self_attn.out_proj', DIMS, DIMS)
    # Two heads with two points each, of (x, y).
    linear(f'{layer}.cross_attn.sampling_offsets', 2 * 2 * 2, DIMS)
    linear(f'{layer}.cross_attn.attention_weights', 2 * 2, DIMS)
    for name in ('value_proj', 'output_proj'):
        linear(f'{layer}.cross_attn.{name}', DIMS, DIMS)
    linear(f'{layer}.linear1', DIMS, DIMS)
    linear(f'{layer}.linear2', DIMS, DIMS)
    for k in (1, 2, 3):
        norm(f'{layer}.norm{k}', DIMS)
    norm('transformer.decoder.norm', DIMS)
    linear('transformer.decoder.ref_point_head.layers.0', DIMS, 2 * DIMS)
    linear('transformer.decoder.ref_point_head.layers.1', DIMS, DIMS)
    # The branches of the decoder, and those of the encoder for each group.
    branches = [('bbox_embed', 'class_embed')]
    branches += [
        (f'transformer.enc_out_bbox_embed.{group}', f'transformer.enc_out_class_embed.{group}')
        for group in range(GROUPS)
    ]
    for boxes, classes in branches:
        linear(classes, rows, DIMS)
        for i, out in enumerate((DIMS, DIMS, 4)):
            linear(f'{boxes}.layers.{i}', out, DIMS)
    if masks:
        head = 'segmentation_head'
        shapes[f'{head}.bias'] = (1,)
        shapes[f'{head}.blocks.0.dwconv.weight'] = (DIMS, 1, 3, 3)
        shapes[f'{head}.blocks.0.dwconv.bias'] = (DIMS,)
        norm(f'{head}.blocks.0.norm', DIMS)
        linear(f'{head}.blocks.0.pwconv1', DIMS, DIMS)
        shapes[f'{head}.spatial_features_proj.weight'] = (DIMS, DIMS, 1, 1)
        shapes[f'{head}.spatial_features_proj.bias'] = (DIMS,)
        norm(f'{head}.query_features_block.norm_in', DIMS)
        linear(f'{head}.query_features_block.layers.0', 4 * DIMS, DIMS)
        linear(f'{head}.query_features_block.layers.2', DIMS, 4 * DIMS)
        linear(f'{head}.query_features_proj', DIMS, DIMS)
    for group in range(GROUPS):
        linear(f'transformer.enc_output.{group}', DIMS, DIMS)
        norm(f'transformer.enc_output_norm.{group}', DIMS)
    return {name: 0.1 * torch.randn(shape, generator=generator) for name, shape in shapes.items()}


def roboflow_file(path: Path, rows: int = ROWS, masks: bool = False, **content: Any) -> Path:
    """Write a ``.pth`` as Roboflow publishes it: weights in ``model``, and the training's ``args``.

    ``content`` are further or other entries.
    """
    args = Namespace(resolution=SIDE * PATCH, num_windows=WINDOWS, encoder='dinov2_windowed_small')
    torch.save({'model': roboflow_weights(rows, masks=masks), 'args': args} | content, path)
    return path


def transformers_folder(folder: Path, kind: str) -> Path:
    """Write a recorded model of transformers as its ``save_pretrained`` does.

    ``kind`` is ``'RfDetr'`` or ``'LwDetr'``. The golden file also has the outputs of transformers.
    """
    arrays = recorded(FOLDER / f'lw_detr/{kind}.npz')
    folder.mkdir()
    save_file(
        {
            key.removeprefix('params/'): torch.from_numpy(value).contiguous()
            for key, value in arrays.items()
            if key.startswith('params/')
        },
        folder / 'model.safetensors',
    )
    if kind == 'LwDetr':
        backbone = dict(pretrain_image_size=64, window_block_indices=[0, 2], num_windows=4)
        detector = dict(projector_scale_factors=[2.0, 0.5])
    else:
        backbone = dict(num_windows=2, image_size=64)
        detector = dict(layer_norm_eps=1e-5)
    config = dict(
        model_type=f'{kind[:2].lower()}_detr',
        backbone_config=dict(
            hidden_size=8,
            mlp_ratio=2,
            num_attention_heads=2,
            num_hidden_layers=4,
            out_indices=[2, 4],
            patch_size=8,
            **backbone,
        ),
        d_model=8,
        decoder_cross_attention_heads=2,
        decoder_ffn_dim=16,
        decoder_layers=2,
        decoder_n_points=2,
        decoder_self_attention_heads=2,
        group_detr=2,
        id2label={'0': 'cat', '1': 'dog', '2': 'owl'},
        num_queries=5,
        **detector,
    )
    (folder / 'config.json').write_text(json.dumps(config))
    processor = dict(size=dict(height=64, width=64), image_mean=[0.5] * 3, image_std=[0.25] * 3)
    (folder / 'preprocessor_config.json').write_text(json.dumps(processor))
    return folder


def eomt_folder(folder: Path, name: str, classes: int = 5, **processor: Any) -> Path:
    """Write a recorded EoMT as transformers' ``save_pretrained`` does.

    Args:
        folder: the folder to write.
        name: the beginning of the name of a file in ``tests/golden/eomt``.
        classes: number of classes in the config.
        **processor: the content of its ``preprocessor_config.json``.
    """
    arrays = recorded(FOLDER / f'eomt/{name}ForUniversalSegmentation.npz')
    weights = {
        key.removeprefix('params/'): torch.from_numpy(value).contiguous()
        for key, value in arrays.items()
        if key.startswith('params/')
    }
    table, size = 'embeddings.position_embeddings.weight', arrays['images'].shape[-1]
    if table in weights:  # recorded for a rectangle; transformers saves tables of square images
        weights[table] = weights[table][: EOMT_SIDE**2].contiguous()
        size = EOMT_SIDE * weights['embeddings.patch_embeddings.projection.weight'].shape[-1]
    folder.mkdir()
    save_file(weights, folder / 'model.safetensors')
    width = weights['embeddings.cls_token'].shape[-1]
    config = dict(
        model_type='eomt' if name == 'Eomt' else 'eomt_dinov3',
        hidden_size=width,
        image_size=size,
        num_attention_heads=EOMT_HEADS,
        id2label={str(i): f'thing {i}' for i in range(classes)},
    )
    (folder / 'config.json').write_text(json.dumps(config))
    (folder / 'preprocessor_config.json').write_text(json.dumps(processor))
    return folder
