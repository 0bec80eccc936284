"""What a run and a model show: outcomes, pictures, and the page in the browser."""

# isort: off
# First, since it says what to install where MMEngine is missing.
from vit_plugin.registry import HOOKS, later_of
# isort: on

# They import Matplotlib.
HOOKS.import_later(
    {
        'PicturesHook': 'vit_plugin.report.pictures_hook',
        'ReportHook': 'vit_plugin.report.report_hook',
    }
)
__getattr__ = later_of(__name__, HOOKS)
