"""Read weight files without running any code in them."""
