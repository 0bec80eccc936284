"""Find what continued pre-training of DINOv2-S/14 is worth, with a Gram anchor and without.

    python benchmarks continue_dinov3 dinov2.safetensors CELLS [--minutes 20] [--out maps.jpg]

``dinov2.safetensors`` is what ``python benchmarks focus WHEEL --out`` writes. ``CELLS`` is BCCD, a
detection data set of blood cells, in the layout of VOC. LoRA adapters are trained with DINOv3's
objective on unlabeled images, those of BCCD's training split and of scikit-image, for these minutes
of CPU time on one thread: once with the Gram anchor, which keeps the similarities between patches
close to those of the start, and once without.

For the start and both results this prints three figures. The AP of each class of cells, by the
nearest neighbors of the mean patch in each validation box. The mIoU of the dense probes on the
scenes of ``dense_probe_scenes``. And the mean difference between the similarities of held-out
images' patches and those at the start. The picture shows the similarities to one patch, before,
without and with.
"""

import argparse
import math
import time
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import skimage.data
import torch
from matplotlib.figure import Figure
from mmengine.logging import MessageHub
from mmengine.registry import DefaultScope
from PIL import Image
from sklearn.metrics import average_precision_score
from sklearn.neighbors import KNeighborsClassifier
from torch import Tensor, nn
from torchvision.transforms import v2

from benchmarks.dense_probe_scenes import BACKGROUND, draw_scenes, untrained
from benchmarks.dense_probing import Labeled, dense_probe
from benchmarks.focus import ARCH, MEAN, STD
from vit_plugin.engine.lora_adapters import Lora
from vit_plugin.models import VisionTransformer
from vit_plugin.models.loading import load_weights
from vit_plugin.registry import MODELS
from vit_plugin.weights.lora import merge_adapters

PHOTOGRAPHS = (
    *('astronaut', 'brick', 'camera', 'cell', 'clock', 'coins', 'grass', 'gravel'),
    *('hubble_deep_field', 'immunohistochemistry', 'moon', 'retina', 'rocket'),
)
HELD_OUT = ('chelsea', 'coffee')
MAX_SHORTER_SIDE = 480  # pixels; larger images would only take memory
RATE, NEIGHBORS = 3e-4, 20
WARM_UP = 0.1  # share of the time
PROTOTYPES = dict(out_channels=4096)  # of neck and head alike
POINT = (0.45, 0.5)  # (y, x) of the patch in the picture, as shares of the image
BOX_EDGES = ('xmin', 'ymin', 'xmax', 'ymax')


def load_photograph(name: str) -> np.ndarray:
    """Pixels (H, W, 3) in RGB."""
    image = getattr(skimage.data, name)()
    image = np.uint8(255 * image) if image.dtype == bool else image
    return np.repeat(image[..., None], 3, axis=2) if image.ndim == 2 else image[..., :3]


def preprocess(image: Image.Image, side: int | None = None) -> Tensor:
    """A normalized image (3, H, W), stretched to a square of this side.

    Without a side, it is only reduced to :data:`MAX_SHORTER_SIDE`.
    """
    if side is None:
        scale = min(MAX_SHORTER_SIDE / min(image.size), 1)
        size = tuple(round(scale * length) for length in image.size)
    else:
        size = (side, side)
    pixels = np.asarray(image.convert('RGB').resize(size, Image.Resampling.BICUBIC), np.float32)
    return torch.from_numpy((pixels / 255 - MEAN) / STD).float().permute(2, 0, 1)


def read_cells(
    folder: Path, split: str, limit: int
) -> list[tuple[Path, list[tuple[str, np.ndarray]]]]:
    """The images of a split, each with the class and the box of its cells.

    Boxes are (x1, y1, x2, y2) from 0 to 1.
    """
    images = []
    for name in (folder / f'ImageSets/Main/{split}.txt').read_text().split()[:limit]:
        root = ET.parse(folder / f'Annotations/{name}.xml').getroot()
        sizes = [float(root.findtext(f'size/{side}') or 0) for side in ('width', 'height')]
        boxes = [
            (
                element.findtext('name') or '',
                np.array(
                    [float(element.findtext(f'bndbox/{side}') or 0) for side in BOX_EDGES],
                    np.float64,
                )
                / (sizes * 2),
            )
            for element in root.iter('object')
        ]
        images.append((folder / f'JPEGImages/{name}.jpg', boxes))
    return images


def make_views(images: list[Tensor], batch: int, side: int) -> list[Tensor]:
    """Two large and four small views (batch, 3, H, W) of the same random images."""
    chosen = [images[i] for i in torch.randint(len(images), (batch,))]
    small = 14 * round(side / 28)  # half the side, in whole patches of 14 pixels
    colors = v2.RandomApply([v2.ColorJitter(0.4, 0.4)], p=0.8)

    def view(size: int, scale: tuple[float, float]) -> Tensor:
        crop = v2.RandomResizedCrop(size, scale, antialias=True)
        flip = v2.RandomHorizontalFlip()
        pixels = torch.stack([flip(crop(image)) for image in chosen])
        mean, std = (torch.tensor(values).view(-1, 1, 1) for values in (MEAN, STD))
        return ((colors((pixels * std + mean).clamp(0, 1)) - mean) / std).float()

    return [
        *(view(side, (0.4, 1.0)) for _ in range(2)),
        *(view(small, (0.1, 0.4)) for _ in range(4)),
    ]


def load_backbone(weights: Path) -> VisionTransformer:
    model = VisionTransformer(
        ARCH, pos_embed=dict(type='learned', interpolate_mode='bicubic_dinov2')
    )
    load_weights(model, weights)
    return model.eval()


def continue_training(
    weights: Path, images: list[Tensor], gram_weight: float, args: argparse.Namespace
) -> VisionTransformer:
    """Train LoRA adapters for the given minutes. Returns the backbone with the merged weights."""
    torch.manual_seed(args.seed)
    model = MODELS.build(
        dict(
            type='vit_plugin.DINOv3',
            backbone=dict(
                type='vit_plugin.VisionTransformer',
                arch=ARCH,
                pos_embed=dict(type='learned', interpolate_mode='bicubic_dinov2'),
            ),
            neck=dict(
                type='vit_plugin.DINONeck',
                in_channels=384,
                hid_channels=512,
                bottleneck=128,
                **PROTOTYPES,
            ),
            head=dict(type='vit_plugin.DINOHead', centering='sinkhorn_knopp', **PROTOTYPES),
            gram_weight=gram_weight,
            data_preprocessor=dict(type='SelfSupDataPreprocessor', _scope_='mmpretrain'),
        )
    )
    load_weights(model.backbone, weights)
    lora = Lora(r=8, alpha=16.0)
    lora.inject(model)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, args.rate, weight_decay=0.05)
    hub, start, steps = MessageHub.get_current_instance(), time.process_time(), 0
    # The number of steps is unknown. The teacher's momentum follows iter / max_iters, which is
    # therefore the elapsed share of the time; the learning rate follows it too.
    hub.update_info('max_iters', 1_000_000)
    model.train()
    log: dict[str, float] = {}
    while (done := (time.process_time() - start) / (60 * args.minutes)) < 1:
        hub.update_info('iter', int(1_000_000 * done))
        for group in optimizer.param_groups:
            group['lr'] = args.rate * min(done / WARM_UP, 0.5 + 0.5 * math.cos(math.pi * done))
        losses = model.loss(make_views(images, args.batch, args.size))
        optimizer.zero_grad()
        sum(losses.values()).backward()
        nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        steps += 1
        log = {name: loss.item() for name, loss in losses.items()}
    print(f'{steps} steps, at the end ' + ', '.join(f'{k} {v:.4f}' for k, v in log.items()))
    plain = merge_adapters(model.backbone.state_dict(), dict(lora=dict(r=lora.r, alpha=lora.alpha)))
    result = load_backbone(weights)
    result.load_state_dict(plain)
    return result.eval()


@torch.no_grad()
def patches_of(model: VisionTransformer, image: Tensor) -> Tensor:
    """A normalized image (3, H, W) -> its patches (h, w, C)."""
    tokens, grid = model.features(image[None])
    return tokens[-1][0, -math.prod(grid) :].unflatten(0, grid)


def box_features(
    model: VisionTransformer, data: list, side: int
) -> Iterator[tuple[np.ndarray, str]]:
    """The mean patch of each box, and its class."""
    for path, boxes in data:
        patches = patches_of(model, preprocess(Image.open(path), side)).numpy()
        grid_height, grid_width = patches.shape[:2]
        for name, (x1, y1, x2, y2) in boxes:
            # At least one patch of each box, also at the lower and right end of the image.
            rows, columns = (
                slice(int(a * n), max(math.ceil(b * n), int(a * n) + 1))
                for a, b, n in ((min(y1, 0.999), y2, grid_height), (min(x1, 0.999), x2, grid_width))
            )
            yield patches[rows, columns].mean(axis=(0, 1)), name


def cell_scores(model: VisionTransformer, train: list, test: list, side: int) -> dict[str, float]:
    """The AP of each class of cells by the nearest neighbors, in percent, and their mean."""
    (vectors, names), (test_vectors, truth) = (
        tuple(map(np.array, zip(*box_features(model, part, side), strict=True)))
        for part in (train, test)
    )
    units = [
        group / np.linalg.norm(group, axis=1, keepdims=True) for group in (vectors, test_vectors)
    ]
    knn = KNeighborsClassifier(min(NEIGHBORS, len(names)), weights='distance')
    shares = knn.fit(units[0], names).predict_proba(units[1])
    scores = {
        name: 100 * float(average_precision_score(truth == name, shares[:, i]))
        for i, name in enumerate(knn.classes_)
        if (truth == name).any()
    }
    return scores | dict(mean=float(np.mean([*scores.values()])))


def scene_scores(model: VisionTransformer, number: int, size: int) -> dict[str, float]:
    """The mIoU in percent of each dense probe on the last feature map."""
    train, val = draw_scenes(number), draw_scenes(max(number // 2, 2), validation=True)
    data = Labeled([*train[0], *val[0]], [*train[1], *val[1]], number, BACKGROUND + 1)
    # Only for its preprocessing: the model gets the weights to be tested.
    trained = untrained(ARCH.removeprefix('timm://'))
    trained.model.backbone = model
    rows = dense_probe('', trained, data, depths=(1.0,), size=size)
    return {row.probe: float(np.mean(row.scores)) for row in rows}


def cosines(patches: Tensor) -> Tensor:
    """Patches (h, w, C) -> their similarities (h*w, h*w)."""
    x = nn.functional.normalize(patches.flatten(0, 1), dim=-1)
    return x @ x.T


def drift(start: VisionTransformer, model: VisionTransformer, images: list[Tensor]) -> float:
    """The mean absolute difference between the patches' similarities and those of the start."""
    pairs = [[cosines(patches_of(one, image)) for one in (start, model)] for image in images]
    return float(np.mean([(a - b).abs().mean().item() for a, b in pairs]))


def draw(models: dict[str, VisionTransformer], images: list[Tensor], path: Path) -> None:
    """Draw the similarities of each image's patches to that at ``POINT``, by each model."""
    figure = Figure(figsize=(2.4 * (len(models) + 1), 2.4 * len(images)), layout='constrained')
    axes = figure.subplots(len(images), len(models) + 1, squeeze=False)
    mean, std = (torch.tensor(values).view(-1, 1, 1) for values in (MEAN, STD))
    for axis, name in zip(axes[0], ('image', *models), strict=True):
        axis.set_title(name)
    for row, image in zip(axes, images, strict=True):
        row[0].imshow((image * std + mean).clamp(0, 1).permute(1, 2, 0).numpy())
        row[0].plot(POINT[1] * image.shape[2], POINT[0] * image.shape[1], 'r+', markersize=12)
        for axis, model in zip(row[1:], models.values(), strict=True):
            patches = patches_of(model, image)
            high, wide = patches.shape[:2]
            index = int(POINT[0] * high) * wide + int(POINT[1] * wide)
            similar = cosines(patches)[index].unflatten(0, (high, wide))
            axis.imshow(similar.numpy(), vmin=0, vmax=1, cmap='viridis')
        for axis in row:
            axis.axis('off')
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('weights', type=Path, help='dinov2.safetensors')
    parser.add_argument('cells', type=Path, help='BCCD: JPEGImages, Annotations, ImageSets')
    parser.add_argument('--minutes', type=float, default=20, help='CPU time of each training')
    parser.add_argument('--size', type=int, default=224, help='pixels of a large view')
    parser.add_argument('--probe-size', type=int, default=448, help='pixels of images of cells')
    parser.add_argument('--batch', type=int, default=4)
    parser.add_argument('--rate', type=float, default=RATE)
    parser.add_argument('--gram-weight', type=float, default=2.0)
    parser.add_argument('--scenes', type=int, default=100)
    parser.add_argument('--images', type=int, help='of cells, in each split; default: all')
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--out', type=Path, help='the picture')
    args = parser.parse_args()
    warnings.simplefilter('ignore')
    torch.set_num_threads(1)
    train, test = (read_cells(args.cells, split, args.images) for split in ('train', 'val'))
    images = [preprocess(Image.open(path)) for path, _ in train]
    images += [preprocess(Image.fromarray(load_photograph(name))) for name in PHOTOGRAPHS]
    side = args.size
    unseen = [preprocess(Image.open(path), side) for path, _ in test[:2]]
    unseen += [preprocess(Image.fromarray(load_photograph(name)), side) for name in HELD_OUT]
    print(f'{len(images)} images to learn from, {len(test)} of cells to test')
    start = load_backbone(args.weights)
    models = {'before': start}
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        for name, weight in (('without', 0.0), ('with', args.gram_weight)):
            models[name] = continue_training(args.weights, images, weight, args)
    for name, model in models.items():
        found = cell_scores(model, train, test, args.probe_size)
        scenes = scene_scores(model, args.scenes, args.size)
        print(
            f'{name:<8} AP of cells '
            + ', '.join(f'{key} {value:.2f}' for key, value in found.items())
            + '; mIoU of scenes '
            + ', '.join(f'{key} {value:.2f}' for key, value in scenes.items())
            + f'; similarities differ by {drift(start, model, unseen):.4f}',
            flush=True,
        )
    if args.out:
        draw(models, unseen, args.out)


if __name__ == '__main__':
    main()
