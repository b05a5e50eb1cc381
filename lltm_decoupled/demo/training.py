"""The training loop: truncated backpropagation through time, window by window."""

import math
import signal
import threading
import time

import torch
import torch.nn.functional as F
from torch import nn
from tqdm import tqdm

from . import distributed
from .text import windows

GRADIENT_NORM = 1.0  # gradients through many steps are small, but now and then huge
HALVING = 400  # after three times this many steps the learning rate has halved


class Trainer:
    """A model, its optimizer, and how far they have come in the text.

    ``step`` counts the updates made; ``state`` is the recurrent state with which the next window
    starts. With the optimizer's own state these two let a training go on as if never stopped.
    Of several processes each reads its own rows of every window, and all have the same weights.
    """

    def __init__(self, model, codes, batch, window, learning_rate):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
        self.learning_rate = learning_rate
        self.rows = distributed.rows(batch)
        self.windows = [
            (inputs[:, self.rows], targets[:, self.rows])
            for inputs, targets in windows(codes, batch, window)
            if len(inputs) == window
        ]
        self.size = batch * window  # characters in a window of all processes
        # The mean over the processes is the mean over the batch, also where one has a row more.
        self.weight = self.windows[0][0].numel() * distributed.count() / self.size
        self.replica = distributed.replicate(model, codes.device)
        self.step = 0
        self.state = None
        self.characters = 0  # read by this object, as opposed to before a checkpoint
        self.seconds = 0.0

    def run(self, interruption, steps=None, seconds=None, after_update=None):
        """Make ``steps`` updates, for at most ``seconds``; None means without that limit.

        Ends between two updates where ``interruption`` is requested. Returns why it ended before
        ``steps``, or None. ``after_update`` is called with the loss of each update.
        """
        started = time.monotonic() - self.seconds
        limit = math.inf if seconds is None else self.seconds + seconds
        total = None if steps is None else steps * self.size
        hidden = None if distributed.is_first() else True  # None: shown on a terminal
        late, interrupted, done = False, False, 0
        with tqdm(total=total, unit="char", unit_scale=True, disable=hidden) as bar:
            while steps is None or done < steps:
                if late:
                    return f"the time limit of {seconds:g} s"
                if interrupted:
                    return "interrupted"
                loss = self.update()
                if loss is None:
                    return "the gradient is not finite"
                done += 1
                self.characters += self.size
                self.seconds = time.monotonic() - started
                # All processes have to end after the same update. The first one's clock counts.
                late = distributed.is_first() and self.seconds >= limit
                loss, late, interrupted = distributed.add_up(
                    loss / distributed.count(), late, interruption.requested
                )
                bar.update(self.size)
                if self.step % 20 == 0:
                    bar.set_postfix_str(f"{loss / math.log(2):.2f} bits/char", refresh=False)
                if after_update:
                    after_update(loss)
        return None

    def update(self):
        """Learn from the next window. Returns its loss, or None where that left the weights alone.

        With several processes the mean of their losses is the loss over the whole batch.
        """
        position = self.step % len(self.windows)
        if position == 0:
            self.state = None  # the text starts anew
        inputs, targets = self.windows[position]
        logits, state = self.replica(inputs, self.state)
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten()) * self.weight
        self.optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), GRADIENT_NORM)
        if not math.isfinite(norm):
            return None
        loss = loss.item()  # here, as the norm was waited for already
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate()
        self.optimizer.step()
        self.state = self.model.carry(state)
        self.step += 1
        return loss

    def whole_state(self):
        """Return the recurrent state of all processes' rows, on the CPU, or None at the start."""
        if self.state is None:
            return None
        parts = distributed.gather(tuple(part.cpu() for part in self.state))
        return tuple(torch.cat(part, dim=1) for part in zip(*parts))

    def take_state(self, whole):
        """Go on from what :meth:`whole_state` returned, of however many processes."""
        device = self.windows[0][0].device
        self.state = tuple(part[:, self.rows].to(device) for part in whole)

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
            signal.signal(signal.SIGINT, self._handle)
        return self

    def request(self):
        self.requested = True

    def _handle(self, signal_number, frame):
        self.request()
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def __exit__(self, *error):
        if self.active:
            signal.signal(signal.SIGINT, signal.default_int_handler)
