"""The device mesh of a sharding."""

import pytest

from vit_plugin.engine.sharding import Sharding
from vit_plugin.measure.planning.traced_step import pretended_ranks


@pytest.mark.parametrize(
    ('ranks', 'group', 'shape'), [(4, 'all', (4,)), (4, 4, (4,)), (8, 2, (4, 2)), (2, 1, (2, 1))]
)
def test_group_determines_the_mesh(ranks, group, shape):
    with pretended_ranks(ranks):
        assert Sharding(group=group).mesh('cpu').shape == shape
