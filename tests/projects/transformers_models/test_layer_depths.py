"""The depth of each parameter of a backbone of transformers."""

import pytest

from vit_plugin.registry import MODELS

pytest.importorskip('transformers', '5', 'needs transformers 5')
pytestmark = pytest.mark.filterwarnings('ignore')
CONVNEXT = dict(model_type='convnextv2', hidden_sizes=[8, 16, 24, 32], depths=[1, 2, 1, 1])


def test_layer_depths_follow_the_layers():
    backbone = MODELS.build(dict(type='vit_plugin.TransformersBackbone', config=CONVNEXT))
    depths = [backbone.get_layer_depth(f'backbone.{name}', 'backbone.')[0] for name in (
        'model.embeddings.patch_embeddings.weight',
        'model.encoder.stages.0.layers.0.dwconv.weight',
        'model.encoder.stages.1.downsampling_layer.0.weight',
        'model.encoder.stages.1.layers.1.dwconv.weight',
        'model.encoder.stages.3.layers.0.dwconv.weight',
        'model.hidden_states_norms.stage4.weight',
        'head.weight',
    )]  # fmt: skip
    assert depths == [0, 1, 1, 3, 5, 6, 6]
    assert len(backbone.parts_to_shard()) == 5
