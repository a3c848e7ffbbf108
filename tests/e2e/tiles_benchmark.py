"""Compares the server's tiles and crops with clients that cut pictures themselves.

  python3 tests/e2e/tiles_benchmark.py ADDRESS [ROUNDS]

ADDRESS must be a server with the default models. Needs the package in client/python, and Pillow.
First prints the time of each way to detect in tiles:
  tiled    one request with tiles
  engine   one request of 24 pictures of the input's size, which shows the network's own time
  by one   a client that decodes the picture, cuts it, and sends one tile after another
  at once  the same client with all tiles in flight
Then prints the time of each way to detect eight objects and classify their crops:
  one call  one Detect request, for which the server also classifies the crops
  pixels    a Detect request, then a Classify request with the pixels of the crops
  JPEGs     a Detect request, then a Classify request with the crops as JPEG files
  parts     a Detect request, then a Classify request with the picture and a rectangle for each crop
Finally prints the latency of a caller of Classify, four calls per second. The caller runs alone,
and then beside four callers of the largest tiled pictures.
"""

import concurrent.futures
import io
import pathlib
import statistics
import sys
import threading
import time

import numpy as np
from PIL import Image

import sfmamba

WIDTH, HEIGHT = 4000, 3000
TILES = sfmamba.Tiles(width=800, height=900, whole=False)  # 6 x 4 tiles.
LARGEST = sfmamba.Tiles(width=500, height=500, overlap=0.1)  # 63 tiles and the whole picture.
DETECTOR, CLASSIFIER = 'everyday_detector', 'everyday'
SAMPLES = pathlib.Path('client/samples')
SECONDS = 15  # The duration of each measurement of latencies.


def jpeg(pixels):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, 'JPEG', quality=90)
    return file.getvalue()


def mosaic():
    scenes = [np.asarray(Image.open(path)) for path in sorted(SAMPLES.glob('scene_*.jpg'))[:4]]
    block = np.vstack([np.hstack(scenes[:2]), np.hstack(scenes[2:])])
    times = (HEIGHT // block.shape[0] + 1, WIDTH // block.shape[1] + 1, 1)
    return jpeg(np.tile(block, times)[:HEIGHT, :WIDTH])


def starts(side, tile):
    step = tile - int(TILES.overlap * tile)
    return [min(start, side - tile) for start in range(0, side - tile + step, step)]


def cut(picture):
    """Yields the tiles of a picture, each as a JPEG file."""
    pixels = np.asarray(Image.open(io.BytesIO(picture)))
    for top in starts(HEIGHT, TILES.height):
        for left in starts(WIDTH, TILES.width):
            yield jpeg(pixels[top:top + TILES.height, left:left + TILES.width])


def measure(ways, rounds):
    """Prints the median time of each way, in seconds and relative to the first way. The ways take
    turns.
    """
    seconds = {name: [] for name in ways}
    for _ in range(rounds + 1):  # The first round warms up.
        for name, way in ways.items():
            begin = time.perf_counter()
            way()
            seconds[name].append(time.perf_counter() - begin)
    median = {name: statistics.median(times[1:]) for name, times in seconds.items()}
    first = next(iter(median))
    for name, time_taken in median.items():
        print(f'{name:8} {time_taken:6.3f} s, {time_taken / median[first]:.2f} of {first}')


def compare(client, picture, rounds):
    pool = concurrent.futures.ThreadPoolExecutor(24)
    small = [np.asarray(Image.open(io.BytesIO(tile)).resize((256, 288))) for tile in cut(picture)]

    def detect(images, **parameters):
        return client.detect(images, model=DETECTOR, masks=False, timeout=100, **parameters)

    ways = {'tiled': lambda: detect(picture, tiles=TILES), 'engine': lambda: detect(small),
            'by one': lambda: [detect(tile) for tile in cut(picture)],
            'at once': lambda: list(pool.map(detect, cut(picture)))}
    measure(ways, rounds)


def compare_crops(client, size, rounds):
    scene = Image.open(SAMPLES / 'scene_01.jpg').resize(size)
    picture = jpeg(np.asarray(scene))

    def detect(**parameters):
        found = client.detect(picture, model=DETECTOR, masks=False, score_threshold=0.0,
                              max_detections=8, **parameters)
        assert len(found.labels) == 8, found.labels
        return found

    def crops():
        assert len(detect(crops=sfmamba.Crops(model=CLASSIFIER)).crops) == 8

    def classify_crops(make):
        found, pixels = detect(), np.asarray(Image.open(io.BytesIO(picture)))
        client.classify([make(pixels, box) for box in found.boxes], model=CLASSIFIER, top_k=1)

    def crop(pixels, box):
        left, top = np.floor(box[:2]).astype(int)
        right, bottom = np.ceil(box[2:]).astype(int)
        return pixels[top:bottom, left:right].copy()

    print(f'{size[0]}x{size[1]}, 8 detections:')
    measure({'one call': crops,
             'pixels': lambda: classify_crops(crop),
             'JPEGs': lambda: classify_crops(lambda pixels, box: jpeg(crop(pixels, box))),
             'parts': lambda: classify_crops(lambda _, box: sfmamba.Picture(
                 picture, crop=tuple(np.clip(box / (2 * size), 0, 1))))}, rounds)


def classify(address):
    """Calls Classify four times per second. Returns a text with the number of answers, the number
    of failures, the median latency and the longest latency.
    """
    picture = (SAMPLES / 'render_04.jpg').read_bytes()
    taken, failed = [], 0
    with sfmamba.Client(address) as client:
        start = time.perf_counter()
        for i in range(4 * SECONDS):
            time.sleep(max(0, start + i / 4 - time.perf_counter()))
            begin = time.perf_counter()
            try:
                client.classify(picture, model=CLASSIFIER, timeout=2)
                taken.append(time.perf_counter() - begin)
            except sfmamba.VisionError:
                failed += 1
    return (f'{len(taken)} answers, {failed} failures, median {statistics.median(taken):.3f} s, '
            f'longest {max(taken):.3f} s')


def crowd(address, picture):
    print('alone: ', classify(address))
    stop = threading.Event()

    def tile():
        with sfmamba.Client(address) as client:
            while not stop.is_set():
                try:
                    client.detect(picture, model=DETECTOR, tiles=LARGEST, timeout=60)
                except sfmamba.VisionError:
                    time.sleep(0.5)

    threads = [threading.Thread(target=tile) for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(3)
    print('beside:', classify(address))
    stop.set()
    for thread in threads:
        thread.join()


def main():
    address = sys.argv[1]
    picture = mosaic()
    with sfmamba.Client(address) as client:
        rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
        compare(client, picture, rounds)
        for size in (640, 480), (1920, 1440), (WIDTH, HEIGHT):
            compare_crops(client, size, rounds)
    crowd(address, picture)


if __name__ == '__main__':
    main()
