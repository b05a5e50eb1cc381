"""The command line: commands, the report, and one line with exit code 2 for a user's mistake."""

import json
import re
import subprocess
import sys

import pytest
import torch

import lltm_decoupled
from lltm_decoupled import check, cli, info


def fails(capsys, *arguments):
    """Run a command that must end with exit code 2; return the one line on stderr."""
    try:
        code = cli.main([str(argument) for argument in arguments])
    except SystemExit as ended:  # how argparse ends
        code = ended.code
    line = capsys.readouterr().err
    assert code == 2
    assert line.count("\n") == 1 and line.endswith("\n"), line
    assert line.startswith("python -m lltm_decoupled") and ": error: " in line
    return line


def test_info_as_text(capsys):
    assert cli.main(["info"]) == 0
    text = capsys.readouterr().out
    lines = {line[:16].strip(): line[16:].strip() for line in text.splitlines()}
    build = lltm_decoupled.build_info()
    assert lines["lltm decoupled"].split()[-1] == lltm_decoupled.__version__
    assert lines["cuda"] == ("yes" if build["cuda"] else "no")
    assert lines["compiler"] == build["compiler"]


def test_info_is_aligned():
    facts = {"one": {"a": 1, "long_name": None}, "two": {"b": [], "c": ["x", "y"], "d": True}}
    assert info.as_text(facts).splitlines() == [
        "one",
        "  a          1",
        "  long name  none",
        "two",
        "  b          none",
        "  c          x, y",
        "  d          yes",
    ]


def test_info_as_json(capsys):
    assert cli.main(["info", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["environment"]["torch"] == torch.__version__
    assert facts["environment"]["torch_cuda"] == torch.version.cuda
    assert len(facts["environment"]["gpus"]) == torch.cuda.device_count()
    assert set(facts["build"]) == set(lltm_decoupled.build_info())


@pytest.mark.parametrize("value", [None, "", "any"])
@pytest.mark.parametrize("name", ["sequence_path", "cpu_products"])
def test_info_tells_what_the_environment_asks_for(capsys, monkeypatch, name, value):
    variable = "LLTM_" + name.upper()
    monkeypatch.delenv(variable, raising=False)
    if value is not None:
        monkeypatch.setenv(variable, value)
    assert cli.main(["info"]) == cli.main(["info", "--json"]) == 0
    text, _, facts = capsys.readouterr().out.partition("\n{")
    line = rf"^  {name.replace('_', ' ')} +{value or 'automatic'}$"
    assert re.search(line, text, flags=re.MULTILINE)
    assert json.loads("{" + facts)["environment"][name] == (value or "automatic")


def test_python_minus_m():
    command = [sys.executable, "-m", "lltm_decoupled", "info", "--json"]
    assert json.loads(subprocess.check_output(command))["build"]


def test_no_command(capsys):
    assert fails(capsys) == (
        "python -m lltm_decoupled: error: the following arguments are required: command "
        "(see python -m lltm_decoupled --help)\n"
    )


@pytest.mark.parametrize("words", [("--bogus",), ("--jsn",), ("-x",), ("--json", "--bogus=1")])
def test_a_mistake_without_a_command(capsys, words):
    assert fails(capsys, *words) == (
        f"python -m lltm_decoupled: error: unrecognized arguments: {' '.join(words)} "
        "(see python -m lltm_decoupled --help)\n"
    )


def test_a_mistake_before_the_command(capsys):
    assert "unrecognized arguments: --bogus (see " in fails(capsys, "--bogus", "info")
    assert "unrecognized arguments: --bogus --fly (" in fails(capsys, "--bogus", "info", "--fly")


def test_unknown_command(capsys):
    assert "'fly'" in fails(capsys, "fly")


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_a_mistake_points_to_the_help_of_its_command(capsys, command):
    for words in (("--fly",), ("--fly", "float99"), ("fly",), ("--fly=99", "fly")):
        line = fails(capsys, command, *words)
        assert line == (
            f"python -m lltm_decoupled {command}: error: unrecognized arguments: {' '.join(words)} "
            f"(see python -m lltm_decoupled {command} --help)\n"
        )


@pytest.mark.parametrize("words", ["demo --steps x", "check --dtype x", "bench --turns x"])
def test_a_wrong_value_points_to_the_help_of_its_command(capsys, words):
    line = fails(capsys, *words.split())
    assert line.endswith(f"(see python -m lltm_decoupled {words.split()[0]} --help)\n")


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_help(capsys, command):
    with pytest.raises(SystemExit) as ended:
        cli.main([command, "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert re.search(rf"examples?:\n  python -m lltm_decoupled {command}", text)


def test_help_of_all(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert "exit codes:\n  0 " in text and "example:\n" in text
    assert all(f"  {command} " in text for command in cli.COMMANDS)


def test_version(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"lltm_decoupled {lltm_decoupled.__version__}\n"


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_the_examples_are_commands(name):
    arguments = cli.EXAMPLES[name].partition(" > ")[0].split()
    assert cli.build_parser().parse_args(arguments).run


def test_an_error_of_many_lines_is_shown_in_one(capsys, monkeypatch):
    def run(args):
        raise cli.UserError("first\n  second")

    monkeypatch.setattr(info, "run", run)
    assert fails(capsys, "info") == "python -m lltm_decoupled info: error: first second\n"


def test_ctrl_c_has_no_traceback(capsys, monkeypatch):
    def run(args):
        raise KeyboardInterrupt

    monkeypatch.setattr(info, "run", run)
    assert cli.main(["info"]) == cli.INTERRUPTED
    assert capsys.readouterr().err == "python -m lltm_decoupled info: interrupted\n"


def test_a_closed_pipe_has_no_traceback():
    command = [sys.executable, "-m", "lltm_decoupled", "info"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()  # long before torch is imported and the first line is written
        assert process.stderr.read() == b""
    assert process.returncode == 1


def test_check_finds_this_machine_right(capsys):
    assert cli.main(["check"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines[:4]] == "float64 float32 float16 bfloat16".split()
    assert [line for line in lines if "WRONG" in line or "right" in line] == [
        line for line in lines if "not here" not in line and "no GPU" not in line
    ]


def test_check_finds_what_is_wrong(capsys, monkeypatch):
    def slightly_wrong(*tensors):
        exact = [tensor.double() for tensor in tensors]  # torch 1 has no half types on a CPU
        outputs = lltm_decoupled.reference.lltm_sequence(*exact)
        return [(output * 1.001).to(tensors[0].dtype) for output in outputs]

    monkeypatch.setattr(lltm_decoupled, "lltm_sequence", slightly_wrong)
    assert cli.main(["check"]) == 1
    output = capsys.readouterr().out
    assert "float32   WRONG: lltm_sequence with a state of 24 is off by 1" in output
    assert check.check("cpu", torch.float64).startswith("WRONG")


def test_check_of_one_device_and_dtype(capsys):
    assert cli.main("check --device cpu --dtype float32 --dtype float64".split()) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:3] for line in lines] == [
        ["cpu", "float64", "right"],
        ["cpu", "float32", "right"],
    ]


def test_check_as_json(capsys, monkeypatch):
    arguments = "check --device cpu --dtype float64 --json".split()
    assert cli.main(arguments) == 0
    facts = json.loads(capsys.readouterr().out)
    (result,) = facts["results"]
    assert facts["right"] is True and result.pop("seconds") >= 0
    assert result == {"device": "cpu", "dtype": "float64", "verdict": "right", "detail": ""}
    monkeypatch.setattr(check, "compare", lambda *arguments: float("nan"))
    assert cli.main(arguments) == 1
    facts = json.loads(capsys.readouterr().out)
    assert facts["right"] is False and facts["results"][0]["verdict"] == "wrong"
    assert "off by nan" in facts["results"][0]["detail"]


@pytest.mark.parametrize("device", ["fly", "cuda:99", "cpu:x", "meta"])
def test_check_of_a_device_that_is_not_there(capsys, device):
    assert device in fails(capsys, "check", "--device", device)


def test_check_of_an_unknown_dtype(capsys):
    assert "int8" in fails(capsys, "check", "--dtype", "int8")


def test_colours_are_for_terminals(monkeypatch):
    assert check.red("x") == "x"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert check.red("x") == "\033[31mx\033[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert check.red("x") == "x"


@pytest.mark.parametrize("name", ["meta", "mps", "klingon"])
def test_a_device_that_cannot_be_used_is_told_shortly(capsys, name):
    line = fails(capsys, "check", "--device", name)
    assert f"cannot use device {name!r}: " in line and len(line) < 320


def test_a_device_named_twice_is_checked_once(capsys):
    arguments = ["check", "--device", "cpu", "--device", "cpu", "--dtype", "float64"]
    assert cli.main(arguments) == 0
    assert capsys.readouterr().out.count("\n") == 1
