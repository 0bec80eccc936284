"""Write a checkpoint in another format.

    python tools/convert_weights.py B_16.npz vit-base-p16.safetensors --to timm
"""

import argparse
from pathlib import Path

import numpy as np
import safetensors.torch
import torch

from vit_plugin.engine.launch import one_sentence_errors
from vit_plugin.errors import ConfigError
from vit_plugin.weights import FORMATS, in_our_names
from vit_plugin.weights.sources import open_weights

WRITERS = {
    '.npz': lambda weights, path: np.savez(path, **{key: value.numpy() for key, value in weights.items()}),
    '.safetensors': safetensors.torch.save_file,
    '.pth': torch.save,
    '.bin': torch.save,
}
HEAD_WIDTH = 64  # of every published ViT up to L; H, g and G have others


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description='Write a checkpoint in another format.')
    parser.add_argument('source', help='path, http(s)://, timm://MODEL or hf://ORG/MODEL')
    parser.add_argument('target', type=Path, help=f'file to write: {", ".join(WRITERS)}')
    parser.add_argument('--to', required=True, choices=list(FORMATS), help='format of its names')
    parser.add_argument('--num-heads', type=int, help=f'attention heads; by default the width over {HEAD_WIDTH}')
    return parser.parse_args()


def main() -> None:
    args = parse_args()
    with one_sentence_errors():
        if args.target.suffix not in WRITERS:
            raise ConfigError(f'The target {str(args.target)!r} must end in one of {", ".join(WRITERS)}.')
        state, form = in_our_names(open_weights(args.source))
        heads = args.num_heads or max(state['norm.weight'].shape[0] // HEAD_WIDTH, 1)
        if state['norm.weight'].shape[0] % heads:
            raise ConfigError(f'--num-heads {heads} does not divide the width {state["norm.weight"].shape[0]}.')
        exported, left = FORMATS[args.to].export(state, heads)
        WRITERS[args.target.suffix](exported, args.target)
        print(f'{len(exported)} tensors from the format {form.name} to {args.to}: {args.target}')
        if left:
            print(f'{args.to} has no name for {", ".join(left)}, which were left out')


if __name__ == '__main__':
    main()
