"""The base of the console's tests: a browser whose page is served by a stand-in server."""

import json
import pathlib
import struct
import tempfile
import unittest
import zlib

import browser
from console_stand_in import TIMING, Answer, StandIn, rectangle

WIDTH, HEIGHT = 200, 100  # The size of the pictures that the tests send.
GREY = 120  # The colour of these pictures: red, green and blue have this value.
TWO = (('cup', 1, 0.9, (20, 20, 80, 60)), ('car', 2, 0.3, (120, 40, 180, 90)))


def set_up_module():
    """Starts the server and the browser, or skips the module. Called by setUpModule()."""
    if not browser.is_installed():
        raise unittest.SkipTest(f'{browser.PROGRAM} is not installed')
    ConsoleCase.folder = pathlib.Path(unittest.enterModuleContext(tempfile.TemporaryDirectory()))
    ConsoleCase.server = StandIn()
    unittest.addModuleCleanup(ConsoleCase.server.close)
    ConsoleCase.page = browser.Browser()
    unittest.addModuleCleanup(ConsoleCase.page.close)


def png(width=WIDTH, height=HEIGHT, color=(GREY, GREY, GREY)):
    """Returns a PNG of one colour."""
    return encode_png(width, height, 2, (b'\0' + bytes(color) * width) * height)


def grey_png(width, height, rows):
    """Returns an 8-bit grey PNG. Each row must begin with its filter, 0."""
    return encode_png(width, height, 0, rows)


def encode_png(width, height, color_type, rows):
    def chunk(kind, data):
        return (struct.pack('>I', len(data)) + kind + data +
                struct.pack('>I', zlib.crc32(kind + data)))
    size = struct.pack('>IIBBBBB', width, height, 8, color_type, 0, 0, 0)
    return (b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', size) + chunk(b'IDAT', zlib.compress(rows)) +
            chunk(b'IEND', b''))


def detections(*objects):
    """Returns the answer of Detect. Each object is (label, class, score, (left, top, right,
    bottom)).
    """
    found = [{'label': label, 'classId': number, 'score': score,
              'box': dict(zip(('xMin', 'yMin', 'xMax', 'yMax'), box)),
              'rle': rectangle(HEIGHT, WIDTH, *box)} for label, number, score, box in objects]
    return Answer({'results': [{'detections': found, 'imageWidth': WIDTH, 'imageHeight': HEIGHT}],
                   'model': 'models/finder/versions/1', 'timing': TIMING, 'requestId': 'r-1'})


class ConsoleCase(unittest.TestCase):
    def setUp(self):
        self.server.reset()
        self.page.events.clear()
        self.page.resize(1280, 900)
        self.page.open(self.server.url)
        self.page.wait_for('!document.getElementById("model").disabled')

    def tearDown(self):
        self.assertEqual(self.page.complaints(), [])
        others = [url for url in self.page.requests() if not url.startswith(self.server.url)]
        self.assertEqual(others, [])

    def text(self, selector):
        return self.page.evaluate(f'document.querySelector({json.dumps(selector)}).innerText')

    def texts(self, selector):
        return self.page.evaluate(
            f'[...document.querySelectorAll({json.dumps(selector)})].map((e) => e.innerText)')

    def pixel(self, x, y):
        """Returns the colour shown at a place of the picture, as [red, green, blue]."""
        return self.page.evaluate(f"""(() => {{
            const view = document.getElementById('view');
            const [x, y] = [{x} / {WIDTH} * view.width, {y} / {HEIGHT} * view.height];
            return [...view.getContext('2d').getImageData(x, y, 1, 1).data].slice(0, 3);
        }})()""")

    def select(self, model):
        self.page.evaluate(f"""(() => {{
            const select = document.getElementById('model');
            select.value = 'models/{model}/versions/1';
            select.dispatchEvent(new Event('change'));
        }})()""")

    def give(self, name='street.png', content=None):
        """Chooses a picture file and waits until the page shows its name."""
        path = self.folder / name
        path.write_bytes(content or png())
        self.page.choose_file('#file', path)
        self.wait_for_text('picture-note', name)

    def wait_for_text(self, element, text):
        """Waits until the element with this id shows the text."""
        self.page.wait_for(
            f'document.getElementById("{element}").innerText.includes({json.dumps(text)})')

    def wait_for_answer(self):
        self.page.wait_for('!document.getElementById("answer").matches(":empty")')

    def wait_for_error(self):
        self.page.wait_for('!document.getElementById("error").matches(":empty")')
