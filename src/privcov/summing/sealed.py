"""Things that tell about people if they are seen: they never print, copy, compare or become an array.

A debugger, a log line and a service that records the variables of a failed program all ask an object for its text.
Two kinds are sealed: the exact sum of rows (``gram.py``), and a mechanism's draw (``mechanisms/base.py``), which
together with the release is the exact sum. What each of them says is in ``_refusal``.
"""

from __future__ import annotations

from typing import ClassVar, Never


def _refuse(self: Sealed, *_: object, **__: object) -> Never:
    raise TypeError(self._refusal)


class Sealed:
    """Refuses ``repr``, ``==``, pickle, ``copy`` and NumPy's conversions."""

    __slots__ = ()

    _refusal: ClassVar[str]

    __repr__ = __str__ = __format__ = _refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __hash__ = _refuse
    __reduce__ = __reduce_ex__ = __getstate__ = __copy__ = __deepcopy__ = _refuse
    __array__ = __iter__ = __getitem__ = __len__ = __contains__ = __bool__ = __int__ = __float__ = _refuse
    __array_ufunc__ = None
