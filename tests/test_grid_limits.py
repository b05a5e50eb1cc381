"""The table of docs/performance.md: how many rows one launch spreads over a Hopper GPU."""

import re
from pathlib import Path

import pytest
import torch
from conftest import require_device
from core_abi import Plan, core
from test_core_sequence import GRID

PAGE = Path(__file__).parent.parent / "docs/performance.md"
DTYPES = {"TF32": torch.float32, **{str(d)[6:]: d for d in (torch.float32, torch.float64)}}
DTYPES.update({str(d)[6:]: d for d in (torch.float16, torch.bfloat16)})


def limits():
    """(name of the dtype, H, most rows forward, backward), a row and a column each."""
    page = PAGE.read_text(encoding="utf-8")
    table = re.search(r"\| H up to \|(.*\|\n(?:\|.*\n)+)", page).group(1)
    sizes, _, *rows = table.splitlines()
    for row in rows:
        names, *cells = (cell.strip() for cell in row.strip("|").split("|"))
        for name in names.split(", "):
            for size, cell in zip(sizes.strip("|").split("|"), cells):
                most = [0 if n == "-" else int(n) for n in re.sub(",.*", "", cell).split(" / ")]
                yield name, int(size), most[0], most[-1]


def spreads(name, way, batch_size, state_size):
    plan = Plan()
    sizes = (32, batch_size, state_size)
    assert core("sequence_plan", DTYPES[name])(way, int(name == "TF32"), *sizes, plan) == 0
    return plan.path == GRID


@pytest.mark.parametrize("name, state_size, forward, backward", list(limits()))
def test_a_launch_takes_as_many_rows_as_the_page_says(name, state_size, forward, backward):
    require_device("cuda:0")
    properties = torch.cuda.get_device_properties(0)
    if properties.major != 9 or properties.multi_processor_count != 132:
        pytest.skip("the page is about another GPU")
    for way, most in ((0, forward), (1, backward)):
        assert most == 0 or spreads(name, way, most, state_size)
        assert not spreads(name, way, most + 1, state_size)
