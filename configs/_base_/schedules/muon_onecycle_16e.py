"""Muon for 16 epochs under one cosine cycle, which stretches to any other number of epochs."""

optim_wrapper = dict(
    type='vit_plugin.OptimWrapper',
    optimizer=dict(type='vit_plugin.Muon', weight_decay=0.05),
    paramwise_cfg=dict(flat_decay_mult=0.0),  # no weight decay of norms and biases
    clip_grad=dict(max_norm=1.0),
)
param_scheduler = dict(
    type='OneCycleLR', eta_max=1e-2, pct_start=0.25, by_epoch=True, convert_to_iter_based=True
)
schedule_length = 16
train_cfg = dict(by_epoch=True, max_epochs=16, val_interval=1)
val_cfg = dict()
test_cfg = dict()
auto_scale_lr = dict(base_batch_size=256)
