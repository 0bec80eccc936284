"""Files of weights, read without running any code in them."""
