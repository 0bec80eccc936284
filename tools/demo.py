"""Show what a model says and sees, in a browser: drop a picture on the page.

    python tools/demo.py CHECKPOINT --config CONFIG
    python tools/demo.py timm://vit_small_patch16_224.augreg_in21k_ft_in1k
"""

import argparse
from pathlib import Path

from vit_plugin.apps.browser import page, serve
from vit_plugin.apps.command_line import at_least, run_tool
from vit_plugin.apps.subject import add_subject_arguments, read_subject
from vit_plugin.errors import needed_by

DEFAULT = 'timm://vit_small_patch16_224.augreg_in21k_ft_in1k'


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description='Show what a model says and sees, in a browser.')
    parser.add_argument('checkpoint', nargs='?', default=DEFAULT,
                        help='checkpoint file or address; default: %(default)s')
    add_subject_arguments(parser)
    parser.add_argument('--port', type=at_least(1, most=65535), default=7860, help='default: %(default)s')
    parser.add_argument('--share', action='store_true',
                        help="give the page a public address too, through Gradio's servers")
    return parser


def main(args: argparse.Namespace) -> None:
    with needed_by('vit-plugin demo'):
        import gradio  # noqa: F401  before the model is read, which may take long
    subject = read_subject(args, classify=True)
    serve(page(subject, f'What {Path(args.checkpoint).name} sees'), args.port, args.share)


if __name__ == '__main__':
    run_tool(make_parser(), main)
