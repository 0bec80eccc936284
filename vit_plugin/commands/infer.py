r"""Predict classes, boxes and masks, or segmentation maps, of images and videos.

It writes tables, pictures and videos.

vit-plugin infer --demo
vit-plugin infer CHECKPOINT photo.jpg
vit-plugin infer CHECKPOINT FOLDER clip.mp4 https://example.org/photo.jpg \
        --out FOLDER --out predictions.json
vit-plugin infer timm://vit_small_patch16_224.augreg_in21k_ft_in1k photo.jpg
vit-plugin infer model.onnx photo.jpg
vit-plugin infer --about CHECKPOINT
"""

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from vit_plugin.deploy.runtimes import RUNTIMES, open_exported
from vit_plugin.errors import ConfigError
from vit_plugin.inference import SCORE_THR, TABLE_SUFFIXES

from .flags import a_folder, add_flags, add_model_arguments, at_least, load_model

# Advice if memory runs out, see commands/__init__.py.
LESS_MEMORY = 'give a smaller --batch-size, or smaller images'
DEMO_PICTURES = 'demo_pictures'  # the output folder of --demo


def add_arguments(parser: ArgumentParser) -> None:
    parser.usage = """vit-plugin infer CHECKPOINT IMAGE [IMAGE ...] [options]
       vit-plugin infer --demo
       vit-plugin infer --about CHECKPOINT"""
    add_model_arguments(parser, nargs='?')
    add_flags(
        parser,
        'images',
        nargs='*',
        help='image, video, folder of them, URL of an image, or number of a webcam',
    )
    add_flags(
        parser,
        '--out',
        type=a_folder(*TABLE_SUFFIXES),
        action='append',
        default=[],
        help='folder for pictures and videos, or a .json, .jsonl or .csv file; may be given again',
    )
    parser.add_argument(
        '--score-thr',
        type=at_least(0, float, most=1),
        default=SCORE_THR,
        help='lowest score of a box; default: %(default)s',
    )
    parser.add_argument(
        '--demo',
        action='store_true',
        help='run a small detector of drawn shapes on images, both of which come with the '
        f'package; pictures go to {DEMO_PICTURES} unless --out is given',
    )
    parser.add_argument(
        '--about',
        action='store_true',
        help='print where the weights come from, and the license of each step of their history',
    )
    add_flags(parser, '--batch-size', default=1)
    parser.add_argument(
        '--slices',
        type=at_least(16),
        metavar='PIXELS',
        help='for a detector: also predict on overlapping squares of this side; default: the side '
        'that it was trained on by --tiles',
    )


def check(args: Namespace) -> None:
    """Find the images, without importing torch. With ``--demo``, set the checkpoint and output."""
    from vit_plugin.inference.demo_model import DEMO_IMAGES, DEMO_ONNX
    from vit_plugin.inference.inputs import find_inputs
    from vit_plugin.inference.targets import without_earlier_outputs

    args.checkpoint = args.checkpoint and os.path.expanduser(args.checkpoint)
    if args.about:
        if not args.checkpoint:
            raise ConfigError('--about needs a checkpoint or an exported file; give one.')
        return
    if args.demo:
        args.checkpoint, args.images = str(DEMO_ONNX), [str(DEMO_IMAGES)]
        args.out = args.out or [Path(DEMO_PICTURES)]
    elif not args.images:
        raise ConfigError(
            'vit-plugin infer takes a checkpoint and the images to ask about; give both, or '
            '--demo alone to see an example.'
        )
    args.images = without_earlier_outputs(find_inputs(args.images), args.out)


def needs_torch(args: Namespace) -> bool:
    """True unless a runtime runs the model, from a file that ``vit-plugin export`` wrote."""
    return Path(args.checkpoint).suffix.lower() not in RUNTIMES or args.about


def predictor(model: Any, args: Namespace) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """The function that predicts frames: on slices by ``--slices``, or if it was trained on tiles.

    Args:
        model: a :class:`~vit_plugin.inference.trained_model.TrainedModel` or an
            :class:`~vit_plugin.deploy.exported_model.ExportedModel`.
        args: the command line.
    """
    # A TrainedModel may read files itself; an exported model takes only pixels.
    get_input = getattr(model, 'sample_argument', lambda frame: frame.image)
    if side := args.slices or model.slices:
        from vit_plugin.inference.slices import SlicedDetector

        if not args.slices:
            note = f'The model was trained on tiles: it sees slices of {side} pixels, too.'
            print(note, file=sys.stderr)
        sliced = SlicedDetector(model.predict, side, model.classes, args.score_thr, args.batch_size)
        read = getattr(model, 'read', lambda image: image)
        return lambda frames: sliced([read(get_input(frame)) for frame in frames])

    def predict_frames(frames: Sequence[Any]) -> Sequence[Any]:
        predictions = model.predict(
            [get_input(frame) for frame in frames], [frame.source.name for frame in frames]
        )
        if 'score_thr' in args.given and any(
            prediction.boxes is None for prediction in predictions
        ):
            raise ConfigError(
                '--score-thr is for models that find boxes, and this one finds none; leave it out.'
            )
        return predictions

    return predict_frames


def print_provenance(args: Namespace) -> None:
    """Print where the weights of a file come from, step by step."""
    from anyfolder.terminal import printable
    from vit_plugin.weights.carried_records import address_record, exported_record

    path = Path(args.checkpoint)
    if path.suffix.lower() in RUNTIMES:
        record = exported_record(path, open_exported(path).metadata)
    elif path.suffix.lower() == '.pt2':
        record = exported_record(path)
    else:
        from vit_plugin.inference.saved_model import find_checkpoint

        record = address_record(find_checkpoint(args.checkpoint, args.which), download=False)
    for line in record.lines():
        print(printable(line))


def main(args: Namespace) -> None:
    if args.about:
        print_provenance(args)
    else:
        predict(args)


def predict(args: Namespace) -> None:
    """Run the model on the images, and write what it predicts."""
    from vit_plugin.inference.inputs import Reading
    from vit_plugin.inference.predicting import predict_all
    from vit_plugin.inference.prediction_files import create_writer

    outputs = [create_writer(target, args.images, args.score_thr) for target in args.out]
    if needs_torch(args):
        model: Any = load_model(args).optimized()
    else:
        from vit_plugin.deploy.exported_model import ExportedModel

        model = ExportedModel(args.checkpoint)
    predict_all(
        Reading(args.images), predictor(model, args), outputs, args.batch_size, args.score_thr
    )
