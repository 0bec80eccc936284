"""A config that is examined is built quietly, and leaves the caller's logging as it was."""

import logging

from mmengine.config import Config

from vit_plugin.doctor.examined import ExaminedConfig


def test_a_callers_setting_of_logs_is_kept():
    examined = ExaminedConfig(Config(dict(default_scope='mmpretrain', model=dict())))
    before = logging.root.manager.disable
    logging.disable(logging.INFO)
    try:
        with examined.build_context():
            assert logging.root.manager.disable == logging.WARNING
        assert logging.root.manager.disable == logging.INFO
    finally:
        logging.disable(before)
