"""Digits by a rate that stays, then decays to zero (WSD, arXiv:2405.18392).

    vit-plugin train configs/hybrid_vit/hybrid-vit-mini-p2_1xb16_digits-wsd.py --work-dir wsd
    vit-plugin train configs/hybrid_vit/hybrid-vit-mini-p2_1xb16_digits-wsd.py \
        --work-dir wsd-10 --resume wsd/epoch_8.pth --cfg-options train_cfg.max_epochs=10

A run of N epochs decays over the last fifth. The second line decays from the first one's stable
phase to a run of ten epochs, and train_cfg.max_epochs=50 from wsd/epoch_20.pth makes it longer.
"""

_base_ = './hybrid-vit-mini-p2_1xb16_digits.py'

param_scheduler = [
    dict(type='LinearLR', start_factor=0.01, by_epoch=False, end=150),
    dict(
        type='LinearLR',
        begin=20,
        end=25,
        start_factor=1.0,
        end_factor=0.0,
        convert_to_iter_based=True,
    ),
]
default_hooks = dict(checkpoint=dict(max_keep_ckpts=-1))
