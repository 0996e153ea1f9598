"""The commands that the laboratory adds to ``privcov``, through the entry points of its distribution."""
