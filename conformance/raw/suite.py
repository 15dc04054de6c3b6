"""Runs all raw cases, or those whose name contains one of the arguments."""

import importlib
import sys
from pathlib import Path

import report
from registry import cases
from table import remove_all

for module in sorted(Path(__file__).with_name("cases").glob("*.py")):
    importlib.import_module(f"cases.{module.stem}")

wanted = sys.argv[1:]
chosen = {name: case for name, case in cases.items() if not wanted or any(word in name for word in wanted)}
try:
    exit_code = report.run(chosen)
finally:
    remove_all()
sys.exit(exit_code)
