"""The code in the README runs as it stands, and gives the shapes that its comments say."""

import re

from repository import read


def test_python_blocks_run_in_order():
    blocks = re.findall(r"```python\n(.*?)```", read("README.md"), flags=re.DOTALL)
    assert len(blocks) == 2
    names = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
        if "rnn(torch" in block:
            first = block[: block.index("packed =")]
            exec(compile(first, "README.md", "exec"), names)
            said = re.search(r"# (\(.*\))\n", first).group(1)
            shapes = [tuple(names[name].shape) for name in ("output", "h_n", "c_n")]
            assert ", ".join(map(str, shapes)) == said
