"""Wrong uses: mypy has to object to each line with a comment, for that reason, and to no other."""

import torch

import lltm_decoupled
from lltm_decoupled import LLTM, LLTMFunction, LLTMSequence, lltm_cell, lltm_sequence

x, w, h, c = (torch.zeros(2, 2) for _ in range(4))
cell, layer = LLTM(3, 4), LLTMSequence(3, 4)

LLTM("3", 4)  # arg-type
LLTM(3)  # call-arg
LLTM(3, 4, size=5)  # call-arg
LLTMSequence(3, 4, zoneout=0.1)  # arg-type
LLTMSequence(3, 4, bidirectional="yes")  # arg-type
LLTMSequence(3, 4, 1, True, False, 0.0, False, 0, None, None, (0.1, 0.1))  # call-arg
cell(x, h)  # arg-type
cell([1.0, 2.0])  # arg-type
layer(x, (h, c, c))  # arg-type
new_h, new_cell, gates = cell(x, (h, c))  # misc
lltm_cell(x, w, h, c)  # call-arg
lltm_cell(x, w, 0.0, h, c)  # arg-type
LLTMFunction(x, w, None, h, c)  # call-arg
lltm_decoupled.compat.lltm_cpp(x)  # call-arg
lltm_sequence(x, w, None, h, c, None)  # call-arg
lltm_sequence(x, w, None, h, c, reverse="no")  # arg-type
output, state = lltm_sequence(x, w, None, h, c)  # misc
lltm_decoupled.forward(x, w, None, h)  # call-arg
lltm_decoupled.build_info("cuda")  # call-arg
lltm_decoupled.build_infos()  # attr-defined
