from hypothesis import settings

# Every run draws the same examples without a deadline, so a commit passes or fails by itself, even
# on a busy machine.
settings.register_profile('same', derandomize=True, deadline=None)
settings.load_profile('same')
