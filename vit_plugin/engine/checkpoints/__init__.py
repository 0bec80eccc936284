"""Checkpoints of a run: what they hold, how they are written, which are kept.

- Saving: :mod:`.hook` decides when, :mod:`.state` collects what, :mod:`.saver` writes a file or,
  through :mod:`.folder`, a folder, and :mod:`.retention` says which old ones to delete.
- Choosing: :mod:`.found_checkpoint` describes one, :mod:`.newest` finds the last one, and
  :mod:`.chosen` the one to use.
- Resuming: :mod:`.reading` reads a checkpoint, :mod:`.same_run` compares it with the run, and
  :mod:`.changed_run` applies accepted differences.
"""
