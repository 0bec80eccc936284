"""The config of DEIMv2 and ECDet for ``vit-plugin train --data FOLDER``, except the backbone.

Also the schedules of the DETRs that are trained on a folder.
"""

from collections.abc import Sequence

from vit_plugin.arguments.fields import Section
from vit_plugin.config.task_model import ONE_RATE, ModelFacts


def folder_detector(
    name: str, facts: ModelFacts, backbone: Section, strides: Sequence[int], attention_act: str
) -> Section:
    """A detector with D-FINE's hybrid encoder and decoder.

    With a wide backbone (:attr:`~vit_plugin.config.task_model.ModelFacts.is_wide`), the decoder is
    DEIMv2-M's, otherwise it is smaller.

    Args:
        name: the name of the model in ``--model``, which is also the ``variant`` of the head.
        facts: facts about the data and the backbone.
        backbone: config of a backbone whose maps have ``facts.channels`` channels.
        strides: strides of these maps in pixels.
        attention_act: type of the activation in the encoder's attention layers.
    """
    is_wide, width = facts.is_wide, facts.channels
    # Images are stretched to one size, so no position is padding: share=1.
    queries = facts.queries(name, 300 if is_wide else 60, strides, share=1)
    decoder: Section = dict(num_layers=4, num_points=(3, 6, 3), feedforward_channels=1024)
    if not is_wide:
        decoder |= dict(num_layers=3, num_heads=4, feedforward_channels=4 * width)
    return dict(
        type='SingleStageDetector',
        backbone=backbone,
        neck=dict(
            type='vit_plugin.HybridEncoder',
            in_channels=[width] * len(strides),
            out_channels=width,
            kind='split',
            depth=0.67,
            expansion=0.67 if is_wide else 0.34,
            num_heads=8 if is_wide else 4,
            feedforward_channels=2 * width,
            attention_act=attention_act,
            projects=False,
        ),
        bbox_head=dict(
            type='vit_plugin.DFINEHead',
            num_classes=facts.classes,
            num_queries=queries,
            in_channels=[width] * len(strides),
            embed_dims=width,
            variant=name,
            decoder=decoder,
            loss_cls=dict(type='vit_plugin.MatchabilityAwareLoss'),
        ),
        test_cfg=dict(max_per_img=queries),
    )


# Changes of the schedule, see `TaskModel.schedules`. They have not been tuned.
DETR_SCHEDULES: Section = dict(
    small=dict(rate=1e-3, clip=0.1),
    scratch=dict(clip=0.1),
    fine_tuned=dict(ONE_RATE, weight_decay=1e-4, clip=0.1),
)
