"""
One target under atheris, guided by what of our code an input reaches. Never comes back; `fuzzing.py` starts it.

Its arguments: the name of the target, and options of libFuzzer.
"""

import sys
from importlib import import_module
from typing import Any

atheris: Any = import_module("atheris")

# Only what is imported in here is looked at.
with atheris.instrument_imports(include=["assay"]):
    from targets import targets

if __name__ == "__main__":
    atheris.Setup(sys.argv[1:], targets()[sys.argv[1]])
    atheris.Fuzz()
