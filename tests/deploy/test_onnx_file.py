import pytest
import torch
from torch.export import Dim

from vit_plugin.deploy.onnx_file import write_onnx

pytest.importorskip('onnxruntime')
pytest.importorskip('onnxscript')


class Ceil(torch.nn.Module):
    """The shape of maps that are rounded up, as by padding 'same'."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return images.new_ones(*(-(-side // 8) for side in images.shape[2:]))


@pytest.mark.filterwarnings('ignore')
def test_open_sizes_are_rounded_as_in_python(tmp_path):
    sizes = ({2: Dim.AUTO, 3: Dim.AUTO},)
    program = torch.export.export(Ceil(), (torch.zeros(1, 1, 33, 50),), dynamic_shapes=sizes)
    run = write_onnx(program, tmp_path / 'model.onnx', 'float32')
    for size in ((33, 50), (32, 8), (31, 49)):
        images = torch.zeros(1, 1, *size)
        assert run(images).shape == Ceil()(images).shape
