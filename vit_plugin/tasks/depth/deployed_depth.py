"""A trained depth model as a graph."""

import math

from vit_plugin.deploy.deployed_maps import DeployedMaps


class DeployedDepth(DeployedMaps):
    """A depth model -> depth or disparity (B, 1, H, W)."""

    # Overrides attributes of Deployed, which describes them.
    outputs = ('depth',)

    @property
    def min_units(self) -> int:
        """DPT's coarsest map has half the size of the tokens' map, and must exceed one pixel."""
        return max(super().min_units, math.ceil(3 * self.stride / self.unit))
