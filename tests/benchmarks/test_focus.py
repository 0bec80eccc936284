"""Weights of an ONNX graph get their modules' names, and a student learns a teacher's maps."""

import numpy as np
import pytest
import torch

pytest.importorskip('onnx')
pytest.importorskip('onnxruntime')
pytest.importorskip('skimage')
from onnx import helper, numpy_helper
from torch import nn

from benchmarks import focus_student
from benchmarks.focus import BACKBONE, preprocess, read_weights


def test_folded_weights_are_named_after_their_nodes():
    torch.manual_seed(0)
    weights = {
        'backbone.dense.bias': torch.randn(3),
        'onnx::MatMul_7': torch.randn(2, 3),
        'onnx::Concat_5': torch.randn(1, 1, 2),
        'onnx::Reshape_6': torch.randn(1, 4, 2),
    }
    nodes = [
        helper.make_node(
            'Reshape', ['onnx::Reshape_6', 's'], ['r'], '/backbone/embeddings/Reshape'
        ),
        helper.make_node('Concat', ['onnx::Concat_5', 'r'], ['c'], '/backbone/embeddings/Concat'),
        helper.make_node('MatMul', ['c', 'onnx::MatMul_7'], ['m'], '/backbone/dense/MatMul'),
    ]
    graph = helper.make_graph(
        nodes,
        'graph',
        [],
        [],
        [numpy_helper.from_array(value.numpy(), name) for name, value in weights.items()],
    )
    read = read_weights(graph)
    expected = {
        'backbone.dense.bias': weights['backbone.dense.bias'],
        'backbone.dense.weight': weights['onnx::MatMul_7'].T,
        f'{BACKBONE}embeddings.position_embeddings': torch.cat(
            (weights['onnx::Concat_5'], weights['onnx::Reshape_6']), dim=1
        ),
    }
    assert read.keys() == expected.keys()
    assert all(torch.equal(read[name], value) for name, value in expected.items())


@pytest.mark.filterwarnings('ignore')
def test_a_student_learns_from_photographs(tmp_path, monkeypatch, capsys):
    """The teacher is a random convolution instead of the network in the wheel."""
    monkeypatch.setattr(focus_student, 'STEPS', 2)
    monkeypatch.setattr(focus_student, 'NO_OBJECT', ())
    monkeypatch.setattr(focus_student, 'OBJECTS', ('coins.png', 'rocket.jpg'))
    network = nn.Sequential(nn.Conv2d(3, 1, 1), nn.Sigmoid())
    photo = np.random.default_rng(0).integers(0, 256, (40, 60, 3), np.uint8)
    picture = tmp_path / 'picture.jpg'
    focus_student.teach(network, {'noise': photo}, preprocess, 0, picture)
    printed = capsys.readouterr().out
    assert '2 steps of 8 crops' in printed
    assert printed.count('; mean map') == 2  # of the only photograph, and the mean over photographs
    assert picture.stat().st_size > 1000


def test_correlations_ignore_scale_and_offset():
    maps = torch.rand(3, 5, 5, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(focus_student.correlations(maps, 3 * maps + 1), torch.ones(3))
    torch.testing.assert_close(focus_student.correlations(maps, 1 - maps), -torch.ones(3))
    other = maps.flip(2)
    expected = [
        np.corrcoef(a.flatten(), b.flatten())[0, 1] for a, b in zip(maps, other, strict=True)
    ]
    torch.testing.assert_close(
        focus_student.correlations(maps, other).double(), torch.tensor(expected)
    )
