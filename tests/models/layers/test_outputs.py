"""Norms of the class token alone, which DINOv3's code has and our outputs do not."""

import torch
from rejection import rejects

from vit_plugin.models import VisionTransformer, load_weights
from vit_plugin.weights import export


def test_a_final_norm_of_the_class_token_alone_is_refused(tiny):
    """DINOv3's option ``untie_cls_and_patch_norms``, which none of its published models use."""
    theirs, _, _ = export(VisionTransformer(**tiny).state_dict(), 'timm', heads=2)
    theirs |= {f'cls_norm.{name}': torch.ones(32) for name in ('weight', 'bias')}
    with rejects('cls_norm'):
        load_weights(VisionTransformer(**tiny), theirs)


def test_the_norm_for_local_crops_of_dinov3_is_ignored(tiny):
    """The 7B model's checkpoint has a norm for the class tokens of local crops."""
    source = VisionTransformer(**tiny, encoder=dict(reg_token=2))
    theirs, _, _ = export(source.state_dict(), 'timm', heads=2)
    theirs['storage_tokens'] = theirs.pop('reg_token')
    theirs |= {f'local_cls_norm.{name}': torch.ones(32) for name in ('weight', 'bias')}
    report = load_weights(VisionTransformer(**tiny, encoder=dict(reg_token=2)), theirs)
    assert report.ignored['local_cls_norm.weight'] == 'of pre-training with crops'
