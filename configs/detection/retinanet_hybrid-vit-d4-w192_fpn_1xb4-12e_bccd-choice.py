r"""The small hybrid on a part of BCCD's training photographs, and validated on the rest, to choose a variant by.

    python tools/sweep.py configs/detection/retinanet_hybrid-vit-d4-w192_fpn_1xb4-12e_bccd-choice.py \
        --grid model.backbone.arch.resnet.width=24,32,48 --seeds 2

The validation photographs of the data set play no part in the choice.
"""

_base_ = 'retinanet_hybrid-vit-d4-w192_fpn_1xb4-12e_bccd.py'

held_out = list(range(4, 205, 5))  # 41 of 205
train_dataloader = dict(dataset=dict(indices=[i for i in range(205) if i not in held_out]))
val_dataloader = dict(dataset=dict(ann_file='ImageSets/Main/train.txt', indices=held_out))
test_dataloader = val_dataloader
