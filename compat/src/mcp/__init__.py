"""The module name that specs/001 asks for. The official SDK has the same name and is something else."""

__version__ = "0.2.3"
