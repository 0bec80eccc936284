"""Encoders and classifiers of a hub next to transformers' own code, in float64, and their pixels.

    python benchmarks hub PYTHON [--only NAME ...]

``PYTHON`` is that of an environment with ``transformers``, ``torch`` and ``pillow``. It writes each
folder as ``save_pretrained`` does, with random weights, and computes logits or features of three
sizes, and the processor's pixels of six odd images. This package reads the folder as ``infer``
does, and writes it again as ``convert --to hf`` does, for transformers to compute the first size.
DINOv3's rotary positions are computed in float32 by both, so that they agree within 1e-7;
its processor has no version with Pillow, and another one rounds otherwise.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import torch
from mmengine.dataset import pseudo_collate

from benchmarks.detectors import apart
from benchmarks.detectors_reference import doubled
from benchmarks.hub_reference import MODELS
from vit_plugin.inference.load import load

# Allowed differences, relative to the largest output; with rotary positions they are in float32.
LIMIT, ROTARY_LIMIT = 1e-12, 1e-7
MAX_GRAY_LEVELS = 1e-3  # of 255, where the processor resizes by Pillow
SCRIPT = Path(__file__).resolve().with_name('hub_reference.py')


def run(command: list[str], own: bool = False) -> None:
    """Run a command silently, in our ``own`` environment or in the reference's."""
    theirs = {key: value for key, value in os.environ.items() if key != 'PYTHONPATH'}
    subprocess.run(command, check=True, env=None if own else theirs, capture_output=True)


def rewritten_difference(name: str, folder: Path, python: str) -> float:
    """The largest difference of an output after the folder is written again, over the largest."""
    again = folder / 'again'
    command = ['convert', str(folder), '--to', 'hf', '--out', str(again)]
    run([sys.executable, '-m', 'vit_plugin', *command], own=True)
    run([python, str(SCRIPT), name, str(folder), str(again)])
    (_, wanted), (_, found) = (torch.load(at / 'outputs.pt')['sizes'][0] for at in (folder, again))
    return apart(found, wanted)


def compare(name: str, folder: Path, python: str) -> tuple[float, float]:
    """The largest difference of an output over the largest, and of a pixel in gray levels."""
    run([python, str(SCRIPT), name, str(folder)])
    reference = torch.load(folder / 'outputs.pt')
    trained = load(folder, device='cpu', classify=MODELS[name].gives == 'logits')
    model, output_difference, gray_levels = trained.model, 0.0, 0.0
    for path, wanted in reference['pixels'].items():
        batch = pseudo_collate([trained.sample(path)])
        found = model.data_preprocessor(batch, False)['inputs'][0]
        difference = 255 * reference['std'] * float((found - wanted).abs().max())
        gray_levels = max(gray_levels, difference)
    model.double()
    for images, wanted in reference['sizes']:
        with torch.no_grad(), doubled():
            features = model.extract_feat(images)
            found = model.head(features) if model.with_head else features[-1]
        output_difference = max(output_difference, apart(found, wanted))
    return output_difference, gray_levels


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('python', help='the interpreter of the reference environment')
    parser.add_argument('--only', nargs='+', choices=MODELS, default=list(MODELS), metavar='NAME')
    args = parser.parse_args()
    warnings.simplefilter('ignore')
    wrong = 0
    for name in args.only:
        with tempfile.TemporaryDirectory() as folder:
            difference, gray_levels = compare(name, Path(folder), args.python)
            again = (
                0.0
                if MODELS[name].wrapped
                else rewritten_difference(name, Path(folder), args.python)
            )
        is_dinov3 = name.startswith('DINOv3')
        allowed = ROTARY_LIMIT if is_dinov3 else LIMIT
        is_wrong = max(difference, again) > allowed or (
            gray_levels > MAX_GRAY_LEVELS and not is_dinov3
        )
        wrong += is_wrong
        print(
            f'{"WRONG " if is_wrong else ""}{name}: outputs differ by {difference:.1e} of the '
            f'largest, pixels by {gray_levels:.1e} of 255'
            + ('' if MODELS[name].wrapped else f', outputs written again by {again:.1e}'),
            flush=True,
        )
    print(f'{len(args.only)} models, {wrong} wrong')
    sys.exit(wrong > 0)


if __name__ == '__main__':
    main()
