"""A table as one test: `rows` is written like `pytest.mark.parametrize`, and runs every row in one item."""

import inspect
import reprlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

Test = Callable[..., None]
Label = Callable[[Any], object]
ROW_FAILED = (Exception, pytest.fail.Exception)


def rows(
    names: str | Sequence[str], values: Iterable[Any], *, ids: Iterable[str] | Label | None = None
) -> Callable[[Test], Test]:
    """
    Run a test for each of *values*, which are its arguments *names*; those that fail are named, and all of them run.

    Fixtures are made once, not for each row. Two tables on one test are all pairs of their rows.
    """
    arguments = [each.strip() for each in names.split(",")] if isinstance(names, str) else list(names)
    table = [_row(value, arguments) for value in values]
    labels = _labels(table, ids)

    def decorate(test: Test) -> Test:
        def run(**fixtures: Any) -> None:
            failed = []
            for label, (_, row) in zip(labels, table, strict=True):
                try:
                    test(**fixtures, **dict(zip(arguments, row, strict=True)))
                except ROW_FAILED as error:
                    error.add_note(f"in the row {label}")
                    failed.append(error)
            if len(failed) == 1:
                raise failed[0]
            if failed:
                raise BaseExceptionGroup(f"{len(failed)} of {len(table)} rows fail", failed)

        signature = inspect.signature(test)
        assert table, f"{test.__name__} has no rows"
        run.__name__, run.__qualname__, run.__doc__ = test.__name__, test.__qualname__, test.__doc__
        run.__module__ = test.__module__
        vars(run).update(vars(test))
        kept = [each for name, each in signature.parameters.items() if name not in arguments]
        vars(run)["__signature__"] = signature.replace(parameters=kept)
        return run

    return decorate


def _row(value: Any, arguments: list[str]) -> tuple[str | None, Sequence[Any]]:
    """Return the name that a row has been given, and its values."""
    given = getattr(value, "id", None) if _is_param(value) else None
    if _is_param(value):
        return given, tuple(value.values)
    return None, (value,) if len(arguments) == 1 else tuple(value)


def _is_param(value: Any) -> bool:
    return isinstance(value, type(pytest.param()))


def _shown(number: int, row: Sequence[Any]) -> str:
    """Return a row in short, whatever is in it: text of megabytes, lists in lists without end."""
    short = reprlib.Repr()
    short.maxstring = short.maxother = short.maxlong = 80
    try:
        return f"{number}: {short.repr(row)}"[:300]
    except Exception:
        return str(number)


def _labels(table: list[tuple[str | None, Sequence[Any]]], ids: Iterable[str] | Label | None) -> list[str]:
    """Return what each row is called."""
    if ids is None:
        return [given or _shown(number, row) for number, (given, row) in enumerate(table)]
    if callable(ids):
        return [given or "-".join(str(ids(each)) for each in row) for given, row in table]
    return list(ids)
