"""What the process holds, measured in one of its own."""

import subprocess
import sys

import pytest

SCRIPT = '''
import torch
from vit_plugin.models import VisionTransformer
from vit_plugin.passes import optimize


def resident() -> float:
    with open('/proc/self/statm') as file:
        return int(file.read().split()[1]) * 4096 / 2**20


model = optimize(VisionTransformer('S/16', out_type='featmap').eval(), linear='onednn')
sizes = [(16 * rows, 16 * columns) for rows in range(8, 18) for columns in range(8, 23)]
with torch.no_grad():
    model(torch.zeros(1, 3, *sizes[-1]))
    before = resident()
    for size in sizes:
        model(torch.zeros(1, 3, *size))
print(len(sizes), resident() - before)
'''


@pytest.mark.nightly
@pytest.mark.skipif(sys.platform != 'linux', reason='reads /proc')
def test_a_process_does_not_grow_with_every_image_size():
    done = subprocess.run([sys.executable, '-W', 'ignore', '-c', SCRIPT], capture_output=True, text=True, check=True)
    count, grown = done.stdout.split()[-2:]
    assert int(count) == 150
    assert float(grown) <= 64
