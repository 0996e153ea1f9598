"""Where the rows of a table are read: the engines that ``release(engine=…)`` takes.

>>> from privcov.engines import Local
>>> Local(workers=2).name
'local'
"""

from __future__ import annotations

from privcov.summing.engines import Dask, Engine, Local, Progress, Spark, engine_named

__all__ = ["Dask", "Engine", "Local", "Progress", "Spark", "engine_named"]
