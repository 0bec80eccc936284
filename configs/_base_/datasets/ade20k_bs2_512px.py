"""MMSegmentation's ADE20K, two crops of 512 px for each process."""

_base_ = 'mmseg::_base_/datasets/ade20k.py'

train_dataloader = dict(batch_size=2)
