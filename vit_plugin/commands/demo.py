"""Show what a model predicts and sees, in a browser: drop a picture on the page.

vit-plugin demo
vit-plugin demo CHECKPOINT
vit-plugin demo timm://vit_small_patch16_224.augreg_in21k_ft_in1k
"""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from vit_plugin.errors import needed_by
from vit_plugin.inference.demo_model import DEMO_CHECKPOINT, DEMO_IMAGES

from .flags import add_flags, add_model_arguments, at_least, load_model

# Advice if memory runs out, see commands/__init__.py.
LESS_MEMORY = 'give a smaller --img-size'


def add_arguments(parser: ArgumentParser) -> None:
    add_model_arguments(
        parser,
        nargs='?',
        default=str(DEMO_CHECKPOINT),
        help='checkpoint, folder of a run, timm://NAME or hf://USER/NAME; default: a small '
        'detector of drawn shapes, which comes with the package',
    )
    add_flags(
        parser,
        '--img-size',
        help='shorter side of the pictures in pixels; default: that of the '
        "config's test, or the img_size of the arch",
    )
    parser.add_argument(
        '--port', type=at_least(1, most=65535), default=7860, help='default: %(default)s'
    )


def main(args: Namespace) -> None:
    with needed_by('vit-plugin demo'):
        import gradio  # noqa: F401  before the model is read, which may take long
    from vit_plugin.report.page.browser import build_page, serve

    title = f'What {Path(args.checkpoint).name} sees'
    examples = [] if 'checkpoint' in args.given else sorted(map(str, DEMO_IMAGES.iterdir()))
    serve(build_page(load_model(args), title, args.img_size, examples), args.port)
