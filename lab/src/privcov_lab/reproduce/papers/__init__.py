"""One file per paper: what is measured, and what the paper said about it."""
