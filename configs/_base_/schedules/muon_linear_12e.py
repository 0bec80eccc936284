"""Muon for 12 epochs, the first a warm-up, then linear to zero. The filters of a pooled ResNet keep their norm."""

filters = dict(lr_mult=1.7, fixed_norm=True, momentum=0.6)
optim_wrapper = dict(
    type='vit_plugin.OptimWrapper',
    optimizer=dict(type='vit_plugin.Muon', lr=7e-3, momentum=0.9, weight_decay=0.05),
    paramwise_cfg=dict(
        flat_decay_mult=0.,  # no weight decay of norms and biases
        custom_keys={'backbone.patch_embed.backbone.0.0': filters, '.conv1': filters, '.conv2': filters}),
    clip_grad=dict(max_norm=1.))
param_scheduler = [
    dict(type='LinearLR', start_factor=0.01, end=1, convert_to_iter_based=True),
    dict(type='LinearLR', begin=1, end=12, start_factor=1., end_factor=0., convert_to_iter_based=True)]
schedule_length = 12
train_cfg = dict(by_epoch=True, max_epochs=12, val_interval=4)
val_cfg = dict()
test_cfg = dict()
auto_scale_lr = dict(base_batch_size=128)
