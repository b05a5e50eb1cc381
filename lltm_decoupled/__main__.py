"""``python -m lltm_decoupled``: see :mod:`lltm_decoupled.cli`."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
