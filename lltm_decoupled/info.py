"""Report the environment and the build: what to paste into a bug report."""

import json
import os
import platform

import torch

import lltm_decoupled


def add_arguments(parser):
    """Add this command's options."""
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")


def run(args):
    """Print the report; return 0."""
    facts = collect()
    print(json.dumps(facts, indent=2) if args.json else as_text(facts))
    return 0


def collect():
    """Return the report as a dict of sections, each a dict of JSON values."""
    has_gpu = torch.cuda.is_available()
    return {
        "environment": {
            "lltm_decoupled": lltm_decoupled.build_info()["version"],
            "installed_in": os.path.dirname(os.path.abspath(lltm_decoupled.__file__)),
            "python": platform.python_version(),
            "platform": platform.platform(),
            "torch": torch.__version__,
            "torch_cuda": torch.version.cuda,
            "cpu_threads": torch.get_num_threads(),
            "sequence_path": os.environ.get("LLTM_SEQUENCE_PATH") or "automatic",
            "cpu_products": os.environ.get("LLTM_CPU_PRODUCTS") or "automatic",
            "gpus": [_gpu(index) for index in range(torch.cuda.device_count() if has_gpu else 0)],
        },
        "build": {key: _plain(value) for key, value in lltm_decoupled.build_info().items()},
    }


def as_text(facts):
    """Return the sections as aligned lines of plain text."""
    width = max(len(key) for section in facts.values() for key in section)
    blocks = []
    for title, section in facts.items():
        lines = [f"  {key.replace('_', ' '):{width}}  {_words(section[key])}" for key in section]
        blocks.append("\n".join([title, *lines]))
    return "\n".join(blocks)


def _gpu(index):
    major, minor = torch.cuda.get_device_capability(index)
    return f"{torch.cuda.get_device_name(index)} (sm_{major}{minor})"


def _plain(value):
    """Turn tuples and version objects into what JSON knows."""
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, (bool, int, float)) else str(value)


def _words(value):
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        value = ", ".join(map(str, value))
    return "none" if value in (None, "") else str(value)
