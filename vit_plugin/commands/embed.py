r"""Write the features of images to a file, to search and compare them.

vit-plugin embed timm://vit_small_patch14_dinov2.lvd142m IMAGE_OR_FOLDER... \
        --out embeddings.npz
vit-plugin embed CHECKPOINT IMAGE_OR_FOLDER... --out embeddings.npz
"""

from argparse import ArgumentParser, Namespace

from .flags import a_file, add_flags, add_model_arguments, load_model

# Advice if memory runs out, see commands/__init__.py.
LESS_MEMORY = 'give a smaller --batch-size'


def add_arguments(parser: ArgumentParser) -> None:
    add_model_arguments(parser)
    add_flags(parser, 'images')
    add_flags(
        parser,
        '--out',
        type=a_file('.npz'),
        required=True,
        help='a .npz file for `names` and `features`',
    )
    parser.add_argument('--normalize', action='store_true', help='scale each vector to unit length')
    add_flags(parser, '--batch-size', default=32)


def check(args: Namespace) -> None:
    """Find the images and check the output file, without importing torch."""
    from anyfolder.complete import check_target
    from vit_plugin.inference.inputs import find_inputs
    from vit_plugin.inference.targets import check_no_input_overwritten

    args.images = find_inputs(args.images, with_videos=False)
    check_target(args.out)
    check_no_input_overwritten([args.out], args.images)


def main(args: Namespace) -> None:
    import numpy as np
    import torch
    from torch.nn.functional import normalize
    from tqdm import tqdm

    from vit_plugin.inference.embedding import embed, save_embeddings
    from vit_plugin.inference.inputs import Reading

    trained = load_model(args, classify=False).optimized()
    reading, names, batches = Reading(args.images), [], []
    with tqdm(total=len(args.images), unit='image', disable=None) as progress:
        for batch_names, vectors in embed(trained, reading, args.batch_size):
            names += batch_names
            batches.append(vectors)
            progress.update(len(vectors))
    if batches:
        features = torch.from_numpy(np.concatenate(batches))
        save_embeddings(args.out, names, normalize(features) if args.normalize else features)
        print(f'{args.out}: {features.shape[0]} vectors of {features.shape[1]} numbers.')
    reading.finish()  # raises if an input could not be read
