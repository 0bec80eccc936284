"""Read golden files (weights and outputs of the authors' code), and compare outputs with them."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

FOLDER = Path(__file__).parents[1] / 'golden'
NAMES = sorted(path.stem for path in FOLDER.glob('*.npz'))


def recorded(path: Path) -> dict[str, np.ndarray]:
    """All arrays of an ``.npz``, with the file closed."""
    with np.load(path) as arrays:
        return dict(arrays)


class Golden:
    """A golden file of the original ViT (google-research/vision_transformer).

    Attributes:
        arrays: all arrays of the file.
        meta: the sizes of the model.
        images: its inputs (B, 3, H, W).
        tokens: the encoder's output for them.
        logits: the classes' logits for them.
    """

    def __init__(self, name: str) -> None:
        self.arrays = recorded(FOLDER / f'{name}.npz')
        self.meta = json.loads(str(self.arrays['meta']))
        self.images = torch.from_numpy(self.arrays['images_nhwc']).permute(0, 3, 1, 2)
        self.tokens, self.logits = (
            torch.from_numpy(self.arrays[key]) for key in ('encoder_tokens', 'logits')
        )

    @property
    def arch(self) -> dict:
        """The ``arch`` of our model with these sizes."""
        meta = self.meta
        arch = dict(
            embed_dims=meta['hidden'],
            num_layers=meta['layers'],
            num_heads=meta['heads'],
            feedforward_channels=meta['mlp'],
            patch_size=meta['patch'][0],
        )
        if meta['resnet'] is not None:
            arch['resnet'] = dict(stage_depths=meta['resnet'], width=int(64 * meta['width']))
        return arch


def relative_error(ours: Tensor, theirs: Tensor) -> tuple[float, float]:
    """The mean and the largest difference, both relative to the largest value of ``theirs``."""
    difference = (ours - theirs).abs() / theirs.abs().max()
    return difference.mean().item(), difference.max().item()


def assert_alike(outputs: Callable[[Tensor], tuple[Tensor, Tensor]]) -> None:
    """Assert that two models agree: ``outputs`` maps images to the output of each."""
    with torch.no_grad():
        assert_same(*outputs(torch.randn(2, 3, 32, 32)))


def assert_same(ours: Tensor, theirs: Tensor) -> None:
    """Assert that two outputs are equal up to rounding in float32.

    The reference is rounded too: on the golden hybrids, even our network in float64 differs from
    the authors' float32 by up to 3.2e-6. The largest difference may therefore be 5e-6.
    """
    mean, largest = relative_error(ours, theirs)
    assert mean < 1e-6
    assert largest < 5e-6
