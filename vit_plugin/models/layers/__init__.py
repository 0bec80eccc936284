from .attention import Attention
from .attention_pool import AttentionPool
from .block import BranchedBlock, ParallelBlock, PostNormBlock, TransformerBlock
from .differential import DifferentialAttention
from .encoder import Encoder, MergingEncoder
from .mlp import GatedMlp, Mlp
from .numerics import NUMERICS, Numerics
from .relative_position import RelativeAttention
from .rotary import AxialRotary, MixedRotary
from .rotary_attention import RotaryAttention, RotaryWindowAttention
from .std_conv import StdConv2d
from .window import RelativeWindowAttention, WindowAttention

__all__ = [
    'NUMERICS', 'Attention', 'AttentionPool', 'AxialRotary', 'BranchedBlock', 'DifferentialAttention', 'Encoder',
    'GatedMlp', 'MergingEncoder', 'MixedRotary', 'Mlp', 'Numerics', 'ParallelBlock', 'PostNormBlock',
    'RelativeAttention', 'RelativeWindowAttention', 'RotaryAttention', 'RotaryWindowAttention', 'StdConv2d',
    'TransformerBlock', 'WindowAttention']
