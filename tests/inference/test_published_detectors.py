"""Load published detectors from each kind of address, convert and export them."""

import vit_plugin.detection  # noqa: F401  isort: skip  before mmdet, which needs its mmcv ops

import numpy as np
import pytest
import torch
from published_models import roboflow_file, transformers_folder

from vit_plugin.commands import convert, entry
from vit_plugin.deploy.deployed import deploy
from vit_plugin.deploy.traced_graph import example_inputs, trace
from vit_plugin.inference.load import load

pytestmark = pytest.mark.filterwarnings('ignore')  # of the frameworks
IMAGE = np.random.default_rng(0).integers(0, 256, (48, 64, 3), dtype=np.uint8)


def test_a_detector_of_a_hub_is_loaded(tmp_path, monkeypatch):
    folder, requests = transformers_folder(tmp_path / 'hub', 'LwDetr'), []

    def download(name: str, file: str) -> str:
        requests.append(file)
        return str(folder / file)

    monkeypatch.setattr('huggingface_hub.hf_hub_download', download)
    trained = load('hf://ORG/NAME', device='cpu')
    assert trained.classes == ['cat', 'dog', 'owl']
    processors = ['preprocessor_config.json', 'processor_config.json']
    card = 'README.md'  # may state a license
    assert requests == ['model.safetensors', 'config.json', *processors, card]


def test_a_detector_is_loaded_by_its_name(tmp_path, monkeypatch):
    path, requests = roboflow_file(tmp_path / 'rf-detr.pth'), []

    def download(url: str):
        requests.append(url)
        return path

    monkeypatch.setattr('vit_plugin.weights.opening.download', download)
    assert len(load('rf-detr-nano', device='cpu').classes) == 80
    assert requests == [
        'https://storage.googleapis.com/rfdetr/nano_coco/checkpoint_best_regular.pth'
    ]


def test_a_converted_detector_predicts_the_same(tmp_path):
    published, converted = roboflow_file(tmp_path / 'rf-detr.pth'), tmp_path / 'converted.pth'
    args = entry.build_parser(convert).parse_args([str(published), '--out', str(converted)])
    convert.main(args)
    assert any(name.startswith('backbone.blocks.') for name in torch.load(converted)['state_dict'])
    before, after = (load(path, device='cpu')(IMAGE) for path in (published, converted))
    assert np.array_equal(before.boxes, after.boxes)


@pytest.mark.nightly
def test_the_graph_of_a_detector_predicts_the_same(tmp_path):
    trained = load(roboflow_file(tmp_path / 'rf-detr.pth'), device='cpu')
    model = deploy(trained.model)
    images = example_inputs(model, 255 * torch.rand(2, 3, 64, 64))
    graph = trace(model, (64, 64)).module()
    assert model.difference(graph(*images), model(*images)) < 1e-4
