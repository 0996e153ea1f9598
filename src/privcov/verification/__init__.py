"""Whether a file holds: its form, its signature, and that its promise follows from what it states."""
