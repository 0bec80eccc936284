"""What DINOv2 adds to DINO (arXiv:2304.07193, Section 4)."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from mmengine.dist import all_reduce
from torch import Tensor

from vit_plugin.models.layers.block_cfg import Grid

# Attempts per mask; least patches and aspect ratio of a block.
MASK_BLOCKS, PATCHES, ASPECT = 32, 4, 0.3


def block_masks(number: int, grid: Grid, ratio: Sequence[float]) -> Tensor:
    """Random masks (number, h, w), True for hidden patches, which are blocks in half of the masks.

    Their shares are spread evenly over ``ratio``, and smaller if no further block fits.
    """
    half, lengths = number // 2, torch.tensor(grid)[:, None]
    edges = torch.linspace(ratio[0], ratio[1], half + 1)
    shares = F.pad(edges[:-1].lerp(edges[1:], torch.rand(half)), (0, number - half))
    wanted = (shares[torch.randperm(number)] * lengths.prod()).long()
    places = torch.cartesian_prod(*map(torch.arange, grid)).T[:, None]  # (2, 1, h*w)
    hidden = torch.zeros(number, places.shape[2], dtype=torch.bool)
    for _ in range(MASK_BLOCKS):
        left = wanted - hidden.sum(dim=1)
        area, aspect, *corner = torch.rand(4, number)
        area, aspect = PATCHES + (left - PATCHES) * area, ASPECT ** (2 * aspect - 1)
        sides = torch.stack((area * aspect, area / aspect)).sqrt().round()
        first = (torch.stack(corner) * (lengths - sides + 1)).floor()
        inside = (places >= first[..., None]) & (places < (first + sides)[..., None])
        new = inside.all(dim=0) & ~hidden  # (number, h*w)
        fits = (sides < lengths).all(dim=0) & (new.sum(dim=1) <= left)
        hidden |= new & fits[:, None]
    return hidden.unflatten(1, grid)


def koleo(features: Tensor) -> Tensor:
    """KoLeo: a penalty for features (B, C) close to each other (arXiv:1806.03198, Section 3).

    Neighbors are searched only within this process, as in the authors' DINOv2.
    """
    x = F.normalize(features, dim=-1)
    nearest = torch.cdist(x.detach(), x.detach()).fill_diagonal_(torch.inf).argmin(dim=1)
    return -torch.log(F.pairwise_distance(x, x[nearest], eps=1e-8) + 1e-8).mean()


def sinkhorn_knopp(scores: Tensor, iterations: int = 3) -> Tensor:
    """Scores (..., K) -> distributions that use all K equally in all processes (2006.09882)."""
    x = scores.exp()
    for _ in range(iterations):
        total = x.flatten(0, -2).sum(dim=0)
        all_reduce(total)
        x = x / total
        x = x / x.sum(dim=-1, keepdim=True)
    return x
