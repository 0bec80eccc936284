"""Pictures of what a model learnt."""

from .confusion_matrix import draw_confusion_matrix
from .learning_curve import draw_learning_curve

__all__ = ['draw_confusion_matrix', 'draw_learning_curve']
