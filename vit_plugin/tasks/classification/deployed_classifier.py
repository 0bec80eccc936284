"""A trained classifier of MMPretrain as a graph for export."""

from torch import Tensor

from vit_plugin.deploy.deployed_module import Deployed


class DeployedClassifier(Deployed):
    """MMPretrain's classifier -> logits (B, classes)."""

    # Overrides attributes of Deployed, which describes them.
    outputs = ('logits',)

    def forward(self, images: Tensor, sizes: Tensor | None = None) -> Tensor:
        return self.model.head(self.features(images, sizes)).float()
