"""The commands, a module each: ``add_arguments(parser)``, ``main(args)``, and more.

A module may have ``check(args)``, which finds wrong arguments without torch, and
``needs_torch(args)``, which says whether ``main`` needs it. Its ``LESS_MEMORY`` says what to do
where there is not enough memory; without one, that is the remedy of a training.
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
