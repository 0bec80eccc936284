"""Self-supervised learning that MMPretrain lacks."""
