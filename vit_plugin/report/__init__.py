"""Reports on a run and a model: outcomes of a validation, pictures, and the page in the browser."""

# isort: off
# This import comes first, since its error says what to install if MMEngine is missing.
from vit_plugin.registry import HOOKS, lazy_getattr
# isort: on

# These modules import Matplotlib.
HOOKS.register_lazily(
    {
        'PicturesHook': 'vit_plugin.report.pictures_hook',
        'ReportHook': 'vit_plugin.report.report_hook',
    }
)
__getattr__ = lazy_getattr(__name__, HOOKS)
