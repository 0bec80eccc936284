"""One folder per paper or library, each with a declaration of what it adds."""
