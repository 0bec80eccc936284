"""The certainty of a box, estimated from the distributions of its edges."""

import torch
from torch import Tensor, nn

from .fine_decoder import MLP


class LocationQuality(nn.Module):
    """Adds the certainty of a box's distributions to its class logits (GFLv2, arXiv:2011.12885).

    Args:
        top: number of largest probabilities per edge to use, in addition to their mean.
        channels, num_layers, act: width, layers and activation of the MLP.
    """

    def __init__(
        self, top: int = 4, channels: int = 64, num_layers: int = 2, act: str = 'ReLU'
    ) -> None:
        super().__init__()
        self.top = top
        self.mlp = MLP(4 * (top + 1), channels, 1, num_layers, act)
        for parameter in self.mlp.layers[-1].parameters():
            nn.init.zeros_(parameter)

    def forward(self, logits: Tensor, edge_logits: Tensor) -> Tensor:
        """Logits (..., classes) and those of the edges (..., 4 * (bins + 1)) -> class logits."""
        best = edge_logits.unflatten(-1, (4, -1)).softmax(-1).topk(self.top, dim=-1).values
        x = torch.cat((best, best.mean(-1, keepdim=True)), dim=-1).flatten(-2)
        return logits + self.mlp(x)
