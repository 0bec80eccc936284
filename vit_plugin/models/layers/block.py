"""A block of the encoder."""

from timm.layers import LayerScale
from torch import Tensor, nn

from .attention import Attention
from .block_cfg import BlockCfg, Grid
from .drop_path import build_drop_path
from .mlp import GatedMlp, Mlp
from .numerics import build_norm
from .position_bias import BiasAttention
from .relative_position import RelativeAttention
from .rotary_attention import RotaryAttention, RotaryWindowAttention
from .window import BiasWindowAttention, RelativeWindowAttention, WindowAttention

# (kind of positions, whether within windows) -> class of the attention.
ATTENTION_CLASSES: dict[tuple[str, bool], type[Attention]] = {
    ('', False): Attention,
    ('', True): WindowAttention,
    ('decomposed', False): RelativeAttention,
    ('decomposed', True): RelativeWindowAttention,
    ('bias', False): BiasAttention,
    ('bias', True): BiasWindowAttention,
    ('shared_bias', False): BiasAttention,
    ('rotary', False): RotaryAttention,
    ('rotary', True): RotaryWindowAttention,
}


class TransformerBlock(nn.Module):
    """A pre-norm transformer encoder block (arXiv:2010.11929, Equations 2 and 3).

    Args:
        cfg: its components.

    Shape: tokens (B, N, embed_dims) -> tokens of the same shape, or (B, num_outputs, embed_dims).
    """

    def __init__(self, cfg: BlockCfg) -> None:
        super().__init__()
        self.norm1 = build_norm(cfg.numerics.norm_cfg, cfg.embed_dims)
        self.attn = build_attention(cfg)
        self.norm2 = build_norm(cfg.numerics.norm_cfg, cfg.embed_dims)
        self.mlp = build_mlp(cfg)
        scale = cfg.layer_scale_init_value
        has_mlp_scale = scale and cfg.mlp_layer_scale
        self.ls1 = LayerScale(cfg.embed_dims, scale) if scale else nn.Identity()
        self.ls2 = LayerScale(cfg.embed_dims, scale) if has_mlp_scale else nn.Identity()
        self.drop_path = build_drop_path(cfg.drop_path_rate)

    def forward(
        self,
        x: Tensor,
        grid: Grid,
        num_outputs: int | None = None,
        position_input: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        attended = self.attn(self.norm1(x), grid, num_outputs, position_input, mask)
        x = x[:, :num_outputs] + self.drop_path(self.ls1(attended))  # Eq. 2
        return x + self.drop_path(self.ls2(self.mlp(self.norm2(x))))  # Eq. 3


def build_attention(cfg: BlockCfg) -> Attention:
    """The attention of a block, by its kind of positions and by whether it has windows."""
    positions = cfg.relative.form if cfg.relative else ''
    if cfg.rotary_planes:
        positions = 'rotary'
    return ATTENTION_CLASSES[positions, cfg.window is not None](cfg)


def build_mlp(cfg: BlockCfg) -> Mlp:
    """The MLP of a block."""
    norm_cfg = cfg.numerics.norm_cfg
    return (GatedMlp if cfg.gated_mlp else Mlp)(
        cfg.embed_dims,
        cfg.feedforward_channels,
        cfg.numerics.act_cfg,
        drop_rate=cfg.drop_rate,
        bias=cfg.proj_bias,
        norm_cfg=norm_cfg if cfg.mlp_norm is True else None,
        input_norm_cfg=norm_cfg if cfg.mlp_norm == 'input' else None,
    )
