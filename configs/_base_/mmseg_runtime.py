"""MMSegmentation's runtime with our report."""

_base_ = 'mmseg::_base_/default_runtime.py'

runner_type = 'vit_plugin.Runner'
custom_hooks = [dict(type='vit_plugin.ReportHook'), dict(type='vit_plugin.ProgressHook')]
randomness = dict(seed=0)
