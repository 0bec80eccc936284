"""MMSegmentation's runtime with our report."""

_base_ = 'mmseg::_base_/default_runtime.py'

custom_hooks = [dict(type='vit_plugin.ReportHook')]
randomness = dict(seed=0)
