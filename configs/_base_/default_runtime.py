"""What every recipe shares: logs, checkpoints, the report, and the host's scope."""

default_scope = 'mmpretrain'
runner_type = 'vit_plugin.Runner'  # also in the host's own train.py

default_hooks = dict(
    # The host waits for the device only to log.
    runtime_info=dict(type='vit_plugin.RuntimeInfoHook'),
    timer=dict(type='IterTimerHook'),
    logger=dict(type='LoggerHook', interval=50),
    param_scheduler=dict(type='ParamSchedulerHook'),
    # More than one is kept, so that there is always a whole one while another is written.
    checkpoint=dict(type='CheckpointHook', interval=1, max_keep_ckpts=2, save_best='auto'),
    sampler_seed=dict(type='DistSamplerSeedHook'),
    visualization=dict(type='VisualizationHook', enable=False),
)
custom_hooks = [dict(type='vit_plugin.ReportHook'), dict(type='vit_plugin.ProgressHook')]

env_cfg = dict(
    cudnn_benchmark=True,
    mp_cfg=dict(mp_start_method='fork', opencv_num_threads=0),
    dist_cfg=dict(backend='nccl'),
)

vis_backends = [dict(type='LocalVisBackend')]
visualizer = dict(type='UniversalVisualizer', vis_backends=vis_backends)

log_level = 'INFO'
load_from = None
resume = False
# Dropout and mixing differ among processes.
randomness = dict(seed=0, deterministic=False, diff_rank_seed=True)
