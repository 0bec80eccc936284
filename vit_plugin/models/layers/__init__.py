from .attention import Attention
from .attention_pool import AttentionPool
from .block import TransformerBlock
from .mlp import Mlp
from .numerics import NUMERICS, Numerics
from .std_conv import StdConv2d
from .token_merging import MergingBlock

__all__ = [
    'NUMERICS', 'Attention', 'AttentionPool', 'MergingBlock', 'Mlp', 'Numerics', 'StdConv2d', 'TransformerBlock']
