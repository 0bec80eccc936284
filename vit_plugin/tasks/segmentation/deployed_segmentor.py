"""A trained segmentor as a graph for export."""

from vit_plugin.deploy.deployed_maps import DeployedMaps


class DeployedSegmentor(DeployedMaps):
    """MMSegmentation's segmentor -> logits (B, classes, H, W). The largest is a pixel's class."""

    # Overrides attributes of Deployed, which describes them.
    outputs = ('logits',)
