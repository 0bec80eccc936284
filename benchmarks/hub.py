"""Compare this package with transformers on hub folders: outputs in float64, and pixels.

    python benchmarks hub PYTHON [--only NAME ...]

``PYTHON`` is the interpreter of an environment with ``transformers``, ``torch`` and ``pillow``. For
each model of :mod:`hub_reference`, transformers writes a folder with random weights by
``save_pretrained``, and computes logits or features for images of three sizes, and the pixels that
its processor makes of six odd images. This package reads the folder as ``infer`` does, and must
compute the same. It also writes the folder again as ``convert --to hf`` does, and transformers must
compute the same from it.

DINOv3 is an exception. Both compute its rotary positions in float32, so the outputs only agree
within 1e-7. Its processor cannot resize with Pillow, and rounds differently, so its pixels may
differ.
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

from benchmarks.detectors_reference import doubled
from benchmarks.hub_reference import MODELS
from benchmarks.measuring.differences import nan_as_inf, relative_difference
from vit_plugin.inference.load import load

# Allowed differences, relative to the largest output; with rotary positions they are in float32.
LIMIT, ROTARY_LIMIT = 1e-12, 1e-7
MAX_GRAY_LEVELS = 1e-3  # of 255, where the processor resizes by Pillow
SCRIPT = Path(__file__).resolve().with_name('hub_reference.py')


def run(command: list[str], own: bool = False) -> None:
    """Run a command silently, in this environment (``own``) or in that of the reference."""
    # Modules of this environment would shadow those of the reference.
    without_path = {key: value for key, value in os.environ.items() if key != 'PYTHONPATH'}
    subprocess.run(command, check=True, env=None if own else without_path, capture_output=True)


def rewritten_difference(name: str, folder: Path, python: str) -> float:
    """The largest difference of an output that writing the folder again makes, relative.

    Both outputs are transformers', for the first of the sizes.
    """
    again = folder / 'again'
    command = ['convert', str(folder), '--to', 'hf', '--out', str(again)]
    run([sys.executable, '-m', 'vit_plugin', *command], own=True)
    run([python, str(SCRIPT), name, str(folder), str(again)])
    (_, wanted), (_, found) = (torch.load(at / 'outputs.pt')['sizes'][0] for at in (folder, again))
    return relative_difference(found, wanted)


def compare(name: str, folder: Path, python: str) -> tuple[float, float]:
    """Compare the outputs and the pixels of a model.

    Returns:
        The largest difference of an output, relative to the largest output, and that of a pixel in
        gray levels.
    """
    run([python, str(SCRIPT), name, str(folder)])
    reference = torch.load(folder / 'outputs.pt')
    trained = load(folder, device='cpu', classify=MODELS[name].output == 'logits')
    model, output_differences, gray_levels = trained.model, [], [0.0]
    for path, wanted in reference['pixels'].items():
        batch = pseudo_collate([trained.sample(path)])
        found = model.data_preprocessor(batch, False)['inputs'][0]
        difference = nan_as_inf(float((found - wanted).abs().max()))
        gray_levels.append(255 * reference['std'] * difference)
    model.double()
    for images, wanted in reference['sizes']:
        with torch.no_grad(), doubled():
            features = model.extract_feat(images)
            found = model.head(features) if model.with_head else features[-1]
        output_differences.append(relative_difference(found, wanted))
    return max(output_differences), max(gray_levels)


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
                0.0  # a wrapped model is not written
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
