"""Writes preprocess_golden.bin, which contains Pillow's results for some pictures.

Run it in this folder with Pillow and NumPy installed. Each case has six int32 (little endian:
width, height, resize_size, size, mode, seed). The expected picture follows, uint8 [size, size, 3].
preprocess_test.cc makes the same inputs from the seeds.
"""

import numpy as np
from PIL import Image

CENTER_CROP, STRETCH = 0, 1

# The columns are width, height, resize_size, size and mode.
CASES = [
    (50, 37, 24, 24, CENTER_CROP),  # Shrinks both sides.
    (37, 50, 24, 24, CENTER_CROP),
    (20, 31, 48, 41, CENTER_CROP),  # Enlarges both sides. The margin is odd.
    (40, 60, 40, 32, CENTER_CROP),  # Nothing is resampled.
    (64, 33, 33, 33, STRETCH),  # Only rows are resampled.
    (33, 64, 33, 33, STRETCH),  # Only columns are resampled.
    (131, 97, 35, 32, STRETCH),  # Margin 1.5, rounded to 2.
    (131, 97, 33, 32, STRETCH),  # Margin 0.5, rounded to 0.
    (300, 200, 57, 56, CENTER_CROP),
    (1, 90, 16, 16, CENTER_CROP),
    (90, 1, 16, 16, CENTER_CROP),
    (1, 1, 9, 8, STRETCH),
    (997, 3, 12, 11, CENTER_CROP),
    (401, 399, 400, 40, STRETCH),  # One side shrinks by a pixel, the other grows by a pixel.
    (1000, 667, 100, 96, CENTER_CROP),
]


def picture(width, height, seed):
    """Returns noise that needs no random generator: a hash of x, y, channel and seed."""
    y, x, c = np.meshgrid(
        np.arange(height, dtype=np.uint32),
        np.arange(width, dtype=np.uint32),
        np.arange(3, dtype=np.uint32),
        indexing="ij",
    )
    value = x * np.uint32(73856093)
    value ^= y * np.uint32(19349663)
    value ^= c * np.uint32(83492791)
    value ^= np.uint32(seed * 2654435761 & 0xFFFFFFFF)
    value *= np.uint32(2246822519)
    value ^= value >> np.uint32(15)
    value *= np.uint32(3266489917)
    return (value >> np.uint32(24)).astype(np.uint8)


def preprocess(pixels, resize_size, size, mode):
    image = Image.fromarray(pixels)
    if mode == STRETCH:
        target = (resize_size, resize_size)
    elif image.width <= image.height:
        target = (resize_size, int(resize_size * image.height / image.width))
    else:
        target = (int(resize_size * image.width / image.height), resize_size)
    image = image.resize(target, Image.Resampling.BICUBIC)
    left = round((image.width - size) / 2)  # Python rounds halves to even.
    top = round((image.height - size) / 2)
    return np.asarray(image.crop((left, top, left + size, top + size)))


with open("preprocess_golden.bin", "wb") as file:
    for seed, (width, height, resize_size, size, mode) in enumerate(CASES):
        head = np.array([width, height, resize_size, size, mode, seed], "<i4")
        file.write(head.tobytes())
        pixels = picture(width, height, seed)
        file.write(preprocess(pixels, resize_size, size, mode).tobytes())
