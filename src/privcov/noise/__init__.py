"""Random numbers and the laws of noise: the one source, exact samplers, idealized samplers."""
