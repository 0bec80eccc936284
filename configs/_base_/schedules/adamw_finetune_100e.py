"""AdamW for 100 epochs of fine-tuning with few labels: 10 warm-up epochs, cosine, clipped at 1."""

_base_ = 'adamw_selfsup_100e.py'

optim_wrapper = dict(optimizer=dict(lr=1e-3))
train_cfg = dict(val_interval=10)
val_cfg = dict()
test_cfg = dict()
auto_scale_lr = dict(base_batch_size=64)
