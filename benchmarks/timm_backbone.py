"""Try a model of each of timm's modules as a ``TimmBackbone``: are its feature maps as declared?

    python benchmarks timm_backbone [--modules 'swin*'] [--out timm_backbone.md]

A ``TimmBackbone`` declares the channels and strides of its feature maps. From each module of timm,
such as ``swin_transformer``, the model with the fewest parameters is taken, among six whose names
sound small. It is built with random weights, and runs forward and backward with images of two
sizes. A model that does not take a size is built for it with ``img_size``.

It prints a row for each module, and a summary. The status is 1 if the maps of a model differ from
those that it declares, except for the modules in ``UNEVEN``.
"""

import argparse
import fnmatch
import sys
import time
from collections import Counter
from pathlib import Path

import timm
import torch

from vit_plugin.errors import ConfigError
from vit_plugin.models import TimmBackbone

SIZES = ((224, 224), (256, 320))
# Parts of names that sound small, the smallest first.
SMALL = (
    'test',
    'zepto',
    'atto',
    'femto',
    'pico',
    'nano',
    'tiny',
    'xxs',
    'xxt',
    'xs',
    'mini',
    '_s',
    't0',
    'm0',
    'b0',
    'small',
    '18',
    '26',
    '050',
    '_n',
)
MAX_PARAMETERS = 60_000_000  # larger models are not tried
# Modules whose maps do not have the size H/stride: they do not pad, resize the image, or declare
# another stride.
UNEVEN = {
    'crossvit',
    'inception_resnet_v2',
    'inception_v3',
    'inception_v4',
    'nasnet',
    'pit',
    'pnasnet',
    'tresnet',
    'xception',
}


def smallest(module: str) -> tuple[str, int]:
    """The name of a small model of a module, and its number of parameters."""
    names = timm.list_models(module=module)
    by_name = sorted(
        names,
        key=lambda name: (
            min((SMALL.index(word) for word in SMALL if word in name), default=len(SMALL)),
            len(name),
        ),
    )
    sizes = {}
    for name in by_name[:6]:
        with torch.device('meta'):
            sizes[name] = sum(
                parameter.numel()
                for parameter in timm.create_model(name, num_classes=0).parameters()
            )
    return min(sizes.items(), key=lambda item: item[1])


def check(name: str, size: tuple[int, int], **options) -> tuple[str, set[str]]:
    """Run a model forward and backward.

    Args:
        name: name of the model.
        size: height and width of the images.
        **options: further arguments of the ``TimmBackbone``.

    Returns:
        The faults of its maps, in words, and the names of the parameters without a gradient. The
        latter include parts to shard that are not called: FSDP gathers a part when it is called.
    """
    torch.manual_seed(0)
    model = TimmBackbone(name, out_type='pyramid', **options).train()
    called = set()
    for part in model.parts_to_shard():
        part.register_forward_hook(lambda part, *_: called.add(part))
    features = model(torch.randn(2, 3, *size))
    sum(feature.float().mean() for feature in features).backward()
    without_gradient = {
        key
        for key, parameter in model.named_parameters()
        if parameter.requires_grad and parameter.grad is None
    }
    without_gradient |= {
        key
        for key, part in model.named_modules()
        if part in model.parts_to_shard() and part not in called
    }
    wrong = [
        f'{tuple(feature.shape[1:])} for {channels} channels at stride {stride}'
        for feature, channels, stride in zip(features, model.channels, model.strides, strict=True)
        if feature.shape[1] != channels
        or not feature.isfinite().all()
        or any(
            side not in (pixels // stride, -(-pixels // stride))
            for side, pixels in zip(feature.shape[2:], size, strict=True)
        )
    ]
    return '; '.join(wrong), without_gradient


def outcome(name: str, size: tuple[int, int]) -> tuple[str, str, set[str]]:
    """How a model takes a size.

    Returns:
        The kind of outcome, for the summary; the cell of the table; and the parameters without a
        gradient.
    """
    reason = ''
    for kind, options in (('right', {}), ('right with img_size', dict(img_size=size))):
        try:
            wrong, without_gradient = check(name, size, **options)
        except ConfigError as error:
            return 'rejected', reason or str(error), set()
        except Exception as error:
            reason = reason or f'{type(error).__name__}: {error}'.splitlines()[0][:80]
            continue
        if wrong:
            return 'other maps', wrong, without_gradient
        return kind, kind, without_gradient
    return 'not at this size', reason, set()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition('\n\n')[0])
    parser.add_argument('--modules', default='*', help='pattern of the modules')
    parser.add_argument('--out', type=Path, help='file for the table')
    args = parser.parse_args()
    modules = fnmatch.filter(timm.list_modules(), args.modules)
    if not modules:
        parser.error(f'--modules {args.modules}: no module of timm matches it')
    counts, uneven, start = Counter(), set(), time.time()
    rows = [
        '| module | name | '
        + ' | '.join(f'{h} x {w}' for h, w in SIZES)
        + ' | parameters without gradient |',
        '|---|---|---|---|--:|',
    ]
    print(*rows, sep='\n')
    for module in modules:
        name, number = smallest(module)
        outcomes = (
            [outcome(name, size) for size in SIZES]
            if number < MAX_PARAMETERS
            else [('too large', 'too large', set())] * 2
        )
        counts[outcomes[1][0]] += 1
        if 'other maps' in {kind for kind, *_ in outcomes}:
            uneven.add(module)
        rows.append(
            f'| {module} | `{name}` | '
            + ' | '.join(text for _, text, _ in outcomes)
            + f' | {len(outcomes[0][2] | outcomes[1][2])} |'
        )
        print(rows[-1], flush=True)
        if args.out:
            args.out.write_text('\n'.join(rows) + '\n')
    print(
        f'timm {timm.__version__}, {sum(counts.values())} modules at {SIZES[1]}: '
        + ', '.join(f'{count} {kind}' for kind, count in sorted(counts.items()))
        + f'; {time.time() - start:.0f} s'
    )
    return int(bool(uneven - UNEVEN))


if __name__ == '__main__':
    sys.exit(main())
