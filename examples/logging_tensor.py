"""A subclass of Tensor that writes down every function of torch that is called on it.

It teaches: `__torch_function__` on a subclass, and what must not be called inside it.

    python examples/logging_tensor.py
"""

import logging

import torch

log = logging.getLogger("calls")


class LoggingTensor(torch.Tensor):
    """Results are LoggingTensors too, so a whole computation is written down."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        # Shapes, not values: to print an argument calls functions of torch on it, which come back
        # here, which prints them, without end.
        name = getattr(function, "__name__", str(function))
        log.info("%s(%s)", name, ", ".join(describe(value) for value in args))
        return super().__torch_function__(function, types, args, kwargs or {})


def describe(value):
    """A word for an argument, without calling anything that is overridden."""
    if isinstance(value, torch.Tensor):
        with torch._C.DisableTorchFunction():
            return f"{type(value).__name__}{list(value.shape)}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(describe(item) for item in value) + "]"
    return repr(value)


class Collect(logging.Handler):
    """Keeps the messages."""

    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


def main():
    collect = Collect()
    log.addHandler(collect)
    log.setLevel(logging.INFO)
    log.propagate = False
    try:
        x = torch.ones(2, 3).as_subclass(LoggingTensor)
        y = torch.cat([x, torch.zeros(1, 3)]).mul(2)
        assert type(y) is LoggingTensor
        calls = list(collect.lines)
        text = repr(y)  # must end, and say what is in it
    finally:
        log.removeHandler(collect)
    assert calls == ["cat([LoggingTensor[2, 3], Tensor[1, 3]])", "mul(LoggingTensor[3, 3], 2)"], (
        calls
    )
    assert "2., 2., 2." in text
    print("calls:", *calls, sep="\n  ")


if __name__ == "__main__":
    main()
