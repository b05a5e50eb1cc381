"""Builds `lltm_decoupled._C`. What is built and why: build_support/plan.py."""

import os
import shutil
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

from build_support import plan, probe, sources
from build_support.facts import BuildError

ROOT = os.path.dirname(os.path.abspath(__file__))
EXTENSION = "lltm_decoupled._C"
# What the caller may have said on the command line or through an editable install.
OPTIONS = ("build_lib", "inplace", "debug", "verbose", "parallel", "compiler", "editable_mode")


class CarrySources(build_py):
    """Puts what lltm_decoupled.jit compiles into the installed package."""

    def run(self):
        super().run()
        for source, target in self._carried():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(str(source), str(target))

    def get_outputs(self, include_bytecode=True):
        return super().get_outputs(include_bytecode) + [
            str(target) for _, target in self._carried()
        ]

    def _carried(self):
        if getattr(self, "editable_mode", False):  # the checkout itself is at hand
            return
        to = Path(self.build_lib, "lltm_decoupled", "_sources")
        for folder in ("cuda_core", "bindings", "build_support"):
            for path in Path(folder).glob("*.*"):
                yield path, to / path


def with_own_flags(build_extension, own_flags):
    """torch's BuildExtension, which has the same flags for all sources, and these apart."""

    class BuildApart(build_extension):
        def build_extension(self, extension):
            for number, (source, flags) in enumerate(own_flags.items()):
                compiled = self.compiler.compile(
                    [source],
                    output_dir=os.path.join(self.build_temp, f"own{number}"),  # a ninja file each
                    macros=extension.define_macros,
                    include_dirs=extension.include_dirs,
                    extra_postargs={"cxx": extension.extra_compile_args["cxx"] + flags},
                )
                extension.extra_objects += compiled
            super().build_extension(extension)

    return BuildApart


class BuildWithTorch(build_ext):
    """Hands over to torch's BuildExtension, and imports torch only then: metadata needs none."""

    def run(self):
        try:
            todo = plan.plan(**probe.gather(os.environ, self.distribution.get_version()))
            os.environ.update(todo.environment)
            cpp_extension = probe.import_cpp_extension()
        except BuildError as error:
            raise SystemExit(f"{plan.NAME}: error: {error}") from error
        print(*todo.messages, todo.decision, sep="\n", flush=True)

        alike = [source for source in todo.sources if source not in todo.own_flags]
        apart = [(sources.OWN_FLAGS_MACRO, None)] if todo.own_flags else []
        make = cpp_extension.CUDAExtension if todo.with_cuda else cpp_extension.CppExtension
        extension = make(
            EXTENSION,
            # the slowest to compile come first
            [*alike[:1], sources.write_together("build"), *alike[1:]],
            # absolute, as ninja runs in the object folder; sources stay relative and short
            include_dirs=[
                os.path.normpath(os.path.join(ROOT, folder)) for folder in todo.include_dirs
            ],
            library_dirs=todo.library_dirs,
            define_macros=todo.define_macros + apart,
            extra_compile_args=todo.extra_compile_args,
        )
        self.distribution.ext_modules = [extension]
        build_extension = with_own_flags(cpp_extension.BuildExtension, todo.own_flags)
        command = build_extension(self.distribution)
        for option in OPTIONS:
            if hasattr(self, option):
                setattr(command, option, getattr(self, option))
        # An editable install is given a new temporary folder each time; a lasting one lets ninja
        # recompile only what changed.
        lasting = "build" if getattr(self, "editable_mode", False) else self.build_temp
        command.build_temp = os.path.join(lasting, f"{sys.implementation.cache_tag}-{todo.flavour}")
        command.ensure_finalized()
        command.run()


setup(
    license="BSD-3-Clause",
    # Names every source, so that the sdist holds the CUDA files too; run() chooses among them.
    ext_modules=[
        Extension(EXTENSION, [*sources.HOST_SOURCES, *sources.CUDA_SOURCES], language="c++")
    ],
    cmdclass={"build_ext": BuildWithTorch, "build_py": CarrySources},
)
