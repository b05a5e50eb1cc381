"""What a caller may pass, and the words for what it may not."""

import inspect
import numbers
import operator
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    List,
    Optional,
    Sequence,
    SupportsIndex,
    Tuple,
    Type,
    TypeVar,
    Union,
    cast,
)

import torch
from torch import Tensor

Pair = Tuple[Tensor, Tensor]
State = Union[Pair, List[Tensor]]  # what a caller may give
Class = TypeVar("Class")

DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


def shown_as(name: str) -> Callable[[Type[Class]], Type[Class]]:
    """For a base class: Python's own errors about arguments then name the public class."""

    def rename(base: Type[Class]) -> Type[Class]:
        for function in vars(base).values():
            if inspect.isfunction(function):
                function.__qualname__ = f"{name}.{function.__name__}"
        return base

    return rename


class NotCalled:
    """A class whose functions are called, as `_calls` says, and never itself."""

    _calls: str

    if not TYPE_CHECKING:  # mypy's own words for a call are clear

        def __new__(cls, *arguments, **options):
            raise TypeError(f"{cls.__name__} is not called itself: call {cls._calls}")


def counted(number: float, thing: str, form: str = "") -> str:
    """As "1 step", "2 steps" or "2 processes"."""
    shown = format(number, form)
    ending = "es" if thing.endswith("s") else "s"
    return f"{shown} {thing}{'' if shown == '1' else ending}"


def integer(value: Any) -> Optional[int]:
    """`value` as an int, NumPy's and a tensor's too; None where it is none."""
    if isinstance(value, bool) or getattr(value, "dtype", None) is torch.bool:
        return None
    try:
        return operator.index(value)
    except (TypeError, RuntimeError):  # RuntimeError: a tensor without a value
        return None


def positive(name: str, size: SupportsIndex) -> int:
    number = integer(size)
    if number is None or number <= 0:
        raise ValueError(f"{name} must be a positive integer, got {size!r}")
    return number


def flag(name: str, value: bool) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be a bool, got {value!r}")
    return value


_FLAGS = (bool, getattr(torch, "SymBool", bool))
_HAS_NESTED = hasattr(Tensor, "is_nested")  # torch 1.12; torch 2.4 does not compile such a question


def refuse_non_flag(name: str, value: Any) -> None:
    """The operator would take whatever has a truth value.

    A flag that is a condition on sizes is a SymBool to torch.export, and to torch.jit.trace a
    tensor.
    """
    if isinstance(value, _FLAGS):
        return
    if not (isinstance(value, Tensor) and is_tracing()):
        raise TypeError(f"{name} must be a bool, got {value!r}")


def floating(name: str, dtype: Optional[torch.dtype]) -> Optional[torch.dtype]:
    if dtype is not None and dtype not in DTYPES:
        raise ValueError(
            f"{name} must be torch.float32, float64, float16 or bfloat16, got {dtype!r}"
        )
    return dtype


def probability(name: str, value: float) -> float:
    if not _is_probability(value):
        raise ValueError(f"{name} must be a number in [0, 1], got {value!r}")
    return float(value)


def probabilities(name: str, values: Sequence[float]) -> Tuple[float, float]:
    is_pair = isinstance(values, (tuple, list)) and len(values) == 2
    if not (is_pair and _is_probability(values[0]) and _is_probability(values[1])):
        raise ValueError(
            f"{name} must be a pair of numbers in [0, 1] (of h, of the cell), got {values!r}"
        )
    return float(values[0]), float(values[1])


def _is_probability(value: float) -> bool:
    if type(value) is not float:  # of which every call asks; the abstract class is slow to ask
        if not isinstance(value, numbers.Real) or isinstance(value, bool):
            return False
    return 0 <= value <= 1


def pair(state: State, names: str) -> State:
    if isinstance(state, (tuple, list)) and len(state) == 2:
        if all(isinstance(part, torch.Tensor) for part in state):
            for name, part in zip(names.split(", "), state):
                refuse_nested(name, part)
            return state
    got = type(state).__name__
    if isinstance(state, (tuple, list)):
        got += " of " + (", ".join(type(part).__name__ for part in state) or "nothing")
    raise TypeError(f"state must be a pair of tensors ({names}) or None, got {got}")


def refuse_two_states(module: torch.nn.Module, names: str) -> None:
    """For module(input, h, c)."""
    raise TypeError(
        f"{type(module).__name__} takes input and state, and the state is a pair: "
        f"call it with (input, {names})"
    )


def refuse_nested(name: str, tensor: Tensor) -> None:
    """These have no sizes: whoever asks for one gets a foreign error."""
    if _HAS_NESTED and isinstance(tensor, Tensor) and tensor.is_nested:
        raise RuntimeError(
            f"lltm_decoupled: expected {name} to be a dense tensor, got a nested one"
        )


# What follows is called where an operator has refused its arguments. A legal call pays nothing for
# it, and what the operator takes, under autocast or from a compiler, is the operator's to say.


def refuse_non_tensors(required: Dict[str, Any], optional: Dict[str, Any]) -> None:
    """Torch's own error names the argument among many lines of other things, or not at all."""
    for name, value in {**required, **optional}.items():
        is_tensor = hasattr(type(value), "__torch_function__")  # or what torch takes for one
        if not is_tensor and not (value is None and name in optional):
            or_none = " or None" if name in optional else ""
            message = f"{name} must be a tensor{or_none}, got {type(value).__name__}"
            raise TypeError(message) from None
        refuse_nested(name, value)


def refuse_foreign_input(input: Tensor, weights: Tensor) -> None:
    """The operator blames the weights, which the caller of a module has not passed."""
    if input.device != weights.device:
        raise RuntimeError(
            f"lltm_decoupled: expected input on the device of the parameters, {weights.device}, "
            f"got {input.device}: pass input.to('{weights.device}'), or move the module"
        ) from None
    if input.dtype != weights.dtype and not _autocast_unites(input, weights):
        convert = f", or convert the module with .to({input.dtype})"
        raise RuntimeError(
            f"lltm_decoupled: expected input of the dtype of the parameters, {weights.dtype}, "
            f"got {input.dtype}: pass input.to({weights.dtype})"
            f"{convert if input.dtype in DTYPES else ''}"
        ) from None
    features = weights.size(1) - weights.size(0) // 3
    if input.size(-1) != features:
        raise RuntimeError(
            "lltm_decoupled: expected input of input_features = "
            f"{counted(features, 'feature')}, got {input.size(-1)}"
        ) from None


def refuse_foreign_state(input: Tensor, h: Tensor, cell: Tensor, state_size: int) -> None:
    """The operator names the state as the functions do, and knows of no single sample."""
    if input.dim() > 2:
        raise RuntimeError(
            "lltm_decoupled: expected input to have 1 or 2 dimensions (input_features) or "
            f"(batch_size, input_features), got shape {tuple(input.shape)}"
        ) from None
    expected = (input.size(0), state_size)
    for name, part in (("h", h), ("cell", cell)):
        words = ""
        if part.layout != torch.strided:
            words = f"to be a dense tensor, got layout {part.layout}"
        elif part.device != input.device:
            words = f"on the device of input, {input.device}, got {part.device}"
        elif tuple(part.shape) != expected:
            words = f"of shape (batch_size, state_size) = {expected}, got {tuple(part.shape)}"
        elif part.dtype != input.dtype and not _autocast_unites(input, part):
            words = f"of the dtype of input, {input.dtype}, got {part.dtype}"
        if words:
            raise RuntimeError(f"lltm_decoupled: expected {name} {words}") from None


def _autocast_unites(input: Tensor, weights: Tensor) -> bool:
    """Autocast casts every dtype of ours but float64."""
    casts = (torch.float32, torch.float16, torch.bfloat16)
    return input.dtype in casts and weights.dtype in casts and is_autocast_on(input.device.type)


def is_autocast_on(device_type: str) -> bool:
    is_available = getattr(getattr(torch, "amp", None), "is_autocast_available", None)
    if is_available is not None:  # torch 2.4
        return is_available(device_type) and torch.is_autocast_enabled(device_type)
    if device_type == "cpu":
        return torch.is_autocast_cpu_enabled()
    return torch.is_autocast_enabled()


def is_tracing() -> bool:
    """Whether torch.jit.trace is at work: to it sizes are tensors."""
    return bool(torch._C._get_tracing_state())


def first_size(batch_sizes: Tensor) -> int:
    """How many sequences packed data holds."""
    if is_tracing():  # then it is a tensor, as all sizes are
        return cast(int, batch_sizes[0])
    return int(batch_sizes[0]) if batch_sizes.numel() else 0


def has_shape(tensor: Tensor, shape: Tuple[int, ...]) -> bool:
    if is_tracing():  # the operator checks the others when the trace runs
        return tensor.dim() == len(shape) and len(tensor.unbind(0)) == shape[0]
    return tuple(tensor.shape) == shape
