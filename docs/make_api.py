"""Writes docs/api.md from the docstrings: python docs/make_api.py

tests/test_documents.py fails where the page is not what this makes. What is said about a function
is said in its docstring, and only there.
"""

import inspect
import re
from pathlib import Path

import lltm_decoupled
from lltm_decoupled import compat, jit, reference

PAGE = Path(__file__).resolve().parent / "api.md"

INTRODUCTION = """\
# API

Made from the docstrings by `docs/make_api.py`. Everything here is typed: `mypy --strict` accepts
`tests/typed/user_program.py`. [layer.md](layer.md) is the guide with examples."""

SECTIONS = (
    ("Modules", lltm_decoupled, ("LLTM", "LLTMSequence")),
    ("Functions", lltm_decoupled, ("lltm_cell", "lltm_sequence", "LLTMFunction")),
    ("The tutorial's raw functions", lltm_decoupled, ("forward", "backward")),
    ("This binary", lltm_decoupled, ("build_info",)),
    ("lltm_decoupled.jit", jit, ("load",)),
    ("lltm_decoupled.compat", compat, ("lltm_cpp", "lltm_cuda")),
    (
        "lltm_decoupled.reference",
        reference,
        ("LLTM", "LLTMSequence", "lltm_cell", "lltm_sequence", "forward", "backward"),
    ),
)


def page():
    parts = [INTRODUCTION]
    for title, module, names in SECTIONS:
        parts.append("## " + title)
        if title == module.__name__:
            parts.append(as_markdown(inspect.getdoc(module)))
        for name in names:
            parts += entry(name, getattr(module, name))
    return "\n\n".join(parts) + "\n"


def entry(name, value):
    """The Markdown of a function or class, its own methods included."""
    parts = ["### " + name]
    if not inspect.isclass(value):
        return [*parts, signature(name, value), as_markdown(inspect.getdoc(value))]
    if "__init__" in own_members(value):
        parts.append(signature(name, own_members(value)["__init__"]))
    parts.append(as_markdown(inspect.getdoc(value)))
    for method, function in own_members(value).items():
        text = inspect.getdoc(function)
        if (
            not method.startswith("_")
            and function.__doc__
            and method not in ("forward", "backward")
        ):
            parts.append(f"`.{method}`: {as_markdown(text)}")
    return parts


def own_members(kind):
    """Methods and properties that this package defines, those of torch.nn.Module left out."""
    members = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("lltm_decoupled"):
            members.update(vars(base))
    found = {}
    for name, value in members.items():
        value = getattr(value, "__func__", getattr(value, "fget", value))  # static, property
        if inspect.isfunction(value):
            found[name] = value
    return found


def signature(name, function):
    """As it stands in the source; what inspect makes of it differs from Python to Python."""
    source = inspect.getsource(function)
    written = re.search(r"def \w+\((.*?)\)( -> [^\n]*)?:\n", source, flags=re.DOTALL)
    arguments = [line.strip() for line in written.group(1).strip().splitlines()]
    arguments = " ".join(arguments).rstrip(",")
    arguments = re.sub(r"^self(, )?", "", arguments)
    result = written.group(2) if written.group(2) != " -> None" else ""
    line = f"{name}({arguments}){result or ''}"
    if len(line) > 100:
        pieces = split_arguments(arguments)
        line = f"{name}(\n" + "".join(f"    {piece},\n" for piece in pieces) + f"){result or ''}"
    return f"```text\n{line}\n```"


def split_arguments(text):
    """At the commas between arguments, not at those in the brackets of a type or a default."""
    pieces, depth = [""], 0
    for letter in text:
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += letter
    return [piece.strip() for piece in pieces]


def as_markdown(text):
    """A docstring's paragraphs as they are, and each of its sections as a list."""
    lines, output, in_section = text.splitlines(), [], False
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        if line.endswith(":") and following.startswith("    ") and not line.startswith(" "):
            output += ["", f"**{line}**", ""]
            in_section = True
        elif line.startswith("    ") and in_section:
            begins = not line.startswith("     ") and starts_an_item(lines, number)
            output.append(("- " if begins else "  ") + line.strip())
        else:
            output.append(line)
            in_section = in_section and not line
    return re.sub(r"\n{3,}", "\n\n", "\n".join(output)).strip()


def starts_an_item(lines, number):
    """The first line of a section starts one, and so does "name, name: what it is"."""
    return not lines[number - 1].startswith("    ") or re.match(
        r" {4}[\w{}]+(, [\w{}]+)*: ", lines[number]
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
