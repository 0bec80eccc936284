import torch
from torch import nn

from benchmarks.measuring.calls import count_flops, interleaved, peak_memory

CPU = torch.device('cpu')


def test_peak_memory_is_the_largest_sum_held_at_once():
    def call() -> None:
        first = torch.empty(1 << 20)  # 4 MiB
        del first
        second, third = torch.empty(1 << 19), torch.empty(1 << 20)  # 2 + 4 MiB
        del third, second

    allocated_before = torch.empty(1 << 22)  # does not count
    assert peak_memory(call, CPU) == 6 << 20
    del allocated_before


def test_each_round_begins_with_the_next_call():
    order = []
    times = interleaved({name: lambda name=name: order.append(name) for name in 'abc'}, 3)
    assert ''.join(order) == 'abcbcacab'
    assert [len(values) for values in times.values()] == [3, 3, 3]


def test_flops_of_a_linear_layer_are_counted():
    layer, x = nn.Linear(8, 16), torch.randn(10, 8)
    assert count_flops(lambda: layer(x)) == 2 * 10 * 8 * 16
