"""AdamW under one cycle of the cosine for 180 epochs. All weights decay, norms and biases too."""

optim_wrapper = dict(
    type='vit_plugin.OptimWrapper',
    optimizer=dict(type='AdamW', lr=3e-4, weight_decay=0.03, fused=True),
)
param_scheduler = dict(type='OneCycleLR', eta_max=3e-4, by_epoch=True, convert_to_iter_based=True)
schedule_length = 180
train_cfg = dict(by_epoch=True, max_epochs=180, val_interval=1)
val_cfg = dict()
test_cfg = dict()
auto_scale_lr = dict(base_batch_size=256)
