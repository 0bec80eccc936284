"""The commands, one module each, with ``add_arguments(parser)`` and ``main(args)``.

A module may have ``check(args)``, which finds wrong arguments without torch, and
``needs_torch(args)``, which says whether ``main`` needs it. ``LESS_MEMORY`` is the advice for an
out-of-memory error; the default is the advice for a training.
"""

COMMANDS = (
    'convert',
    'demo',
    'doctor',
    'embed',
    'export',
    'infer',
    'plan',
    'pretrain',
    'probe',
    'test',
    'train',
    'visualize',
    'zoo',
)
