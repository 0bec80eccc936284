import torch
import torch.nn.functional as F
from torch import nn

from vit_plugin.apps.benchmark.measure import LinearProducts, count_flops, interleaved, peak_memory

CPU = torch.device('cpu')


def test_peak_memory_is_the_most_held_at_once():
    def call() -> None:
        first = torch.empty(1 << 20)  # 4 MiB
        del first
        second, third = torch.empty(1 << 19), torch.empty(1 << 20)  # 2 + 4 MiB
        del third, second

    held = torch.empty(1 << 22)  # from before: does not count
    assert peak_memory(call, CPU) == 6 << 20
    del held


def test_others_go_first_in_turn():
    order = []
    times = interleaved({name: lambda name=name: order.append(name) for name in 'abc'}, 3)
    assert ''.join(order) == 'abcbcacab'
    assert [len(values) for values in times.values()] == [3, 3, 3]


def test_matrix_products_of_a_model_alone():
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))
    x = torch.randn(2, 5, 8)
    with LinearProducts() as products:
        F.linear(model(x), torch.ones(3, 8))
    assert products.counts == {(10, 8, 16): 1, (10, 16, 8): 1, (10, 8, 3): 1}
    assert count_flops(products.call(x)) == 2 * 10 * 8 * (16 + 16 + 3)
