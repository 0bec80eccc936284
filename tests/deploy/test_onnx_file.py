"""Cases in which torch's exporter to ONNX, or a converter, needs a correction."""

import pytest
import torch
from torch.export import Dim

from vit_plugin.deploy.onnx_file import write_onnx

pytest.importorskip('onnxruntime')
pytest.importorskip('onnxscript')


class Ceil(torch.nn.Module):
    """Maps of a size that is rounded up, as by padding 'same'."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return images.new_ones(*(-(-side // 8) for side in images.shape[2:]))


@pytest.mark.filterwarnings('ignore')
def test_open_sizes_are_rounded_up(tmp_path):
    sizes = ({2: Dim.AUTO, 3: Dim.AUTO},)
    program = torch.export.export(Ceil(), (torch.zeros(1, 1, 33, 50),), dynamic_shapes=sizes)
    run = write_onnx(program, tmp_path / 'model.onnx', 'float32')
    for size in ((33, 50), (32, 8), (31, 49)):
        images = torch.zeros(1, 1, *size)
        assert run(images).shape == Ceil()(images).shape


class BestRow(torch.nn.Module):
    """The row with the highest score, as a detector chooses its boxes by scores of classes."""

    def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scores, best = images.flatten(1).topk(1)
        rows = torch.div(best, 3, rounding_mode='trunc')
        return scores, torch.arange(images.shape[2]).expand(1, -1).gather(1, rows)


@pytest.mark.filterwarnings('ignore')
def test_indices_beyond_the_range_of_float16_stay_exact(tmp_path):
    images = torch.zeros(1, 1, 5000, 3)
    program = torch.export.export(BestRow(), (images,))
    run = write_onnx(program, tmp_path / 'model.onnx', 'float16', ('scores', 'rows'))
    for row in (4999, 2049):
        scores = images.index_fill(2, torch.tensor([row]), 1 / 3)
        highest, rows = run(scores)
        assert rows.item() == row
        assert highest.item() == torch.tensor(1 / 3).half().item()
