"""Pictures of what a model has learnt, and of its speed."""

from .confusion_matrix import draw_confusion_matrix
from .learning_curve import draw_learning_curve
from .speed_bars import draw_speed_bars

__all__ = ['draw_confusion_matrix', 'draw_learning_curve', 'draw_speed_bars']
