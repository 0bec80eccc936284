"""Weights of a graph get the names of their modules."""

import pytest
import torch

pytest.importorskip('onnx')
pytest.importorskip('onnxruntime')
pytest.importorskip('skimage')
from campaigns.focus import BACKBONE, read_weights
from onnx import helper, numpy_helper


def test_a_folded_matrix_is_named_after_its_node():
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
    found = read_weights(graph)
    expected = {
        'backbone.dense.bias': weights['backbone.dense.bias'],
        'backbone.dense.weight': weights['onnx::MatMul_7'].T,
        f'{BACKBONE}embeddings.position_embeddings': torch.cat(
            (weights['onnx::Concat_5'], weights['onnx::Reshape_6']), dim=1
        ),
    }
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], value) for name, value in expected.items())
