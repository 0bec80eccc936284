"""A classifier learns the classes of another one (arXiv:1503.02531), with a tenth of the labels."""

distillation = dict(
    type='vit_plugin.Distiller',
    teacher='work_dirs/cnn',
    losses=[dict(type='vit_plugin.LogitDistillation', weight=0.9, temperature=2.0)],
    label_weight=0.1,
)
