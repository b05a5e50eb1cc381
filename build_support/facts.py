"""What a build is decided on."""

from __future__ import annotations

from dataclasses import dataclass


class BuildError(Exception):
    """The build that was asked for is not possible here; the message says what is missing."""


@dataclass(frozen=True)
class Toolkit:
    """A CUDA toolkit as `probe.find_toolkit` saw it."""

    nvcc: str
    version: str  # of nvcc
    home: str
    missing: tuple[str, ...] = ()
    headers_version: str = ""  # of cuda_runtime_api.h
    include_dirs: tuple[str, ...] = ()  # only what is not at home/include
    library_dirs: tuple[str, ...] = ()  # only what is not at home/lib64
    msvc_range: tuple[int, int] | None = None  # first accepted and first refused _MSC_VER


@dataclass(frozen=True)
class Compiler:
    """The host compiler; version is _MSC_VER on Windows ("1939"), else what it calls itself."""

    path: str
    version: str = ""
    is_gcc: bool = False
