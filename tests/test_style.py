"""Format, lint, and what Microsoft's compiler refuses while GCC takes it."""

import re

import pytest
from repository import ROOT, cxx_files, files, read, run, tool

PYTHON_FOLDERS = ("build_support", "lltm_decoupled", "benchmarks", "docs", "examples", "tests")
PYTHON_FILES = files(*PYTHON_FOLDERS, "toolchains", suffixes=(".py", ".pyi"))
CXX_FILES = cxx_files() + cxx_files("benchmarks") + cxx_files("examples")
LINUX_CXX_FILES = cxx_files("tests")  # the emulated GPU


def need(name):
    return tool(name) or pytest.skip(f"no {name}: pip install -e '.[test]'")


def check(*command):
    status, output = run(*command)
    assert status == 0, output


def test_clang_format():
    check(need("clang-format"), "--dry-run", "-Werror", *CXX_FILES, *LINUX_CXX_FILES)


def test_ruff_check():
    check(need("ruff"), "check", "setup.py", *PYTHON_FILES)


def test_ruff_format():
    check(need("ruff"), "format", "--check", "setup.py", *PYTHON_FILES)


def test_pre_commit_and_the_test_extra_pin_the_same_tools():
    pins = re.compile(r"(clang-format|ruff)==([\d.]+)")
    wanted = dict(pins.findall(read("pyproject.toml")))
    assert sorted(wanted) == ["clang-format", "ruff"]
    found = pins.findall(read(".pre-commit-config.yaml"))
    assert len(found) == 3 and set(found) == set(wanted.items())


def test_no_language_level_is_hard_coded():
    """Every torch wants another one: its BuildExtension chooses."""
    support = files("build_support", suffixes=(".py",))
    for path in ("setup.py", "pyproject.toml", "Makefile", *support):
        assert not re.search(r"std=|std:c\+\+", read(path)), path


def code_lines(text):
    """(number, line) without comments and string contents; line numbers stay true."""

    def blank(match):
        found = match.group(0)
        quoted = '""' if found.startswith('"') else ""
        return quoted + "\n" * found.count("\n")

    pattern = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"'
    plain = re.sub(pattern, blank, text, flags=re.DOTALL)
    return list(enumerate(plain.split("\n"), 1))


def guarded_lines(lines):
    """The numbers of the lines inside an #if (or its #else) that asks which compiler this is.

    LLTM_HOST_... are defined by such an #if themselves.
    """
    guarded, stack = set(), []
    for number, line in lines:
        directive = re.match(r"\s*#\s*(if|ifdef|ifndef|elif|else|endif)\b(.*)", line)
        word, condition = directive.groups() if directive else ("", "")
        asks = bool(re.search(r"_MSC_VER|__GNUC__|__clang__|LLTM_HOST_", condition))
        if word in ("if", "ifdef", "ifndef"):
            stack.append(asks)
        elif word == "elif":
            stack[-1] = stack[-1] or asks
        elif word == "endif":
            stack.pop()
        if any(stack):
            guarded.add(number)
    assert stack == []
    return guarded


FORBIDDEN = {
    "long is 32 bits on Windows: int64_t": r"\blong\b(?!\s+long)(?<!long\slong)",
    "spelled-out operators": r"(?<![\w#])(and|or|not|and_eq|or_eq|not_eq|bitand|bitor|xor|compl)\b",
    "M_PI is not defined": r"\bM_[A-Z0-9_]+\b",
    "cooperative_groups needs the STL": r"\bcooperative_groups\b",
    "designated initialisers": r"[{,]\s*\.\w+\s*=[^=]",
    "GNU types": r"\b(ssize_t|uint|u_int\w*|__int128|__typeof__|typeof)\b",
    "a ?: b": r"\?\s*:",
    "min and max are macros of windows.h": r"std::(min|max)\s*\(",
    "fmax and fmin drop NaN and are ambiguous": r"(?<![\w:])f(max|min)f?\s*\(",
    "windows.h": r"#\s*include\s*<[Ww]indows\.h>",
    "arrays of variable length": r"\b(int|unsigned|float|double|char|bool|u?int\d+_t|[A-Z])\s+"
    r"\w+\[(?!k[A-Z])[a-z_]\w*\]",
    "statement expressions": r"(=|\breturn|\()\s*\(\{",
    "case ranges": r"\bcase\b[^:]*\.\.\.",
    "GNU directives and names": r"#\s*(warning|include_next)\b|\b__PRETTY_FUNCTION__\b",
    "cl leaves __cplusplus at 199711": r"\b__cplusplus\s*[<>=!]",
    "C++17: if constexpr": r"\bif\s+constexpr\b",
    "C++17: structured bindings": r"\bauto\s*&{0,2}\s*\[",
    "C++17: namespace a::b": r"\bnamespace\s+\w+::",
    "C++17: inline variables": r"\binline\s+(static\s+)?const(expr)?\s+[\w:]+(<.*>)?\s+\w+\s*[={;]",
    "C++17: fold expressions": r"\(\s*\.\.\.\s*[-+*/%&|^<>=!,]|[-+*/%&|^<>=!]\s*\.\.\.\s*\)",
    "C++17: static_assert without a message": r"\bstatic_assert\s*\([^,]*\)\s*;",
    # in Microsoft mode __restrict__ is a part of the type, and has to be repeated
    "kernels instantiated by themselves, not by their launcher": r"\btemplate\s+__global__",
    "extended lambdas": r"\]\s*(\([^)]*\)\s*)?__(device|host)__",
}


def directives_in_arguments(lines):
    """cl does not take #if between the parentheses of a macro's call, as in AT_DISPATCH's."""
    depth, continued = 0, False
    for number, line in lines:
        directive = continued or line.lstrip().startswith("#")
        continued = directive and line.rstrip().endswith("\\")
        if not directive:
            depth += line.count("(") - line.count(")")
        elif depth > 0:
            yield number, line


def problems(text):
    lines = code_lines(text)
    guarded = guarded_lines(lines)
    for number, line in lines:
        for what, pattern in FORBIDDEN.items():
            if not line.lstrip().startswith("#error") and re.search(pattern, line):
                yield f"{number}: {what}: {line.strip()}"
        if number not in guarded and re.search(r"__attribute__|__builtin_|__restrict__\b", line):
            yield f"{number}: GNU word outside a compiler #if: {line.strip()}"
    for number, line in directives_in_arguments(lines):
        yield f"{number}: directive inside parentheses: {line.strip()}"
    for number, line in enumerate(text.split("\n"), 1):
        if re.search(r"%l[diuxX]", line):
            yield f"{number}: printf of a long: {line.strip()}"


# CUDA's own headers define __restrict__ for MSVC, so device code may say it.
@pytest.mark.parametrize("path", CXX_FILES)
def test_msvc_reads_it(path):
    found = list(problems(read(path)))
    if path.endswith((".cu", ".cuh")):
        found = [text for text in found if "__restrict__" not in text]
    assert found == []


@pytest.mark.parametrize(
    "bad",
    [
        "long n;",
        "unsigned long n;",
        "accessor<long, 2> a;",
        "if (a and b) {}",
        "return not a;",
        "x = M_PI;",
        "#include <cooperative_groups.h>",
        "T a = {.x = 1};",
        "T a = {1, .y = 2};",
        "__attribute__((noinline)) void f();",
        "#ifdef FOO\n__attribute__((noinline)) void f();\n#endif",
        "#if defined(_MSC_VER)\n#endif\n__attribute__((noinline)) void f();",
        "int n = std::min(a, b);",
        "return fmaxf(a, b);",
        "#include <windows.h>",
        "int values[n];",
        "S row[count];",
        "int n = ({ 1; });",
        "case 1 ... 3: break;",
        "puts(__PRETTY_FUNCTION__);",
        "#if __cplusplus >= 201703L\n#endif",
        "if constexpr (kAligned) {}",
        "auto [h, cell] = step();",
        "const auto& [h, cell] = step();",
        "namespace a::b {}",
        "inline constexpr int kUnits = 4;",
        "return (... + n);",
        "return (n && ...);",
        "static_assert(sizeof(int) == 4);",
        "template __global__ void k<float>(const float*);",
        "f([=] __device__(int i) {});",
        "f([=](int i) __device__ {});",
        "MACRO(a,\n#ifdef B\nb,\n#endif\nc)",
        'printf("%ld", n);',
    ],
)
def test_the_lint_sees(bad):
    assert list(problems(bad))


@pytest.mark.parametrize(
    "good",
    [
        "long long n; unsigned long long m;",
        "// a long comment, and not code",
        'error("and not or");',
        "a.x = 1; b = {a.x, 1}; f(1, 2.5f);",
        "int n = (std::min)(a, b);",
        "#if defined(_MSC_VER)\n#else\n__attribute__((noinline)) void f();\n#endif",
        "#if defined(__GNUC__)\n#ifdef FOO\n__builtin_trap();\n#endif\n#endif",
        "int values[kUnits]; a.values[n] = 1; return values[n]; auto f = [n](int i) {};",
        "f({1, 2}); T a = {{1}, 2}; f(args...); void g(int, ...); #define M(...)",
        "inline int f() {} inline constexpr int f(int n) {} namespace { }",
        'static_assert(sizeof(int) == 4, "int"); extern const int kUnits;',
        "#ifdef __cplusplus\n#endif",
        "#define M(a) \\\n  f(a\n#if A\n#endif",
        "__host__ __device__ int f(const int (&a)[2]);",
    ],
)
def test_the_lint_lets_through(good):
    assert list(problems(good)) == []


@pytest.mark.parametrize("path", CXX_FILES + LINUX_CXX_FILES)
def test_sources_are_ascii(path):
    """cl reads a source in the machine's code page unless told otherwise."""
    (ROOT / path).read_bytes().decode("ascii")


def test_objects_have_names_of_their_own():
    stems = [path.rsplit(".", 1)[0] for path in CXX_FILES if path.endswith((".c", ".cpp", ".cu"))]
    assert len(set(stems)) == len(stems)


def test_paths_are_short():
    """MSVC repeats the source's path below a temporary folder and stops at 260 characters."""
    assert [path for path in cxx_files() if len(path) > 40] == []


def test_files_are_short_enough_to_read():
    paths = ["setup.py", "Makefile", "pyproject.toml", *CXX_FILES, *LINUX_CXX_FILES, *PYTHON_FILES]
    assert [path for path in paths if len(read(path).splitlines()) > 250] == []
