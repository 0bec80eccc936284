"""The MLP of a block."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from .numerics import build_activation, build_norm


class Mlp(nn.Module):
    """Two linear layers with an activation between them (arXiv:2010.11929, Section 3.1).

    Args:
        embed_dims: width of the tokens.
        feedforward_channels: width between the layers.
        act_cfg: the activation.
        drop_rate: dropout after each layer.
        bias: whether the layers have a bias.
        norm_cfg: norm of the hidden values before the second layer (sub-LN, arXiv:2210.06423). None
            for no norm.
        input_norm_cfg: norm of the tokens before the first layer, as in ViTamin. None for no norm.

    Shape: (..., embed_dims) -> (..., embed_dims).
    """

    num_hidden_parts = 1  # parts of the output of fc1, each ``feedforward_channels`` wide

    def __init__(
        self,
        embed_dims: int,
        feedforward_channels: int,
        act_cfg: Mapping[str, Any],
        drop_rate: float = 0.0,
        bias: bool = True,
        norm_cfg: Mapping[str, Any] | None = None,
        input_norm_cfg: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.input_norm = (
            build_norm(input_norm_cfg, embed_dims) if input_norm_cfg else nn.Identity()
        )
        self.fc1 = nn.Linear(embed_dims, self.num_hidden_parts * feedforward_channels, bias=bias)
        self.act = build_activation(act_cfg)
        self.norm = build_norm(norm_cfg, feedforward_channels) if norm_cfg else nn.Identity()
        self.fc2 = nn.Linear(feedforward_channels, embed_dims, bias=bias)
        self.drop = nn.Dropout(drop_rate)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize as the authors do (`vit_jax/models_vit.py`, `MlpBlock`)."""
        for weight in (*self.fc1.weight.chunk(self.num_hidden_parts), self.fc2.weight):
            nn.init.xavier_uniform_(weight)
        for layer in (self.fc1, self.fc2):
            if layer.bias is not None:
                nn.init.normal_(layer.bias, std=1e-6)

    def forward(self, x: Tensor) -> Tensor:
        x = self.drop(self.hidden(self.input_norm(x)))  # (..., feedforward_channels)
        return self.drop(self.fc2(self.norm(x)))

    def hidden(self, x: Tensor) -> Tensor:
        """The activated values (..., feedforward_channels) between the layers."""
        return self.act(self.fc1(x))


class GatedMlp(Mlp):
    """An MLP whose hidden values are multiplied by a gate (arXiv:2002.05202).

    With ``SiLU`` this is SwiGLU. ``fc1`` computes both parts. The activation applies to the first.
    """

    num_hidden_parts = 2

    def hidden(self, x: Tensor) -> Tensor:
        x, gate = self.fc1(x).chunk(2, dim=-1)  # (..., feedforward_channels) each
        return self.act(x) * gate
