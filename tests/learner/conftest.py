"""The learner's own small environment can be imported by name, and torch uses one thread, as in training."""

import sys
from pathlib import Path

import torch

torch.set_num_threads(1)

sys.path.insert(0, str(Path(__file__).parent))
