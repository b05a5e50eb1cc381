"""benchmarks/read_waits.py reads off machine code which products wait for what they do not need."""

import subprocess
import sys

import pytest
from repository import ROOT

READ = "LDG.E.128.STRONG.GPU R16, desc[UR12][R10.64]"
LOOK = "VIMNMX.U32 R8, R16, R17, !PT"
PRODUCT = "HMMA.16816.F32 R88, R28, R16, RZ"
OTHER = "DMMA.16x8x8 R112, R56, R224, R128"
NONE = 7


def machine_code(instructions):
    """As cuobjdump prints it: (text, counter of the result, counters waited for)."""
    lines = ["\t\tFunction : kernel"]
    for i, (text, counts_as, waits_for) in enumerate(instructions):
        bits = counts_as << 46 | sum(1 << counter for counter in waits_for) << 52
        lines.append(f"        /*{16 * i:04x}*/  {text} ;  /* 0x000000101c58723c */")
        lines.append(f"                          /* 0x{bits:016x} */")
    return "\n".join(lines) + "\n"


def read_waits(code):
    command = [sys.executable, str(ROOT / "benchmarks" / "read_waits.py")]
    run = subprocess.run(command, input=code, capture_output=True, encoding="utf-8", check=True)
    return run.stdout.splitlines()


@pytest.mark.parametrize("product", (PRODUCT, OTHER))
def test_a_product_that_waits_for_a_read_is_named(product):
    code = machine_code([(READ, 2, []), (product, NONE, [0, 2])])
    assert read_waits(code) == [
        f"kernel: {product}",
        "1 of 1 kernels that read pieces have products that wait for them",
    ]


@pytest.mark.parametrize(
    "instructions",
    (
        [(READ, 2, []), (LOOK, NONE, [2]), (PRODUCT, NONE, [2])],
        [(READ, 2, []), (PRODUCT, NONE, [3])],
        [("@!P1 " + READ, 2, []), (PRODUCT, NONE, [2])],
        [(READ, NONE, []), (PRODUCT, NONE, [0, 1, 2, 3, 4, 5])],
    ),
    ids=("looked at before", "another counter", "asked for once more", "no counter"),
)
def test_no_other_product_is(instructions):
    last = "0 of 1 kernels that read pieces have products that wait for them"
    assert read_waits(machine_code(instructions)) == [last]


def test_kernels_without_pieces_do_not_count():
    code = machine_code([(PRODUCT, NONE, [2])])
    last = "0 of 0 kernels that read pieces have products that wait for them"
    assert read_waits(code) == [last]
