"""Write the features of images to a file, to search and compare them.

    python tools/embed.py IMAGE_OR_FOLDER... --weights timm://vit_small_patch14_dinov2.lvd142m --out embeddings.npz
    python tools/embed.py IMAGE_OR_FOLDER... --config CONFIG --weights CHECKPOINT --out embeddings.npz
"""

import argparse

import numpy as np
from mmengine.device import get_device
from tqdm import tqdm

import vit_plugin
from vit_plugin.apps.command_line import add_cfg_options, at_least, check_device, run_tool
from vit_plugin.apps.embedding import Embedder, embed, normalised, of_config, of_model, save_embeddings
from vit_plugin.apps.inference import image_files, load_model
from vit_plugin.engine.checks import check_channels, check_checkpoint
from vit_plugin.engine.config import read_config
from vit_plugin.errors import ConfigError
from vit_plugin.files.complete import check_target
from vit_plugin.passes import optimize


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description='Write the features of images to a file.')
    parser.add_argument('images', nargs='+', metavar='IMAGE', help='image file, or folder of images')
    parser.add_argument('--weights', required=True, help='checkpoint file, or https://, timm:// or hf://')
    parser.add_argument('--config', help='config of the checkpoint')
    parser.add_argument('--arch', help='arch of the weights, such as B/16, in place of a config; default for '
                                       'timm://NAME: the same')
    parser.add_argument('--img-size', type=at_least(1), help='side of the images in pixels, with --arch')
    parser.add_argument('--out', required=True, help='a .npz file for `names` and `features`')
    parser.add_argument('--normalize', action='store_true', help='scale each vector to the length 1')
    parser.add_argument('--batch-size', type=at_least(1), default=32, help='default: %(default)s')
    parser.add_argument('--device', default=get_device(), help='default: %(default)s')
    add_cfg_options(parser)
    return parser


def load_embedder(args: argparse.Namespace) -> Embedder:
    if args.config:
        cfg = read_config(args.config, args.cfg_options)
        check_channels(cfg.model)
        model, _ = load_model(cfg, args.weights, args.device, only_backbone=True)
        return of_config(optimize(model) if cfg.get('optimize', True) else model, cfg)
    arch = args.arch or (args.weights if args.weights.startswith('timm://') else None)
    if arch is None:
        raise ConfigError('Give --config with the config of the weights, or --arch with their arch, such as B/16.')
    model = vit_plugin.create_model(arch, num_classes=0, pretrained=args.weights, img_size=args.img_size)
    return of_model(optimize(model.to(args.device).eval()))


def main(args: argparse.Namespace) -> None:
    if not args.out.endswith('.npz'):
        raise ConfigError(f'--out {args.out!r}: embeddings are written as .npz.')
    if args.config and (args.arch or args.img_size):
        raise ConfigError('--config says what the model is; leave out --arch and --img-size.')
    if args.cfg_options and not args.config:
        raise ConfigError('--cfg-options change the config; give --config, or leave them out.')
    files = image_files(args.images)
    check_target(args.out, files)
    check_device(args.device)
    check_checkpoint(args.weights)
    embedder, batches = load_embedder(args), []
    with tqdm(total=len(files), unit='image', disable=None) as progress:
        for batch in embed(embedder, files, args.batch_size):
            batches.append(batch)
            progress.update(len(batch))
    features = np.concatenate(batches)
    save_embeddings(args.out, files, normalised(features) if args.normalize else features)
    print(f'{args.out}: {features.shape[0]} vectors of {features.shape[1]} numbers.')


if __name__ == '__main__':
    run_tool(make_parser(), main)
