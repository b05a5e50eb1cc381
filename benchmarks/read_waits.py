"""Lists kernels whose products wait for reads that were asked for ahead, from their machine code.

    cuobjdump -sass build/.../sequence_grid_float.o | python benchmarks/read_waits.py

An instruction waits for up to six counters of its warp, and a read counts as one until it is there.
A poll of cuda_core/sequence_exchange.cuh looks at pieces, and so waits for them, before a product
has them. So a product that waits for pieces itself waits for later ones, which it does not need.
Reads code as nvcc writes it for compute capability 9.
"""

import re
import sys
from typing import NamedTuple

FUNCTION = re.compile(r"\s*Function : (\S+)")
FIRST_HALF = re.compile(r"\s*/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;\s+/\* 0x[0-9a-f]{16} \*/")
SECOND_HALF = re.compile(r"\s*/\* (0x[0-9a-f]{16}) \*/\s*$")
PIECE = "LDG.E.128.STRONG.GPU"
NO_COUNTER = 7


class Instruction(NamedTuple):
    text: str
    counts_as: int  # the counter of its result
    waits_for: int  # counters, as bits


def functions(lines):
    """(name, instructions) of each function of what cuobjdump -sass prints."""
    name, instructions, text = None, [], None
    for line in lines:
        function, first, second = (p.match(line) for p in (FUNCTION, FIRST_HALF, SECOND_HALF))
        if function:
            if name:
                yield name, instructions
            name, instructions, text = function[1], [], None
        elif first:
            text = first[1]
        elif second and text:
            bits = int(second[1], 16)
            instructions.append(Instruction(text, bits >> 46 & 7, bits >> 52 & 63))
            text = None
    if name:
        yield name, instructions


def waiting_products(instructions):
    """The products that wait for pieces nobody has looked at, in the order of the code."""
    under_way = set()
    for text, counts_as, waits_for in instructions:
        waited = {counter for counter in under_way if waits_for >> counter & 1}
        under_way -= waited
        if waited and re.search(r"\b[HD]MMA\b", text):
            yield text
        # What a poll asks for once more has a predicate.
        if PIECE in text and not text.startswith("@") and counts_as != NO_COUNTER:
            under_way.add(counts_as)


def main():
    count = found = 0
    for name, instructions in functions(sys.stdin):
        if not any(PIECE in instruction.text for instruction in instructions):
            continue
        count += 1
        products = list(waiting_products(instructions))
        found += bool(products)
        for text in products:
            print(f"{name}: {text}")
    print(f"{found} of {count} kernels that read pieces have products that wait for them")


if __name__ == "__main__":
    main()
