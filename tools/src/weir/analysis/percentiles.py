# SPDX-License-Identifier: BSD-3-Clause
"""Exact percentiles per key of more records than fit into memory: two passes over them, in chunks.

The first pass counts each key's values in classes, some per power of two: this tells which of them
holds the percentile. The second looks at the values in these classes only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from weir.analysis.ring import Values

Chunks = Iterable[tuple[Values, Values]]
Counts = npt.NDArray[np.int64]

KEYS_MAX = 1 << 22
_VALUE_BITS = 42  # a key and a value fit into 64 bits
_COUNTERS = 1 << 21  # as many as stay in the cache
_HELD = 1 << 21  # values of the second pass before equal ones are joined
_BITS = 7  # at most 2^7 classes per power of two
_POWERS = _VALUE_BITS + 1  # powers of two that value + 1 may have
_ONE = 127  # exponent of 1.0


def percentile_by(read: Callable[[], Chunks], p: float) -> tuple[Counts, Counts, Counts]:
    """Returns for each key the smallest value that p percent of its values do not exceed.

    read gives the same chunks of keys and values each time, each of shape (n,) and of an unsigned
    type; chunks that fit the cache, of some 2^16, are fastest. Returns the keys, ascending, how
    many values each has, and its percentile.
    ValueError: p is not in [0, 100], or a key is not below KEYS_MAX or a value not below 2^42.
    """
    if not 0 <= p <= 100:
        raise ValueError(f"{p} is not a percentage")
    table, bits = _counted(read)
    totals = table.sum(axis=1)
    ranks = np.maximum(1, np.ceil(totals * (p / 100) - 1e-9).astype(np.int64))
    up_to = table.cumsum(axis=1)
    wanted = (up_to < ranks[:, None]).sum(axis=1)  # the class of each key's percentile
    before = up_to[np.arange(len(table)), np.maximum(wanted, 1) - 1]
    below = np.where(wanted > 0, before, 0)
    pairs, weights = _members(read, wanted.astype(np.uint32), bits)
    present = np.flatnonzero(totals)
    found = _select(pairs, weights, present, (ranks - below)[present])
    return present, totals[present], found


def _counted(read: Callable[[], Chunks]) -> tuple[Counts, int]:
    """Returns how many values of each key, a row, are in each class, and the classes' bits.

    Classes are joined, two by two, when more keys come than the table has room for.
    """
    bits = _BITS
    table = np.zeros((1, _POWERS << bits), np.int64)
    for keys, values in read():
        top = int(keys.max()) if keys.size > 0 else 0
        if top >= KEYS_MAX:
            raise ValueError(f"the key {top} is not below {KEYS_MAX}")
        if values.size > 0 and int(values.max()) >> _VALUE_BITS:
            raise ValueError(f"the value {values.max()} is not below 2^{_VALUE_BITS}")
        if top >= len(table):
            rows = 1 << top.bit_length()
            while bits > 0 and rows * (_POWERS << bits) > _COUNTERS:
                bits -= 1
                table = table.reshape(len(table), -1, 2).sum(axis=2)
            table = np.vstack([table, np.zeros((rows - len(table), _POWERS << bits), np.int64)])
        places = keys.astype(np.int64) * (_POWERS << bits) + _class_of(values, bits)
        np.add.at(table.reshape(-1), places, 1)
    return table, bits


def _class_of(values: Values, bits: int) -> npt.NDArray[np.uint32]:
    """Returns the class of each value: exponent and leading bits of the mantissa of value + 1."""
    shifted = (values.astype(np.float32) + np.float32(1)).view(np.uint32) >> np.uint32(23 - bits)
    return shifted - np.uint32(_ONE << bits)


def _members(
    read: Callable[[], Chunks], wanted: npt.NDArray[np.uint32], bits: int
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Returns values of each key's class as key * 2^42 + value, ascending, and their counts."""
    held = [np.empty(0, np.uint64)]
    weights = [np.empty(0, np.int64)]
    loose = 0
    for keys, values in read():
        inside = np.flatnonzero(_class_of(values, bits) == wanted[keys])
        pairs = keys[inside].astype(np.uint64) << np.uint64(_VALUE_BITS) | values[inside]
        held.append(pairs)
        weights.append(np.ones(pairs.size, np.int64))
        loose += pairs.size
        if loose > max(_HELD, held[0].size):
            joined = _joined(held, weights)
            held, weights, loose = [joined[0]], [joined[1]], 0
    return _joined(held, weights)


def _joined(
    held: list[npt.NDArray[np.uint64]], weights: list[npt.NDArray[np.int64]]
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    pairs, weight = np.concatenate(held), np.concatenate(weights)
    if pairs.size == 0:
        return pairs, weight
    order = np.argsort(pairs)
    pairs, weight = pairs[order], weight[order]
    first = np.flatnonzero(np.concatenate([[True], pairs[1:] != pairs[:-1]]))
    return pairs[first], np.add.reduceat(weight, first)


def _select(
    pairs: npt.NDArray[np.uint64],
    weights: npt.NDArray[np.int64],
    keys: npt.NDArray[np.int64],
    ranks: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]:
    """Returns the value of rank ranks[i], from 1, among the pairs of keys[i]."""
    if keys.size == 0:
        return np.empty(0, np.int64)
    up_to = np.concatenate([[0], np.cumsum(weights)])
    starts = np.searchsorted(pairs, keys.astype(np.uint64) << np.uint64(_VALUE_BITS))
    places = np.searchsorted(up_to, up_to[starts] + ranks) - 1
    return (pairs[places] & np.uint64((1 << _VALUE_BITS) - 1)).astype(np.int64)
