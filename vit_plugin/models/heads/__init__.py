"""Classification heads, which need MMPretrain."""
