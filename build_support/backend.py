"""PEP 517 backend: setuptools, with the torch of the environment that is being installed into.

torch is no build requirement: pip would fetch its newest release into the isolated build
environment, and a binary built there does not load under the torch that is installed. pip hides the
target's site-packages but runs the target's own interpreter, so `sysconfig` still tells where they
are. They go to the END of sys.path: the build environment keeps precedence, and only what it lacks
comes from there.
"""

import os
import site
import sys
import sysconfig

from setuptools import build_meta
from setuptools.build_meta import (  # noqa: F401 - hooks that need no torch
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

from .facts import BuildError
from .probe import import_torch


def _in_venv():
    return sys.prefix != sys.base_prefix


def _venv_sees_system():
    try:
        with open(os.path.join(sys.prefix, "pyvenv.cfg"), encoding="utf-8") as file:
            settings = dict(line.split("=", 1) for line in file if "=" in line)
    except OSError:
        return False
    settings = {key.strip(): value.strip().lower() for key, value in settings.items()}
    return settings.get("include-system-site-packages") == "true"


def site_folders(env):
    """Where the target environment may keep torch, most specific first."""
    if env.get("LLTM_TORCH_SITE"):
        return [env["LLTM_TORCH_SITE"]]
    folders = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    if _in_venv() and _venv_sees_system():
        base = {"base": sys.base_prefix, "platbase": sys.base_exec_prefix}
        folders += [sysconfig.get_path(key, vars=base) for key in ("purelib", "platlib")]
    if not _in_venv():
        folders.append(site.getusersitepackages())
    return list(dict.fromkeys(folders))


def _provide_torch():
    try:
        import_torch()
        return
    except BuildError:
        pass
    folders = site_folders(os.environ)
    found = next((f for f in folders if os.path.isdir(os.path.join(f, "torch"))), None)
    if found:
        sys.path.append(found)
    try:
        import_torch()
    except BuildError as error:
        raise SystemExit(f"{error}\nLooked in: {os.pathsep.join(folders)}") from error


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    _provide_torch()
    return build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    _provide_torch()
    return build_meta.build_editable(wheel_directory, config_settings, metadata_directory)
