"""The list of cases. A case is a function; one with a parameter gets a new table, removed after it."""

import inspect

from table import Table, remove

cases = {}


def add(name, function):
    assert name not in cases, f"two cases are called {name}"
    cases[name] = function


def case(function):
    """Registers a function under its own name."""
    if inspect.signature(function).parameters:
        def with_table():
            table = Table().create()
            try:
                function(table)
            finally:
                remove(table.name)
        add(function.__name__, with_table)
    else:
        add(function.__name__, function)
    return function
