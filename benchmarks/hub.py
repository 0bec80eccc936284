"""Encoders and classifiers of a hub beside transformers' own code, in float64, and their pixels.

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

LIMIT, ROTARY = 1e-12, 1e-7  # of the largest output
LEVELS = 1e-3  # of 255 gray levels, where the processor resizes by Pillow
SCRIPT = Path(__file__).resolve().with_name('hub_reference.py')


def run(command: list[str], own: bool = False) -> None:
    """Run a command, in this environment or in the reference's, and show nothing of it."""
    theirs = {key: value for key, value in os.environ.items() if key != 'PYTHONPATH'}
    subprocess.run(command, check=True, env=None if own else theirs, capture_output=True)


def back(name: str, folder: Path, python: str) -> float:
    """The largest difference of an output of the folder that is written again, over the largest."""
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
    model, off, gray = trained.model, 0.0, 0.0
    for path, wanted in reference['pixels'].items():
        batch = pseudo_collate([trained.sample(path)])
        found = model.data_preprocessor(batch, False)['inputs'][0]
        gray = max(gray, 255 * reference['std'] * float((found - wanted).abs().max()))
    model.double()
    for images, wanted in reference['sizes']:
        with torch.no_grad(), doubled():
            features = model.extract_feat(images)
            found = model.head(features) if model.with_head else features[-1]
        off = max(off, apart(found, wanted))
    return off, gray


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
            off, gray = compare(name, Path(folder), args.python)
            again = 0.0 if MODELS[name].wrapped else back(name, Path(folder), args.python)
        is_dinov3 = name.startswith('DINOv3')
        bad = max(off, again) > (ROTARY if is_dinov3 else LIMIT) or (
            gray > LEVELS and not is_dinov3
        )
        wrong += bad
        print(
            f'{"WRONG " if bad else ""}{name}: outputs differ by {off:.1e} of the largest, pixels '
            f'by {gray:.1e} of 255'
            + ('' if MODELS[name].wrapped else f', outputs written again by {again:.1e}'),
            flush=True,
        )
    print(f'{len(args.only)} models, {wrong} wrong')
    sys.exit(wrong > 0)


if __name__ == '__main__':
    main()
