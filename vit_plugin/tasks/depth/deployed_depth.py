"""A trained depth model as a graph for export."""

import math

from vit_plugin.deploy.deployed_maps import DeployedMaps


class DeployedDepth(DeployedMaps):
    """A depth model -> depth or disparity (B, 1, H, W)."""

    # Overrides attributes of Deployed, which describes them.
    outputs = ('depth',)

    @property
    def min_units(self) -> int:
        """Enough for three tokens along a side.

        DPT's coarsest map has half as many elements, rounded up, and torch.export treats a side of
        1 as constant.
        """
        return max(super().min_units, math.ceil(3 * self.stride / self.unit))
