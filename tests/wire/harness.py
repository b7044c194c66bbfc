# SPDX-License-Identifier: MIT
"""Runs the cases of one test file and prints a line for each: ok, not ok, skip.

    @case                          # gets a running Target with the file's options
    def a_read_returns_what_was_written(t): ...

    @case(each=[512, 4096])        # once for each value; a tuple becomes several arguments
    def a_length_of(t, length): ...

    @case(own={"target": {"nop_interval": "100ms"}})   # a Target of its own
    def a_silent_initiator_is_dropped(t): ...

    if __name__ == "__main__":
        main()

Invariants
 1. A daemon that died, hung at exit or printed a sanitizer report fails the case that shows it.
 2. A file ends within its time whatever happens, and takes its daemons with it.
"""

import inspect
import os
import re
import signal
import sys
import time
import traceback

from iscsi import check
from target import Target

CASES = []
LIMIT_SECONDS = int(os.environ.get("YOKE_WIRE_LIMIT", 900))
TRACE = os.environ.get("YOKE_WIRE_TRACE")      # tracebacks and times on the standard error


class Prompt:
    """Times of what must not wait for something that waits, each below a limit.

    Two may be the machine's: it has others to serve. What waits by mistake does so each time.

        with Prompt(2) as prompt:
            prompt("a NOP", session.ping, b"alive")
    """

    def __init__(self, limit):
        self.limit, self.slow = limit, []

    def __enter__(self):
        return self

    def __call__(self, what, function, *arguments, **options):
        started = time.monotonic()
        result = function(*arguments, **options)
        took = time.monotonic() - started
        if took >= self.limit:
            self.slow.append(f"{what} {took:.2f} s")
        return result

    def __exit__(self, kind, *_):
        if kind is None:
            check(len(self.slow) <= 2, f"too slow: {', '.join(self.slow)}")


class Skip(Exception):
    """Raised by a case that cannot run; the text says why."""


def case(function=None, *, each=None, own=None):
    """Register a test; see the top."""
    if function is None:
        return lambda f: case(f, each=each, own=own)
    for number, value in enumerate(each if each is not None else [None]):
        name = function.__name__
        if each is not None:
            name += f"[{_label(value) or number}]"
        CASES.append((name, function, value, each is not None, own))
    return function


def _label(value):
    """A value of a matrix as part of a name: its words and numbers, or nothing."""
    parts = value if isinstance(value, (tuple, list)) else (value,)
    parts = [str(part) for part in parts if isinstance(part, (str, int, float))]
    return re.sub(r"[^\w.:,=+-]+", "_", ",".join(parts))[:100]


class _Shared:
    """The daemon that cases without their own options share; a dead one is replaced."""

    def __init__(self, options):
        self.options, self.target = options, None

    def get(self):
        if self.target is None:
            self.target = Target(**self.options).start()
        return self.target

    def stop(self):
        target, self.target = self.target, None
        if target:
            target.stop()

    def abandon(self):
        if self.target:
            self.target.abandon()


def _why(error):
    text = " ".join(str(error).split()) or type(error).__name__
    where = [f for f in traceback.extract_tb(error.__traceback__)
             if os.path.basename(f.filename).startswith("test_")]
    if where:
        text += f" ({os.path.basename(where[-1].filename)}:{where[-1].lineno})"
    kind = "" if isinstance(error, AssertionError) else type(error).__name__ + ": "
    return kind + text


def _run_one(shared, function, value, has_value, own):
    arguments = () if not has_value else value if isinstance(value, tuple) else (value,)
    if not inspect.signature(function).parameters.keys() & {"t"}:
        function(*arguments)
    elif own is None:
        target = shared.get()
        try:
            function(target, *arguments)
        except Exception:
            target.settled()    # one that is dying is not for the next case
            raise
        finally:
            if not target.alive():
                shared.stop()
    else:
        with Target(**own) as target:
            function(target, *arguments)


class Expired(Exception):
    """The whole file takes too long."""


def _expire(*_):
    signal.alarm(30)        # what unwinds may hang as well
    raise Expired(f"the test file took more than {LIMIT_SECONDS} s")


def _run_all(shared, wanted):
    """Run the cases; how many passed and how many failed."""
    passed = failed = 0
    for name, function, value, has_value, own in CASES:
        if wanted and not any(part in name for part in wanted):
            continue
        started = time.monotonic()
        try:
            _run_one(shared, function, value, has_value, own)
        except Skip as why:
            print(f"skip {name}: {why}", flush=True)
        except Exception as error:
            failed += 1
            print(f"not ok {name}: {_why(error)}", flush=True)
            if TRACE:
                traceback.print_exc()
            if isinstance(error, Expired):
                break
        else:
            passed += 1
            print(f"ok {name}", flush=True)
        if TRACE:
            print(f"   {time.monotonic() - started:.2f} s", file=sys.stderr)
    try:
        shared.stop()
    except Exception as error:
        failed += 1
        print(f"not ok the_daemon_ends_well: {_why(error)}", flush=True)
    return passed, failed


def main(**options):
    """Run the file's cases (those whose name contains an argument, if there are any) and exit.

    options are those of the Target that cases share.
    """
    signal.signal(signal.SIGALRM, _expire)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.alarm(LIMIT_SECONDS)
    shared = _Shared(options)
    try:
        passed, failed = _run_all(shared, sys.argv[1:])
    finally:
        shared.abandon()
    sys.exit(1 if failed else 0 if passed else 77)
