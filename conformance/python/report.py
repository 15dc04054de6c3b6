"""Runs named scenarios and prints the lines every suite prints: `ok NAME`, `FAIL NAME: reason`, a total."""

import sys


def one_line(error):
    """The reason of a failure: its kind and first words, on one line."""
    text = " ".join(str(error).split())
    if not isinstance(error, AssertionError) or not text:
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return text if len(text) <= 300 else text[:297] + "..."


def run(scenarios):
    """Runs `{name: function}` and returns the exit code: 0 when none failed."""
    failed = 0
    for name, scenario in scenarios.items():
        try:
            scenario()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            failed += 1
            print(f"FAIL {name}: {one_line(error)}", flush=True)
        else:
            print(f"ok {name}", flush=True)
    print(f"{len(scenarios) - failed} passed, {failed} failed", flush=True)
    return 1 if failed else 0


def same(actual, expected, what="value"):
    """Fails with both sides in the message unless they are equal."""
    if actual != expected:
        raise AssertionError(f"{what}: got {actual!r}, expected {expected!r}")


def main(scenarios):
    sys.exit(run(scenarios))
