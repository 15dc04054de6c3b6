"""Runs every scenario of ../scenarios.txt, and those of the asynchronous client."""

import inspect
from pathlib import Path

import access
import aio
import entities
import queries
import service
import tables
import transactions
from report import main


def functions(module):
    return {name: function for name, function in vars(module).items()
            if inspect.isfunction(function) and function.__module__ == module.__name__}


def missing():
    raise AssertionError("this scenario is not implemented")


written = {}
for module in (tables, entities, queries, transactions, access, service):
    written.update(functions(module))

listed = Path(__file__).with_name("..").joinpath("scenarios.txt").read_text(encoding="utf-8").splitlines()
names = [line.split()[0] for line in listed if line.strip() and not line.startswith("#")]
scenarios = {name: written.get(name, missing) for name in names}
scenarios.update((name, function) for name, function in vars(aio).items() if name.startswith("aio_"))
main(scenarios)
