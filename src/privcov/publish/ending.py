"""Signals to end, such as Ctrl-C: obeyed at once before the payment, and after the work once it is paid for.

Ctrl-C, ``kill`` and a terminal that closes (SIGINT, SIGTERM, SIGHUP) would otherwise end a process between the payment
and its release, and a payment is never given back. SIGKILL cannot be heard, and SIGQUIT is left alone: both still
end everything at once.
"""

from __future__ import annotations

import atexit
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


@contextmanager
def orderly(asked: Callable[[], object]) -> Iterator[Callable[[], None]]:
    """While this lasts, signals end the process in order; what is yielded is called when they must wait.

    Until then Ctrl-C raises ``KeyboardInterrupt`` and the others ``SystemExit`` with the usual code, so that what is
    open is closed. From then on each signal calls ``asked``, which must not raise, and nothing else happens. A signal
    that is ignored, as by ``nohup``, stays ignored. Only the main thread hears signals; elsewhere this does nothing.

    >>> heard = []
    >>> with orderly(lambda: heard.append("asked")) as wait:
    ...     wait()
    ...     signal.raise_signal(signal.SIGTERM)
    >>> heard
    ['asked']
    """
    waits = False

    def wait() -> None:
        import pyarrow  # late: help is quick without it

        nonlocal waits
        waits = True
        pyarrow.enable_signal_handlers(False)  # it would break off reading, whatever our handler says

    def heard(number: int, frame: FrameType | None) -> None:
        if _held is not None:
            _held.append(number)
        elif waits:
            asked()
        elif number == signal.SIGINT:
            raise KeyboardInterrupt
        else:
            raise SystemExit(128 + number)

    before = {}
    if threading.current_thread() is threading.main_thread():
        found = {number: signal.getsignal(number) for number in SIGNALS}
        before = {
            number: handler for number, handler in found.items() if handler not in (None, signal.SIG_IGN)
        }
    try:
        for number in before:
            signal.signal(number, heard)
        yield wait
    finally:
        if not (
            waits and _last
        ):  # else there would be a moment between here and the end in which a signal kills
            for number, handler in before.items():
                signal.signal(number, handler)
        if waits:
            import pyarrow

            pyarrow.enable_signal_handlers(True)


_held: list[int] | None = None


@contextmanager
def undisturbed() -> Iterator[None]:
    """Signals that come while this lasts are heard at its end: what must be undone is first known to whoever undoes it.

    A file that is made and then noted has a moment in between in which an exception would leave it behind. It is for
    the main thread, within :func:`orderly`, and for steps that take no time.

    >>> with orderly(lambda: None):
    ...     try:
    ...         with undisturbed():
    ...             signal.raise_signal(signal.SIGINT)
    ...             print("made and noted")
    ...     except KeyboardInterrupt:
    ...         print("undone")
    made and noted
    undone
    """
    global _held
    held: list[int] = []
    _held = held
    try:
        yield
    finally:
        _held = None
    for number in held[:1]:
        signal.raise_signal(number)


_last = False


def last() -> None:
    """Let this process end with the command it runs: once that has paid, no later signal changes how it ends."""
    global _last
    _last = True


def settle() -> None:
    """All is done: no signal changes what the process ends with. Threads that still work are waited for first."""
    if all(thread.daemon or thread is threading.main_thread() for thread in threading.enumerate()):
        _ignore()
    else:
        # Called once they have ended, and before the interpreter puts the handlers that kill back in place.
        atexit.register(_ignore)


def _ignore() -> None:
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def say(sentence: str) -> None:
    """A line for the person at the terminal, past every buffer; where the terminal is gone, nothing.

    Within a signal's handler ``print`` could fail: the stream may be in the middle of a line, or closed.
    """
    with suppress(OSError):
        os.write(2, f"{sentence}\n".encode())
