"""Policies: the files that ship and are shared, and the runtime that plays them."""

DEFAULT_POLICY = "go2-pose"  # of `play`, `evaluate`, the studio and the Python API
