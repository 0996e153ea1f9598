"""For the keeper of the data alone: how a file would be read, and strict conversion. Nothing here is published."""
