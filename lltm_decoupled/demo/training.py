"""The training loop: truncated backpropagation through time, window by window."""

import math
import signal
import threading
import time

import torch
import torch.nn.functional as F
from torch import nn
from tqdm import tqdm

from .text import windows

GRADIENT_NORM = 1.0  # gradients through many steps are small, but now and then huge
HALVING = 400  # after three times this many steps the learning rate has halved


class Trainer:
    """A model, its optimizer, and how far they have come in the text.

    ``step`` counts the updates made; ``state`` is the recurrent state with which the next window
    starts. With the optimizer's own state these two let a training go on as if never stopped.
    """

    def __init__(self, model, codes, batch, window, learning_rate):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
        self.learning_rate = learning_rate
        self.windows = [w for w in windows(codes, batch, window) if len(w[0]) == window]
        self.step = 0
        self.state = None
        self.characters = 0  # read by this object, as opposed to before a checkpoint
        self.seconds = 0.0

    def run(self, interruption, steps=None, seconds=None):
        """Make ``steps`` updates, for at most ``seconds``; None means without that limit.

        Ends between two updates where ``interruption`` is requested. Returns why it ended before
        ``steps``, or None.
        """
        started = time.monotonic()
        size = self.windows[0][0].numel()
        total = None if steps is None else steps * size
        reason = None
        with tqdm(total=total, unit="char", unit_scale=True, disable=None) as bar:
            done = 0
            while steps is None or done < steps:
                if seconds is not None and time.monotonic() - started >= seconds:
                    reason = f"{seconds:g} seconds are over"
                elif interruption.requested:
                    reason = "interrupted"
                else:
                    reason = self.update(bar)
                if reason:
                    break
                done += 1
                bar.update(size)
        self.characters += done * size
        self.seconds += time.monotonic() - started
        return reason

    def update(self, bar=None):
        """Learn from the next window. Returns None, or why the weights were left as they were."""
        position = self.step % len(self.windows)
        if position == 0:
            self.state = None  # the text starts anew
        inputs, targets = self.windows[position]
        logits, state = self.model(inputs, self.state)
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        self.optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), GRADIENT_NORM)
        if not math.isfinite(norm):
            return "the gradient is not finite"
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate()
        self.optimizer.step()
        self.state = self.model.carry(state)
        self.step += 1
        if bar is not None and self.step % 20 == 0:
            bar.set_postfix_str(f"{loss.item() / math.log(2):.2f} bits/char", refresh=False)
        return None

    def rate(self):
        """Return the learning rate of this step.

        It depends on nothing but the step, so a training that was stopped and continued equals one
        that never stopped.
        """
        return self.learning_rate / math.sqrt(1 + self.step / HALVING)


class Interruption:
    """Within this context Ctrl-C sets ``requested``, and only a second one raises.

    A KeyboardInterrupt in the middle of an update would leave half of the weights a step ahead.
    """

    def __init__(self):
        self.requested = False

    def __enter__(self):
        # Only the main thread may set a handler; one that is not Python's own is left alone.
        default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        self.active = default and threading.current_thread() is threading.main_thread()
        if self.active:
            signal.signal(signal.SIGINT, self.request)
        return self

    def request(self, signal_number, frame):
        self.requested = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def __exit__(self, *error):
        if self.active:
            signal.signal(signal.SIGINT, signal.default_int_handler)
