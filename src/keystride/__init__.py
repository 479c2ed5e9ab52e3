"""Keystride: direct a legged robot with timed keyframes."""

__version__ = "0.1.0"
