"""Predict classes, boxes and masks, or the map of classes of images; write them as JSON, CSV or pictures.

    python tools/infer.py CHECKPOINT photo.jpg
    python tools/infer.py CHECKPOINT IMAGE_OR_FOLDER... --out FOLDER --out predictions.json
    python tools/infer.py timm://vit_small_patch16_224.augreg_in21k_ft_in1k photo.jpg
    python tools/infer.py model.onnx photo.jpg
"""

import argparse
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from vit_plugin.apps.flags import add_model_arguments, at_least, run_tool
from vit_plugin.errors import ConfigError

TABLES = ('.json', '.csv')


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description='Predict classes, boxes and masks, or the map of classes of images.')
    add_model_arguments(parser)
    parser.add_argument('images', nargs='+', metavar='IMAGE', help='image file, or folder of images')
    parser.add_argument('--out', action='append', default=[], type=Path,
                        help='folder for pictures, or a .json or .csv file for the predictions; may be given again')
    parser.add_argument('--score-thr', type=at_least(0, float, 1), default=0.3,
                        help='lowest score of a box; default: 0.3')
    return parser


def pictures_of(images: list[str], folder: Path) -> list[Path]:
    """The picture to write for each image; none is there twice, or is one of the images."""
    from vit_plugin.files.complete import check_target
    targets = [folder / f'{Path(path).stem}.png' for path in images]
    taken = Counter(map(Path.resolve, [*targets, *map(Path, images)])).most_common(1)[0]
    if taken[1] > 1:
        raise ConfigError(f'--out: {str(taken[0])!r} would be written over; give another folder, and images of the '
                          'same name one at a time.')
    for target in targets:
        check_target(target)
    return targets


def needs_torch(args: argparse.Namespace) -> bool:
    """Whether torch runs the model. onnxruntime runs a file that ``vit-plugin export`` wrote."""
    return not args.checkpoint.endswith('.onnx')


def from_checkpoint(args: argparse.Namespace) -> tuple[Callable, Callable]:
    """What predicts, and what draws a prediction."""
    from vit_plugin.apps.load import load
    from vit_plugin.files.images import read_image
    trained = load(args.checkpoint, args.config, args.arch, args.device, args.cfg_options).optimized()
    visualizer = trained.visualizer() if args.out else None
    return trained, lambda prediction, path, file: prediction.draw(
        visualizer, read_image(path)[..., ::-1], file, args.score_thr)  # in RGB


def from_onnx(args: argparse.Namespace) -> tuple[Callable, Callable]:
    """The same of a file in ONNX."""
    from vit_plugin.apps.onnx_model import OnnxModel, draw
    from vit_plugin.files.images import read_image
    flags = ('config', 'arch', 'device', 'cfg_options')
    if given := [name for name in flags if getattr(args, name)]:
        raise ConfigError(f'--{given[0].replace("_", "-")} changes nothing of a file in ONNX; leave it out.')
    model = OnnxModel(args.checkpoint)
    return lambda path, _: model(read_image(path)), lambda prediction, path, file: draw(
        read_image(path), prediction, file, args.score_thr)


def main(args: argparse.Namespace) -> None:
    from vit_plugin.apps.predictions import save_predictions
    from vit_plugin.files.complete import check_target, replacing
    from vit_plugin.files.images import image_files
    images = image_files(args.images)
    tables = [target for target in args.out if target.suffix in TABLES]
    pictures = {path: [] for path in images}
    for folder in [target for target in args.out if target not in tables]:
        for path, picture in zip(images, pictures_of(images, folder), strict=True):
            pictures[path].append(picture)
    for table in tables:
        check_target(table, images)
    predict, draw = from_checkpoint(args) if needs_torch(args) else from_onnx(args)
    found = {}
    for i, (path, targets) in enumerate(pictures.items()):
        prediction = predict(path, i)
        found[path] = prediction.rows(args.score_thr)
        for target in targets:
            with replacing(target, images) as file:
                draw(prediction, path, str(file))
        print('; '.join([f'{path}: {prediction.text(args.score_thr)}', *map(str, targets)]))
    for table in tables:
        save_predictions(table, found, images)
        print(table)


if __name__ == '__main__':
    run_tool(make_parser(), main, needs_torch)
