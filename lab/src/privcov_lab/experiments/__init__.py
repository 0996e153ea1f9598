"""Reproductions of the seeds, in idealized arithmetic; nothing here can make a release."""
