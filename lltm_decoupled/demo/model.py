"""The model: an embedding, one LLTM cell run over the characters, and a linear readout."""

import math

import torch
import torch.nn.functional as F
from torch import nn

import lltm_decoupled

from .text import windows

EMBEDDING = 64
EVALUATION_ROWS = 16


class CharacterModel(nn.Module):
    """Predicts the next character.

    ``cell`` is any class with LLTM's signature: the compiled one, or the plain PyTorch reference,
    which takes the same state dict.
    """

    def __init__(self, symbols, hidden, cell=lltm_decoupled.LLTM):
        super().__init__()
        self.embedding = nn.Embedding(symbols, EMBEDDING)
        self.cell = cell(EMBEDDING, hidden)
        self.readout = nn.Linear(hidden, symbols)

    def forward(self, characters, state=None):
        """Map characters (T, B) and a state (h, c), each (B, H), to logits (T, B, symbols).

        Returns (logits, state after the last character). No state means zeros.
        """
        outputs = []
        for embedded in self.embedding(characters):
            state = self.cell(embedded, state)
            outputs.append(state[0])
        return self.readout(torch.stack(outputs)), state


def carry(state):
    """Return the state with which the next window starts.

    LLTM has no forget gate: c only ever adds up, and along a whole text it would grow until
    tanh(c) is stuck at -1 or 1. So c starts at zero in every window, and h, which is always within
    -1..1, tells the new window what came before. No gradient flows back across the border
    (truncated backpropagation through time).
    """
    h, c = state
    return h.detach(), torch.zeros_like(c)


@torch.no_grad()
def bits_per_character(model, codes, window):
    """Return the mean surprise, in bits, of ``model`` at each next character of ``codes``."""
    rows = max(1, min(EVALUATION_ROWS, len(codes) // (2 * window)))
    total, count, state = 0.0, 0, None
    for inputs, targets in windows(codes, rows, window):
        logits, state = model(inputs, state)
        state = carry(state)
        total += F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum").item()
        count += targets.numel()
    return total / count / math.log(2)


@torch.no_grad()
def generate(model, prompt, length, window, seed=0, temperature=0.7):
    """Return a LongTensor of ``length`` characters that the model writes after ``prompt``.

    ``prompt`` is a LongTensor (characters) with at least one character. A lower ``temperature``
    keeps to likelier characters.
    """
    # Drawn on the CPU, so that one seed gives one text on every device.
    generator = torch.Generator().manual_seed(seed)
    logits, state = model(prompt[-window:].unsqueeze(1))
    written = []
    for position in range(length):
        if position % window == 0:
            state = carry(state)
        chances = (logits[-1, 0].double().cpu() / temperature).softmax(0)
        choice = torch.multinomial(chances, 1, generator=generator)
        written.append(choice)
        logits, state = model(choice.to(prompt.device).unsqueeze(1), state)
    return torch.cat(written) if written else prompt.new_empty(0).cpu()
