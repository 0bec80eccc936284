"""The layers of the transformer encoder, and what stems share with them."""

from .attention import Attention
from .attention_pool import AttentionPool
from .block import TransformerBlock
from .block_cfg import BlockCfg
from .encoder import Encoder
from .mlp import GatedMlp, Mlp
from .numerics import NUMERICS, Numerics
from .position_bias import BiasAttention
from .relative_position import RelativeAttention
from .rotary import AxialRotary, MixedRotary
from .rotary_attention import RotaryAttention, RotaryWindowAttention
from .std_conv import StdConv2d
from .window import BiasWindowAttention, RelativeWindowAttention, WindowAttention

__all__ = [
    'NUMERICS',
    'Attention',
    'AttentionPool',
    'AxialRotary',
    'BiasAttention',
    'BiasWindowAttention',
    'BlockCfg',
    'Encoder',
    'GatedMlp',
    'MixedRotary',
    'Mlp',
    'Numerics',
    'RelativeAttention',
    'RelativeWindowAttention',
    'RotaryAttention',
    'RotaryWindowAttention',
    'StdConv2d',
    'TransformerBlock',
    'WindowAttention',
]
