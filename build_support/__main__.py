"""`python -m build_support`: what a build would make here, and why. pip hides it without -v."""

import os

from . import plan, probe
from .facts import BuildError

PATIENCE = """\
The first time this takes minutes, 6 to 8 on two cores for all architectures. TORCH_CUDA_ARCH_LIST
with one of them takes a third of that, LLTM_WITH_CUDA=0 leaves CUDA out."""


def main():
    try:
        todo = plan.plan(**probe.gather(os.environ, version=""))
    except BuildError as error:
        raise SystemExit(f"{plan.NAME}: error: {error}") from error
    print(*todo.messages, todo.decision, *([PATIENCE] if todo.with_cuda else []), sep="\n")


if __name__ == "__main__":
    main()
