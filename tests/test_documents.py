"""Documents: their Python runs and gives the shapes they say, and what they name exists.

The ```python blocks of a document run in order, in one namespace. A comment of HTML before one says
what is special: `<!-- torch 2.4 -->` is the oldest torch that runs it, and a file's name makes it a
quotation, which is compared with that file and not run.
"""

import ast
import functools
import os
import re
import runpy

import pytest
import torch
from repository import ROOT, read
from torch.nn.utils.rnn import PackedSequence

import lltm_decoupled
from lltm_decoupled import compat, jit, reference

DOCUMENTS = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "cuda_core/README.md"]
DOCUMENTS += sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md"))
BLOCK = re.compile(r"(?:<!-- (\S+ ?\S*) -->\n)?```python\n(.*?)```", flags=re.DOTALL)
NAME_OF_A_TYPE = {"a PackedSequence": PackedSequence, "a tuple": tuple}


def torch_is_older(than):
    return [int(n) for n in torch.__version__.split(".")[:2]] < [int(n) for n in than.split(".")]


def run_block(code, document, names):
    """Statement by statement; behind one may stand the shapes of what it assigned."""
    lines = code.splitlines()
    for node in ast.parse(code).body:
        exec(compile(ast.Module([node], []), document, "exec"), names)
        said = re.search(r"  # (.*)$", lines[node.end_lineno - 1])
        shapes = re.findall(r"\([\d, ]*\)|a [A-Za-z]+", said.group(1)) if said else []
        if shapes and ", ".join(shapes) == said.group(1):
            values = [names[name.id] for name in targets(node)]
            assert len(values) == len(shapes), code
            for value, shape in zip(values, shapes):
                if shape in NAME_OF_A_TYPE:
                    assert isinstance(value, NAME_OF_A_TYPE[shape]), shape
                else:
                    assert "({})".format(", ".join(map(str, value.shape))) == shape


def targets(node):
    """The names that an assignment gives values to, from left to right."""
    return [name for target in node.targets for name in ast.walk(target) if is_target(name)]


def is_target(node):
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_python_blocks_run_in_order(document, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    if hasattr(torch, "compile"):
        # traced and differentiated as ever, without a C++ compiler's minute at the end
        monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="aot_eager"))
    names = {}
    for comment, code in BLOCK.findall(read(document)):
        if comment.startswith("torch ") and torch_is_older(comment.split()[1]):
            continue
        if not (ROOT / comment).is_file():
            run_block(code, document, names)


def test_blocks_are_found_and_their_shapes_compared():
    assert len(BLOCK.findall(read("README.md"))) >= 2
    assert len(BLOCK.findall(read("docs/layer.md"))) >= 10
    run_block("import torch\na, b = torch.ones(2, 3), torch.ones(4)  # (2, 3), (4)\n", "", {})
    for wrong in ("(3, 3), (4)", "(2, 3)", "a tuple, (4)"):
        code = f"import torch\na, b = torch.ones(2, 3), torch.ones(4)  # {wrong}\n"
        with pytest.raises(AssertionError):
            run_block(code, "", {})


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_somewhere(document):
    text = re.sub(r"```.*?```", "", read(document), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, anchor = target.partition("#")
        if "://" in path:
            continue
        file = ((ROOT / document).parent / path).resolve() if path else ROOT / document
        assert file.exists(), target
        if anchor:
            titles = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
            assert anchor in [slug(title) for title in titles], target


def slug(title):
    """The anchor that GitHub gives to a title."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


@pytest.mark.parametrize("document", DOCUMENTS)
def test_files_that_are_named_exist(document):
    folders = "|".join(path.name for path in ROOT.iterdir() if path.is_dir())
    for name in re.findall(rf"`((?:{folders})/[\w./*-]+)`", read(document)):
        if not name.startswith("build/"):
            assert list(ROOT.glob(name)) or (ROOT / name).exists(), name


@pytest.mark.parametrize("document", DOCUMENTS)
def test_documents_are_markdown(document):
    """A formatter of C++ once went over one."""
    lines = read(document).splitlines()
    assert re.match(r"# \S", lines[0]), document
    assert max(map(len, lines)) < 300


def test_the_api_page_is_what_the_docstrings_say():
    script = runpy.run_path(str(ROOT / "docs" / "make_api.py"))
    assert read("docs/api.md") == script["page"](), "python docs/make_api.py makes it anew"


def test_the_api_page_has_every_public_name():
    page = read("docs/api.md")
    for module in (lltm_decoupled, compat, jit, reference):
        section = page
        if module is not lltm_decoupled:
            section = page.split(f"\n## {module.__name__}\n")[1].split("\n## ")[0]
        for name in module.__all__:
            value = getattr(module, name)
            is_here = module is lltm_decoupled or value is not getattr(lltm_decoupled, name, None)
            if is_here and callable(value):
                assert f"\n### {name}\n" in section, f"{module.__name__}.{name}"


def test_the_api_page_breaks_a_signature_at_arguments_only():
    blocks = re.findall(r"```text\n(.*?)```", read("docs/api.md"), flags=re.DOTALL)
    arguments = re.findall(r"^    .*$", "\n".join(blocks), flags=re.MULTILINE)
    assert len(arguments) > 50
    for line in arguments:
        assert line.count("[") == line.count("]") and line.count("(") == line.count(")"), line


def test_the_reference_refers_to_what_the_api_page_describes():
    section = read("docs/api.md").split("\n## The tutorial's raw functions\n")[1].split("\n## ")[0]
    for function in (reference.forward, reference.backward):
        (name,) = re.findall(r"as lltm_decoupled\.(\w+)", function.__doc__)
        assert f"\n### {name}\n" in section


def test_how_many_cores_the_tests_take():
    (most,) = re.findall(r"--maxprocesses (\d+)", read("Makefile"))
    assert f"# everything, on up to {most} cores\n" in read("CONTRIBUTING.md")


def test_the_front_door_is_short():
    text = read("README.md")
    assert len(text.splitlines()) <= 260
    assert text.index("make demo") < text.index("make test") < text.index("import torch")
    table = text.split("\n## Documents\n")[1].split("\n## ")[0]
    for name in os.listdir(str(ROOT / "docs")):
        assert not name.endswith(".md") or f"(docs/{name})" in table, name
