"""
Breaks one function of ours in a process that a test starts: it raises for whatever has the word `fault` in it.

Python imports this module by its name, before anything else, from a directory in PYTHONPATH. `FAULT_AT` names the
function as `module:Class.function`, or several of them, separated by commas.
"""

import importlib
import os
from collections.abc import Callable
from typing import Any


def is_meant(argument: Any) -> bool:
    """Whether *argument* is, or is a verdict on, something with that word in it."""
    verdict = getattr(argument, "verdict", argument)
    return "fault" in repr(getattr(verdict, "frame", None) or argument)


def faulty(function: Callable[..., Any]) -> Callable[..., Any]:
    """*function*, which raises where it is meant to."""

    def raises(self: Any, *arguments: Any, **named: Any) -> Any:
        if any(map(is_meant, arguments)):
            raise ZeroDivisionError("a secret of ours")
        return function(self, *arguments, **named)

    return raises


for place in filter(None, os.environ.get("FAULT_AT", "").split(",")):
    module, _, path = place.partition(":")
    owner, _, name = path.partition(".")
    broken = getattr(importlib.import_module(module), owner)
    setattr(broken, name, faulty(getattr(broken, name)))
