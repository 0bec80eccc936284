"""DINOv2's objective (arXiv:2304.07193, Section 4) on 192 channels, without its backbone.

Hidden patches and images share the MLP and its prototypes, as in iBOT.
"""

_base_ = 'dino.py'

model = dict(mask_ratio=(0.1, 0.5), koleo_weight=0.1, head=dict(centering='sinkhorn_knopp'))
