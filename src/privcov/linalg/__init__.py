"""Linear algebra without meaning: triangles of matrices, tiles, and the device that factorises."""
