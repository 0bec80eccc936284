"""MMDetection's four-scale DINO for 12 epochs, with our report and fallbacks for mmcv's ops.

The fallbacks are used where mmcv was not compiled.
"""

_base_ = 'mmdet::dino/dino-4scale_r50_8xb2-12e_coco.py'

runner_type = 'vit_plugin.Runner'
schedule_length = 12
custom_imports = dict(imports=['vit_plugin.detection'])
custom_hooks = [dict(type='vit_plugin.ReportHook')]
default_hooks = dict(
    runtime_info=dict(type='vit_plugin.RuntimeInfoHook'),
    checkpoint=dict(max_keep_ckpts=2, save_best='auto'),
)
randomness = dict(seed=0)
