"""The encoder runs its blocks in order, and returns the outputs of some of them."""

import torch
from rejection import rejects

from vit_plugin.models import VisionTransformer
from vit_plugin.models.layers import Encoder


def test_lists_set_a_value_for_each_block(tiny):
    model = VisionTransformer(**tiny, encoder=dict(layer_scale_init_value=[0.1, 0.2]))
    assert [block.ls1.init_values for block in model.blocks] == [0.1, 0.2]
    with rejects('qk_norm has 3 values for 2 blocks'):
        VisionTransformer(**tiny, encoder=dict(qk_norm=[True, False, True]))


def test_encoder_outputs_equal_those_of_its_blocks_called_in_turn(tiny):
    blocks = VisionTransformer(**tiny, out_indices=(0, 1)).eval().blocks
    assert isinstance(blocks, Encoder)
    x = torch.randn(2, 17, 32)
    first = blocks[0](x, (4, 4))
    second = blocks[1](first, (4, 4))
    torch.testing.assert_close(blocks(x, (4, 4)), [first, second])
    torch.testing.assert_close(blocks(x, (4, 4), 1), [first[:, :1], second[:, :1]])
    torch.testing.assert_close(blocks.run_blocks(x, (4, 4), 0, 1), first)
    torch.testing.assert_close(blocks.run_blocks(first, (4, 4), 1, 2, 1), second[:, :1])
