"""From a file to a config."""

import pytest
from mmengine.config.utils import MODULE2PACKAGE

from vit_plugin.config import read_config
from vit_plugin.errors import ConfigError


def test_reading_a_config_leaves_mmengines_table_of_hosts_alone(tmp_path):
    before = dict(MODULE2PACKAGE)
    read_config('configs/vit/vit-mini-p2_1xb16_digits.py')
    (tmp_path / 'wrong.py').write_text('model = (')
    with pytest.raises(
        ConfigError, match=r"wrong.py' cannot be read \(SyntaxError: .*line 1.*\); correct it"
    ):
        read_config(str(tmp_path / 'wrong.py'))
    assert before == MODULE2PACKAGE
