import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mmengine.config import Config

from vit_plugin.engine.checks.numbers import LEAST, check_numbers
from vit_plugin.errors import ConfigError


@given(st.sampled_from(sorted(LEAST)), st.sampled_from([-2, 'abc', [1], math.nan, math.inf, True, -math.inf]))
def test_numbers_out_of_range_are_named(field, value):
    cfg = Config()
    cfg.merge_from_dict({field: value})
    with pytest.raises(ConfigError, match=f'^{field}='):
        check_numbers(cfg)


def test_more_workers_than_a_machine_can_start_are_told():
    with pytest.raises(ConfigError, match='train_dataloader.num_workers=100000 are more processes than .* at most'):
        check_numbers(Config(dict(train_dataloader=dict(num_workers=100_000))))
