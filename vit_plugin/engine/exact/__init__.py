"""A run that can begin anywhere and ends as if it had never stopped."""
