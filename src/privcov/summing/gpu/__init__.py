"""The Gram matrix summed on a GPU: the same integers, through pinned staging buffers."""
