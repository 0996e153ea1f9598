"""The version of the library, printed on every certificate."""

__version__ = "0.1.0"
