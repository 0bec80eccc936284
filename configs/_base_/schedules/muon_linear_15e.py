"""Muon for 15 epochs: one of warm-up, then linear decay to zero.

The filters of a pooled ResNet keep their norm.
"""

filters = dict(lr_mult=1.7, fixed_norm=True, momentum=0.6)
# Norms, biases and LayerScale: AdamW has larger steps than Muon.
vectors = dict(lr_mult=0.2, decay_mult=0.0)
optim_wrapper = dict(
    type='vit_plugin.OptimWrapper',
    optimizer=dict(type='vit_plugin.Muon', lr=1.4e-2, momentum=0.9, weight_decay=0.05),
    paramwise_cfg=dict(
        custom_keys={
            '.conv1': filters,
            '.conv2': filters,
            '.norm': vectors,
            '.bias': vectors,
            '.ls': vectors,
        }
    ),
    clip_grad=dict(max_norm=1.0),
)
param_scheduler = [
    dict(type='LinearLR', start_factor=0.01, end=1, convert_to_iter_based=True),
    dict(
        type='LinearLR',
        begin=1,
        end=15,
        start_factor=1.0,
        end_factor=0.0,
        convert_to_iter_based=True,
    ),
]
schedule_length = 15
train_cfg = dict(by_epoch=True, max_epochs=15, val_interval=15)
val_cfg = dict()
test_cfg = dict()
auto_scale_lr = dict(base_batch_size=500)
