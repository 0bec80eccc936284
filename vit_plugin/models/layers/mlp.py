"""The encoder's feed-forward network."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from .linear import apply_linear
from .numerics import build_activation


class Mlp(nn.Module):
    """Two linear layers with an activation between them (arXiv:2010.11929, Section 3.1).

    Args:
        embed_dims: width of the tokens.
        feedforward_channels: width between the layers.
        act_cfg: the activation.
        drop_rate: dropout after each layer.
        gated: multiply the activation of one projection by another (arXiv:2002.05202); with ``SiLU`` this
            is SwiGLU. ``fc1`` holds both, the activated one first.

    Shape: (..., embed_dims) -> (..., embed_dims).
    """

    def __init__(self, embed_dims: int, feedforward_channels: int, act_cfg: Mapping[str, Any],
                 drop_rate: float = 0., gated: bool = False) -> None:
        super().__init__()
        self.gated = gated
        self.fc1 = nn.Linear(embed_dims, (1 + gated) * feedforward_channels)
        self.act = build_activation(act_cfg)
        self.fc2 = nn.Linear(feedforward_channels, embed_dims)
        self.drop = nn.Dropout(drop_rate)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """The authors' initialisation (`vit_jax/models_vit.py`, `MlpBlock`)."""
        for weight in (*self.fc1.weight.chunk(1 + self.gated), self.fc2.weight):
            nn.init.xavier_uniform_(weight)
        for layer in (self.fc1, self.fc2):
            nn.init.normal_(layer.bias, std=1e-6)

    def forward(self, x: Tensor) -> Tensor:
        if self.gated:
            x, gate = apply_linear(self.fc1, x).chunk(2, dim=-1)
            x = self.act(x) * gate
        else:
            x = apply_linear(self.fc1, x, self.act)
        return self.drop(apply_linear(self.fc2, self.drop(x)))  # (..., feedforward_channels) -> (..., embed_dims)
