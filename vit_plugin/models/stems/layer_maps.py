"""A CNN that returns the map of every layer."""

from collections.abc import Iterable

from torch import Tensor, nn

from ..layers.recompute import Recompute, recomputed


class LayerMaps(nn.ModuleList):
    """Layers in order, each returning a map: (B, C, H, W) -> the maps (B, C_i, H_i, W_i).

    Args:
        layers: the layers.
        with_cp: see :func:`~vit_plugin.models.layers.recompute.recomputed`.
    """

    def __init__(self, layers: Iterable[nn.Module], with_cp: Recompute = False) -> None:
        super().__init__(layers)
        self.with_cp = with_cp

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        maps = []
        for layer in self:
            x = recomputed(self.with_cp, layer, x)
            maps.append(x)
        return tuple(maps)
