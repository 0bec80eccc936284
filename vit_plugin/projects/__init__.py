"""A folder for each paper or foreign library, which declares what it adds."""
