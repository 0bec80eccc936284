"""Additions of DINOv2 to DINO (arXiv:2304.07193, Section 4)."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from mmengine.dist import all_reduce
from torch import Tensor

from vit_plugin.models.layers.block_cfg import Grid

BLOCK_ATTEMPTS = 32  # blocks that are tried for each mask
# Smallest area of a block in patches, and its smallest aspect ratio. The largest is 1 / MIN_ASPECT.
MIN_PATCHES, MIN_ASPECT = 4, 0.3


def block_masks(number: int, grid: Grid, ratio: Sequence[float]) -> Tensor:
    """Random masks (number, h, w), True for masked patches.

    Half of the masks hide rectangular blocks, the others nothing. The fractions of masked patches
    are spread evenly over ``ratio``, and are smaller if no further block fits.
    """
    half, grid_sides = number // 2, torch.tensor(grid)[:, None]  # (2, 1)
    # A random fraction in each of `half` equal intervals of the range, and 0 for the other masks.
    bounds = torch.linspace(ratio[0], ratio[1], half + 1)
    fractions = F.pad(bounds[:-1].lerp(bounds[1:], torch.rand(half)), (0, number - half))
    targets = (fractions[torch.randperm(number)] * grid_sides.prod()).long()  # patches to mask
    coordinates = torch.cartesian_prod(*map(torch.arange, grid)).T[:, None]  # (2, 1, h*w)
    masks = torch.zeros(number, coordinates.shape[2], dtype=torch.bool)
    # Each attempt draws one block for every mask, and adds it where it fits.
    for _ in range(BLOCK_ATTEMPTS):
        remaining = targets - masks.sum(dim=1)
        area, aspect, *offset = torch.rand(4, number)  # in [0, 1), scaled below
        area = MIN_PATCHES + (remaining - MIN_PATCHES) * area
        aspect = MIN_ASPECT ** (2 * aspect - 1)  # log-uniform
        sides = torch.stack((area * aspect, area / aspect)).sqrt().round()
        corner = (torch.stack(offset) * (grid_sides - sides + 1)).floor()
        inside = (coordinates >= corner[..., None]) & (coordinates < (corner + sides)[..., None])
        added = inside.all(dim=0) & ~masks  # (number, h*w)
        fits = (sides < grid_sides).all(dim=0) & (added.sum(dim=1) <= remaining)
        masks |= added & fits[:, None]
    return masks.unflatten(1, grid)


def koleo(features: Tensor) -> Tensor:
    """KoLeo: a penalty for features (B, C) close to each other (arXiv:1806.03198, Section 3).

    Neighbors are searched only within this process, as in the authors' DINOv2.
    """
    x = F.normalize(features, dim=-1)
    nearest = torch.cdist(x.detach(), x.detach()).fill_diagonal_(torch.inf).argmin(dim=1)
    return -torch.log(F.pairwise_distance(x, x[nearest], eps=1e-8) + 1e-8).mean()


def sinkhorn_knopp(scores: Tensor, iterations: int = 3) -> Tensor:
    """Scores (..., K) -> distributions that use all K prototypes equally (SwAV, arXiv:2006.09882).

    They are balanced over the samples of all processes together.
    """
    x = scores.exp()
    for _ in range(iterations):
        total = x.flatten(0, -2).sum(dim=0)
        all_reduce(total)
        x = x / total
        x = x / x.sum(dim=-1, keepdim=True)
    return x
