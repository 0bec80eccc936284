"""The commands, one module each, with ``add_arguments(parser)`` and ``main(args)``.

A module may have ``check(args)``, which rejects wrong arguments before torch is imported, and
``needs_torch(args)``, which tells whether ``main`` needs torch. ``LESS_MEMORY`` is the advice in an
out-of-memory error; without it, the error gives the advice for a training.
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
