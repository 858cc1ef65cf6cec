"""Stands for a worker, without torch: at its first request it does what ``AT_FIRST`` says."""

import os
import sys

sys.stdin.readline()
exec(os.environ["AT_FIRST"])
