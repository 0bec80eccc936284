"""Muon for 100 epochs without labels: 10 epochs of warm-up, cosine, clipped at 1."""

_base_ = 'adamw_selfsup_100e.py'

optim_wrapper = dict(
    optimizer=dict(_delete_=True, type='vit_plugin.Muon', lr=5e-3, weight_decay=0.05)
)
