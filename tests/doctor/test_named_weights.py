"""The sections of a config that name weights, and the names of their files."""

from vit_plugin.doctor.named_weights import find_named_weights


def test_a_file_for_timm_is_named_only_with_pretrained():
    overlay = dict(pretrained_cfg_overlay=dict(file='no/lite.pth'))
    stem = dict(type='TimmEmbed', model_name='tf_efficientnet_lite0', model_kwargs=overlay)
    model_cfg = dict(backbone=dict(patch_embed=stem))
    assert [*find_named_weights(None, model_cfg, {})] == []  # timm would not read the file
    (source,) = find_named_weights(None, dict(backbone=dict(stem, pretrained=True)), {})
    assert (source.place, source.module, source.name) == (
        'model.backbone',
        'backbone',
        'no/lite.pth',
    )
    assert source.error  # there is no such file
