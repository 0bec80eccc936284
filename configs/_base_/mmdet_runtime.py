"""MMDetection's runtime with our report, and its ops where mmcv was not compiled."""

_base_ = 'mmdet::_base_/default_runtime.py'

runner_type = 'vit_plugin.Runner'
custom_imports = dict(imports=['vit_plugin.detection'])
custom_hooks = [dict(type='vit_plugin.ReportHook'), dict(type='vit_plugin.ProgressHook')]
default_hooks = dict(
    runtime_info=dict(type='vit_plugin.RuntimeInfoHook'),
    checkpoint=dict(max_keep_ckpts=2, save_best='auto'),
)
randomness = dict(seed=0)
