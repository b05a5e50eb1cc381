"""Where torch.utils.cpp_extension.load builds, and whether it will wait there."""

import os
import sys

LOCKED = """\
lltm_decoupled: waiting for {lock}: another process builds there.
If none does, one was killed: remove that file."""


def make(cpp_extension, name, folder=None):
    """Makes the folder of a build, by default one of this Python's among torch's own, and returns
    it. Says so on stderr if torch will wait for its lock: torch does that in silence, and for
    ever if the build that took it was killed."""
    if folder is None:
        kept = os.environ.get("TORCH_EXTENSIONS_DIR") or cpp_extension.get_default_build_root()
        folder = os.path.join(kept, f"{sys.implementation.cache_tag}_{name}")
    os.makedirs(folder, exist_ok=True)
    lock = os.path.join(folder, "lock")
    if os.path.exists(lock):
        print(LOCKED.format(lock=lock), file=sys.stderr, flush=True)
    return folder
