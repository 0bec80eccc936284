"""S/16 from scratch on ImageNet-1k: the plain baseline for 90 epochs (arXiv:2205.01580).

    tools/dist_train.sh configs/vit/vit-small-p16_8xb128-90e_in1k.py 8

Published: 76.5 % top-1 (its Table 1). Not yet trained by us.
"""

_base_ = 'vit-small-p16_8xb128-300e_in1k.py'

schedule_length = 90
train_cfg = dict(max_epochs=90)
