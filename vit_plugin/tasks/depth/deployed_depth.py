"""A trained model of depth as a graph."""

import math

from vit_plugin.deploy.deployed_maps import DeployedMaps


class DeployedDepth(DeployedMaps):
    """A model of depth -> depth or disparity (B, 1, H, W)."""

    outputs = ('depth',)

    @property
    def least(self) -> int:
        """DPT's coarsest map is half of that of the tokens, and more than a pixel."""
        return max(super().least, math.ceil(3 * self.stride / self.unit))
