"""Draw what a model finds in images: boxes and masks, the map of classes, or the likeliest classes.

    python tools/infer.py IMAGE... --config CONFIG --checkpoint CHECKPOINT --out FOLDER
"""

import argparse
from collections import Counter
from pathlib import Path

import numpy as np
import torch

import vit_plugin.apps  # noqa: F401  first, since it says what is missing where MMEngine cannot be imported

# isort: split
from mmengine.dataset import pseudo_collate
from mmengine.device import get_device
from mmengine.registry import VISUALIZERS
from mmengine.visualization import Visualizer

from vit_plugin.apps.command_line import add_cfg_options, at_least, check_device, run_tool
from vit_plugin.apps.inference import build_pipeline, image_files, load_model, read_image
from vit_plugin.engine.checks import check_channels, check_checkpoint
from vit_plugin.engine.config import of_framework, read_config
from vit_plugin.errors import ConfigError
from vit_plugin.files.complete import check_target, replacing
from vit_plugin.passes import optimize

NUM_TOP = 5  # classes that are told of each image


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description='Draw what a model finds in images.')
    parser.add_argument('images', nargs='+', metavar='IMAGE', help='image file, or folder of images')
    parser.add_argument('--config', required=True, help='config file')
    parser.add_argument('--checkpoint', required=True, help='checkpoint file or address')
    parser.add_argument('--out', required=True, type=Path, help='folder for the pictures')
    parser.add_argument('--device', default=get_device(), help='default: %(default)s')
    parser.add_argument('--score-thr', type=at_least(0, float, 1), default=0.3,
                        help='lowest score of a box to draw; default: 0.3')
    add_cfg_options(parser)
    return parser


def check_targets(images: list[str], folder: Path) -> list[Path]:
    """The picture to write for each image; none is there twice, or is one of the images."""
    targets = [folder / f'{Path(path).stem}.png' for path in images]
    taken = Counter(map(Path.resolve, [*targets, *map(Path, images)])).most_common(1)[0]
    if taken[1] > 1:
        raise ConfigError(f'--out: {str(taken[0])!r} would be written over; give another folder, and images of the '
                          'same name one at a time.')
    for target in targets:
        check_target(target)
    return targets


def name_of(label: int, meta: dict) -> str:
    classes = meta.get('classes') or ()
    return classes[label] if label < len(classes) else str(label)


def draw_classes(visualizer: Visualizer, image: np.ndarray, sample, meta: dict, score_thr: float, file: str) -> str:
    """The likeliest classes and their scores, best first."""
    scores, labels = sample.pred_score.cpu().topk(min(NUM_TOP, len(sample.pred_score)))
    sample.set_pred_label(labels)
    visualizer.visualize_cls(image, sample, classes=meta.get('classes'), draw_gt=False, out_file=file,
                             resize=max(224, min(image.shape[:2])))
    return ', '.join(f'{name_of(label, meta)} {score:.2f}'
                     for label, score in zip(labels.tolist(), scores.tolist(), strict=True))


def draw_instances(visualizer: Visualizer, image: np.ndarray, sample, meta: dict, score_thr: float, file: str) -> str:
    """How many boxes of each class are drawn."""
    visualizer.add_datasample(file, image, sample, draw_gt=False, pred_score_thr=score_thr, out_file=file)
    found = sample.pred_instances[sample.pred_instances.scores > score_thr]
    return ', '.join(f'{count} {name_of(label, meta)}' for label, count in Counter(
        found.labels.tolist()).most_common()) or 'nothing'


def draw_map(visualizer: Visualizer, image: np.ndarray, sample, meta: dict, score_thr: float, file: str) -> str:
    """What part of the image the largest classes cover."""
    visualizer.add_datasample(file, image, sample, draw_gt=False, out_file=file)
    pixels = Counter(sample.pred_sem_seg.data.flatten().tolist())
    return ', '.join(f'{name_of(label, meta)} {count / pixels.total():.0%}'
                     for label, count in pixels.most_common(NUM_TOP))


# By the host, `default_scope`.
DRAW = {'mmpretrain': draw_classes, 'mmdet': draw_instances, 'mmseg': draw_map}


def main(args: argparse.Namespace) -> None:
    images = image_files(args.images)
    targets = check_targets(images, args.out)
    cfg = read_config(args.config, args.cfg_options)
    draw = of_framework(DRAW, cfg)
    check_device(args.device)
    check_checkpoint(args.checkpoint)
    check_channels(cfg.model)
    model, meta = load_model(cfg, args.checkpoint, args.device)
    model = optimize(model) if cfg.get('optimize', True) else model
    pipeline = build_pipeline(cfg)
    visualizer = VISUALIZERS.build({'name': 'infer', **cfg.visualizer, 'vis_backends': None})
    visualizer.dataset_meta = meta
    for i, (path, file) in enumerate(zip(images, targets, strict=True)):
        image = read_image(path)
        with torch.no_grad():
            sample = model.test_step(pseudo_collate([pipeline(dict(img_path=path, img_id=i))]))[0]
        with replacing(file, images) as picture:
            found = draw(visualizer, image[..., ::-1], sample.cpu(), meta, args.score_thr, str(picture))  # RGB
        print(f'{path}: {found}; {file}')


if __name__ == '__main__':
    run_tool(make_parser(), main)
