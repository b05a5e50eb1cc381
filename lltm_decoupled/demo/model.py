"""The model: an embedding, a recurrent layer over the characters, and a linear readout."""

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

    ``layer`` is any class with the calling conventions of nn.LSTM: LLTMSequence, its plain PyTorch
    reference, which takes the same state dict, or nn.LSTM itself.
    """

    def __init__(self, symbols, hidden, layer=lltm_decoupled.LLTMSequence):
        super().__init__()
        self.embedding = nn.Embedding(symbols, EMBEDDING)
        self.layer = layer(EMBEDDING, hidden)
        self.readout = nn.Linear(hidden, symbols)

    def forward(self, characters, state=None):
        """Map characters (T, B) and a state (h, c), each (1, B, H), to logits (T, B, symbols).

        Returns (logits, state after the last character). No state means zeros.
        """
        output, state = self.layer(self.embedding(characters), state)
        return self.readout(output), state

    def carry(self, state):
        """Return the state with which the next window starts.

        LLTM has no forget gate: c only ever adds up, and along a whole text it would grow until
        tanh(c) is stuck at -1 or 1. So c starts at zero in every window, and h, which is always
        within -1..1, tells the new window what came before. nn.LSTM, which forgets, keeps both. No
        gradient flows back across the border (truncated backpropagation through time).
        """
        h, c = state
        forgets = isinstance(self.layer, nn.LSTM)
        return h.detach(), c.detach() if forgets else torch.zeros_like(c)


def lstm_of_equal_size(symbols, hidden):
    """Return the hidden size with which nn.LSTM gives the model most nearly as many parameters."""

    def parameters(gates, biases, h):
        return gates * h * (h + EMBEDDING) + biases * gates * h + symbols * h

    wanted = parameters(3, 1, hidden)
    return min(range(1, hidden + 1), key=lambda h: abs(parameters(4, 2, h) - wanted))


@torch.no_grad()
def bits_per_character(model, codes, window):
    """Return the mean surprise, in bits, of ``model`` at each next character of ``codes``."""
    rows = max(1, min(EVALUATION_ROWS, len(codes) // (2 * window)))
    total, count, state = 0.0, 0, None
    for inputs, targets in windows(codes, rows, window):
        logits, state = model(inputs, state)
        state = model.carry(state)
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
            state = model.carry(state)
        chances = (logits[-1, 0].double().cpu() / temperature).softmax(0)
        choice = torch.multinomial(chances, 1, generator=generator)
        written.append(choice)
        logits, state = model(choice.to(prompt.device).unsqueeze(1), state)
    return torch.cat(written) if written else prompt.new_empty(0).cpu()
