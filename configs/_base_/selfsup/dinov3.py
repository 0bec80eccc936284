"""DINOv3's objective (arXiv:2508.10104) on a backbone that has its weights, without this backbone.

Its blocks learn by adapters alone. The teacher moves slowly and becomes the anchor every 10,000
steps, as in the paper.
"""

_base_ = 'dinov2.py'

lora = dict(r=8, alpha=16.0)
model = dict(type='vit_plugin.DINOv3', momentum=0.996, gram_weight=2.0, gram_refresh=10_000)
