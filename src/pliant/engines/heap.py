"""Kernels of a heap: numbered items of which the one with the largest key comes first, in two arrays."""

from pliant.compilation import njit

_jit = njit(error_model="numpy", nogil=True, fastmath=False)


@_jit
def push(key, item, size, keys, items):
    """Add an item to a heap of `size` items."""
    i = size
    while i > 0:
        up = (i - 1) // 2
        if keys[up] >= key:
            break
        keys[i], items[i] = keys[up], items[up]
        i = up
    keys[i], items[i] = key, item


@_jit
def pop(size, keys, items):
    """Remove the item with the largest key from a heap of `size` items; returns it."""
    out, last = items[0], size - 1
    key, item, i = keys[last], items[last], 0
    while True:
        down = 2 * i + 1
        if down >= last:
            break
        if down + 1 < last and keys[down + 1] > keys[down]:
            down += 1
        if keys[down] <= key:
            break
        keys[i], items[i] = keys[down], items[down]
        i = down
    keys[i], items[i] = key, item
    return out
