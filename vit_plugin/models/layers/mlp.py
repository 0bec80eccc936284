"""The encoder's feed-forward network."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from .numerics import build_activation


class Mlp(nn.Module):
    """Two linear layers with an activation between them (arXiv:2010.11929, Section 3.1).

    Shape: (..., embed_dims) -> (..., embed_dims).
    """

    def __init__(self, embed_dims: int, feedforward_channels: int, act_cfg: Mapping[str, Any],
                 drop_rate: float = 0.) -> None:
        super().__init__()
        self.fc1 = nn.Linear(embed_dims, feedforward_channels)
        self.act = build_activation(act_cfg)
        self.fc2 = nn.Linear(feedforward_channels, embed_dims)
        self.drop = nn.Dropout(drop_rate)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """The authors' initialisation (`vit_jax/models_vit.py`, `MlpBlock`)."""
        for layer in (self.fc1, self.fc2):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.normal_(layer.bias, std=1e-6)

    def forward(self, x: Tensor) -> Tensor:
        x = self.drop(self.act(self.fc1(x)))  # (..., feedforward_channels)
        return self.drop(self.fc2(x))  # (..., embed_dims)
