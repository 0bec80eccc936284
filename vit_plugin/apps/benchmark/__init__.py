"""Compare our models with other implementations: the same weights and inputs, in one process."""

from .compare import Case, Row, compare, format_table
from .models import PEERS

__all__ = ['PEERS', 'Case', 'Row', 'compare', 'format_table']
