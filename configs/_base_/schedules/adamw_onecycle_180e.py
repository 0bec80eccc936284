"""AdamW under one cycle of the cosine for 180 epochs."""

optim_wrapper = dict(
    type='vit_plugin.OptimWrapper', optimizer=dict(type='AdamW', lr=3e-4, weight_decay=0.03, fused=True))
param_scheduler = dict(type='OneCycleLR', eta_max=3e-4, total_steps=180, by_epoch=True, convert_to_iter_based=True)
train_cfg = dict(by_epoch=True, max_epochs=180, val_interval=1)
val_cfg = dict()
test_cfg = dict()
auto_scale_lr = dict(base_batch_size=256)
