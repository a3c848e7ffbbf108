"""COCO's compressed run lengths (docs/heads.md, "COCO run lengths")."""

import numpy as np
from numpy.typing import NDArray


def runs(counts: str, pixels: int) -> NDArray[np.int64]:
    """Returns the int64 lengths of runs. Runs of unset and set pixels alternate. The first run is
    of unset pixels.

    Raises ValueError unless the string is well-formed and its lengths add up to `pixels`.
    """
    groups = np.frombuffer(counts.encode('ascii'), np.uint8).astype(np.int64) - 48
    if groups.size == 0:
        raise ValueError('the run lengths are empty')
    if groups.min() < 0 or groups.max() > 0x3f or groups[-1] & 0x20:
        raise ValueError('the run lengths are malformed')
    ends = np.flatnonzero(groups & 0x20 == 0)  # Indices of each number's last group.
    starts = np.concatenate(([0], ends[:-1] + 1))
    if (ends - starts).max() > 6:
        raise ValueError('a run length is too large')
    shifts = 5 * (np.arange(groups.size) - np.repeat(starts, ends - starts + 1))
    numbers = np.add.reduceat((groups & 0x1f) << shifts, starts)
    negative = groups[ends] & 0x10 != 0
    numbers -= np.where(negative, np.int64(1) << (shifts[ends] + 5), 0)
    lengths = _undo_differences(numbers)
    if lengths.min() < 0 or lengths.max() > pixels or lengths.sum() != pixels:
        raise ValueError(f'the run lengths do not add up to {pixels} pixels')
    return lengths


def _undo_differences(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the lengths that `numbers` encode. The first three numbers are lengths. Each later
    number is its length minus the length two places before it."""
    lengths = numbers.copy()
    for first in (1, 2):
        lengths[first::2] = np.cumsum(numbers[first::2])
    return lengths


def decode_mask(counts: str, height: int, width: int) -> NDArray[np.bool_]:
    """Returns the mask, bool [height, width]. Raises the errors of runs()."""
    lengths = runs(counts, height * width)
    set_or_not = np.arange(lengths.size) % 2 == 1
    return np.repeat(set_or_not, lengths).reshape(width, height).T
