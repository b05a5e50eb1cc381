"""A wrapper that carries a note beside a tensor through torch's functions.

It teaches: wrap and unwrap in `__torch_function__`, wherever the tensors are.

    python examples/metadata_tensor.py
"""

import torch


class MetadataTensor:
    """A tensor and a note. Results of torch's functions have the note of the first one."""

    def __init__(self, data, note=None):
        self.data, self.note = torch.as_tensor(data), note

    def __repr__(self):
        return f"note: {self.note}\ndata: {self.data}"

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if not all(issubclass(kind, (torch.Tensor, MetadataTensor)) for kind in types):
            return NotImplemented
        # The notes are collected on the way in, from the wrappers; after that there are none left
        # to ask. Lists and keywords count: torch.cat has its tensors in a list.
        notes = []
        args, kwargs = unwrap(args, notes), unwrap(kwargs or {}, notes)
        return wrap(function(*args, **kwargs), notes[0])


def unwrap(value, notes):
    """The plain tensors of value; adds each wrapper's note to notes."""
    if isinstance(value, MetadataTensor):
        notes.append(value.note)
        return value.data
    if isinstance(value, (list, tuple)):
        return type(value)(unwrap(item, notes) for item in value)
    if isinstance(value, dict):
        return {key: unwrap(item, notes) for key, item in value.items()}
    return value


def wrap(value, note):
    """Tensors, in tuples too, get the note. What is no tensor, such as a bool, stays as it is."""
    if isinstance(value, torch.Tensor):
        return MetadataTensor(value, note)
    if isinstance(value, (list, tuple)):
        return type(value)([wrap(item, note) for item in value])
    return value


def main():
    height = MetadataTensor([[1.8, 1.7], [1.6, 1.9]], note="metres")
    print(torch.add(height, torch.ones(2, 2)))

    stacked = torch.cat([torch.zeros(1, 2), height])
    assert stacked.note == "metres" and stacked.data.shape == (3, 2)
    assert torch.add(torch.ones(2, 2), other=height).note == "metres"
    largest = torch.max(height, dim=1)
    assert largest.values.note == "metres" and largest.indices.data.tolist() == [0, 1]
    assert torch.is_tensor(torch.ones(1)) and torch.equal(height, height.data) is True
    print("cat, keywords, tuples and plain answers: all keep or leave the note as they should")


if __name__ == "__main__":
    main()
