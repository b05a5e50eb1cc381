"""A multiple of the identity matrix: a type that is no Tensor, and that torch's functions take.

It teaches: `__torch_function__` with a table of functions, first with nothing else allowed, then
with a way back to plain tensors for all the others.

    python examples/scalar_tensor.py
"""

import torch


class ScalarTensor:
    """value * identity, (size, size), kept as two numbers. Only what is in HANDLED works on it."""

    HANDLED = {}

    def __init__(self, size, value):
        self.size, self.value = size, value

    def __repr__(self):
        return f"{type(self).__name__}(size={self.size}, value={self.value})"

    def dense(self):
        return self.value * torch.eye(self.size)

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        # types holds the classes of all arguments that override something. After NotImplemented a
        # class that we do not know has its own turn; if nobody answers, torch raises TypeError.
        known = all(issubclass(kind, (torch.Tensor, ScalarTensor)) for kind in types)
        if not known or function not in cls.HANDLED:
            return NotImplemented
        return cls.HANDLED[function](*args, **(kwargs or {}))


class PartialScalarTensor(ScalarTensor):
    """The same, but a function that is not in the table gets the dense matrix."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        # Types before table: to make everything dense where an unknown type is among the arguments
        # would take away that type's turn.
        if not all(issubclass(kind, (torch.Tensor, ScalarTensor)) for kind in types):
            return NotImplemented
        if function in cls.HANDLED:
            return super().__torch_function__(function, types, args, kwargs)
        return function(*densified(args), **densified(kwargs or {}))


def densified(value):
    """Every ScalarTensor in value, made dense.

    Lists and keywords too: with a look at the positional arguments alone, torch.cat([s, t]) would
    come back here without end, and torch.add(t, other=s) as well.
    """
    if isinstance(value, ScalarTensor):
        return value.dense()
    if isinstance(value, (list, tuple)):
        return type(value)(densified(item) for item in value)
    if isinstance(value, dict):
        return {key: densified(item) for key, item in value.items()}
    return value


def implements(torch_function):
    """Puts a function into the table, under the function of torch that it stands for."""

    def register(function):
        ScalarTensor.HANDLED[torch_function] = function
        return function

    return register


@implements(torch.mean)
def mean(input):
    return torch.tensor(self_sum(input) / input.size**2)


@implements(torch.sum)
def self_sum(input):
    return float(input.value * input.size)


@implements(torch.add)
def add(input, other):
    if not (isinstance(input, ScalarTensor) and isinstance(other, ScalarTensor)):
        return torch.add(densified(input), densified(other))
    if input.size != other.size:
        raise ValueError(f"sizes differ: {input.size} and {other.size}")
    return type(input)(input.size, input.value + other.value)


def main():
    two, three = ScalarTensor(5, 2), ScalarTensor(5, 3)
    assert torch.mean(two).item() == two.dense().mean().item()
    print("in the table:     torch.add ->", torch.add(two, three))
    assert torch.equal(torch.add(two, torch.ones(5, 5)), two.dense() + 1)
    try:
        torch.mul(two, three)
    except TypeError as error:
        print("not in the table:", str(error).partition("\n")[0].partition("'")[0] + "...")
    else:
        raise AssertionError("torch.mul is not in the table")

    some = PartialScalarTensor(2, 4)
    assert torch.equal(torch.mul(some, some), some.dense() ** 2)
    assert torch.equal(
        torch.cat([some, torch.ones(1, 2)]), torch.tensor([[4.0, 0], [0, 4], [1, 1]])
    )
    assert torch.equal(torch.add(torch.ones(2, 2), other=some), 1 + some.dense())
    assert isinstance(torch.add(some, some), PartialScalarTensor)
    print("partial coverage: torch.cat ->", torch.cat([some, torch.ones(1, 2)]).tolist())


if __name__ == "__main__":
    main()
