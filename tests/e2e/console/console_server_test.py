"""Tests the console in a headless browser, on the real server with the default models.

Skipped without chromium-headless-shell, which deploy/setup.sh --interop installs.
"""

import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

sys.path.append(str(pathlib.Path(__file__).parents[1]))  # Helpers of the e2e tests.

import browser
from model_server import SAMPLES, Server

SCENE = SAMPLES / 'scene_01.jpg'  # The picture has 560 x 420 pixels.
SFMAMBA = pathlib.Path('client/sfmamba')


def setUpModule():
    if not browser.is_installed():
        raise unittest.SkipTest(f'{browser.PROGRAM} is not installed')
    global server, page
    server = Server()
    unittest.addModuleCleanup(server.close)
    page = browser.Browser()
    unittest.addModuleCleanup(page.close)


def turned(jpeg):
    """Returns the JPEG with an EXIF orientation of 6, a quarter turn to the right."""
    exif = b'Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0'
    return jpeg[:2] + b'\xff\xe1' + struct.pack('>H', len(exif) + 2) + exif + jpeg[2:]


class ServerTest(unittest.TestCase):
    def setUp(self):
        page.events.clear()
        page.open(server.url)
        page.wait_for('!document.getElementById("model").disabled')

    def tearDown(self):
        self.assertEqual(page.complaints(), [])
        others = [url for url in page.requests() if not url.startswith(server.url)]
        self.assertEqual(others, [])

    def ask(self, model, picture):
        """Sends the picture from the page. Returns the answer's table rows, each a list of cell
        texts.
        """
        page.evaluate(f"""(() => {{
            const select = document.getElementById('model');
            select.value = 'models/{model}/versions/1';
            select.dispatchEvent(new Event('change'));
        }})()""")
        page.choose_file('#file', picture.absolute())
        page.wait_for('!document.querySelector("#answer, #error:not(:empty)").matches(":empty")')
        return page.evaluate('[...document.querySelectorAll("#answer tbody tr")]'
                             '.map((row) => [...row.children].map((cell) => cell.innerText))')

    def press_sample(self, name):
        page.evaluate(f'document.querySelector("[data-sample=\'{name}.webp\']").click()')

    def command(self, *arguments):
        """Returns the output of `sfmamba ... --json`."""
        run = subprocess.run([SFMAMBA, *arguments, '--json', f'--server={server.address}'],
                             check=True, stdout=subprocess.PIPE, text=True)
        return run.stdout

    def drawn(self):
        """Returns the picture's canvas as a data URL, for comparison."""
        return page.evaluate('document.getElementById("view").toDataURL()')

    def test_objects(self):
        rows = self.ask('everyday_detector', SCENE)
        said = self.command('detect', SCENE, '--score_threshold=0.5')
        self.assertGreaterEqual({row[0] for row in rows}, {'car', 'table', 'pot'})
        for label, score, _ in rows:
            self.assertIn(f'"{label}"', said)
            self.assertGreater(float(score), 0.5)
        with_all = self.drawn()
        page.evaluate('document.querySelector("#legend button").click()')
        self.assertNotEqual(self.drawn(), with_all)
        page.evaluate('document.querySelector("#legend button").click()')
        self.assertEqual(self.drawn(), with_all)

    def test_samples_show_what_the_models_can_do(self):
        for sample, expected in (
                ('room', ['cabinet', 'chair', 'potted plant', 'sofa', 'table']),
                # The model finds one car too many.
                ('street', ['car', 'car', 'tree', 'tree', 'truck', 'two-wheeler'])):
            with self.subTest(sample):
                self.press_sample(sample)
                page.wait_for(
                    f'document.getElementById("view").ariaLabel.startsWith("{sample}.webp: ")')
                self.assertEqual(sorted(page.evaluate(
                    '[...document.querySelectorAll("#answer tbody th")].map((e) => e.innerText)')),
                    expected)
        self.press_sample('photographer')
        page.wait_for('document.querySelector("#answer .verdict")?.innerText === "tripod"')

    def test_a_class_map(self):
        rows = self.ask('everyday_segmenter', SAMPLES / 'scene_03.jpg')
        areas = {label: float(area.strip('< %')) for label, area in rows}
        self.assertAlmostEqual(sum(areas.values()), 100, delta=1)
        self.assertGreater(areas['table'], 5)
        with_all = self.drawn()
        page.evaluate('document.querySelectorAll("#legend button")[1].click()')
        self.assertNotEqual(self.drawn(), with_all)

    def test_scores(self):
        rows = self.ask('everyday', SAMPLES / 'render_04.jpg')
        self.assertEqual(len(rows), 5)
        self.assertEqual(rows[0][0], 'table')
        self.assertIn('inference', page.evaluate('document.getElementById("timing").innerText'))

    def test_the_server_turns_pictures_as_the_browser_does(self):
        with tempfile.TemporaryDirectory() as folder:
            picture = pathlib.Path(folder, 'turned.jpg')
            picture.write_bytes(turned(SCENE.read_bytes()))
            self.assertTrue(self.ask('everyday_detector', picture))
            self.assertIn('420 x 560 pixels',
                          page.evaluate('document.getElementById("picture-note").innerText'))
            size = page.evaluate("""(async () => {
                const response = await fetch('v1/models/everyday_detector:detect', {
                  method: 'POST', headers: {'Content-Type': 'image/jpeg'},
                  body: document.getElementById('file').files[0]});
                const [result] = (await response.json()).results;
                return [result.imageWidth, result.imageHeight];
            })()""")
        self.assertEqual(size, [420, 560])

    def test_the_live_view_moves(self):
        self.ask('everyday_detector', SCENE)
        page.wait_for('[...document.querySelectorAll("#live article")]'
                      '.find((e) => e.innerText.includes("everyday_detector"))'
                      '.querySelector("[data-tile=p95]").innerText !== "–"')
        self.assertIn('READY', page.evaluate('document.getElementById("live").innerText'))
        self.assertIn('MiB', page.evaluate('document.querySelector("#live article:last-child")'
                                           '.innerText'))

    def test_what_is_no_picture(self):
        with tempfile.TemporaryDirectory() as folder:
            picture = pathlib.Path(folder, 'notes.txt')
            picture.write_text('no picture')
            page.choose_file('#file', picture)
            page.wait_for('!document.querySelector("#error").matches(":empty")')
        said = page.evaluate('document.getElementById("error").innerText')
        self.assertIn('Choose a JPEG, PNG or WebP picture.', said)
        self.assertNotIn('Try again', said)
        # The browser also logs the refusal.
        page.events[:] = [event for event in page.events if event[0] != 'Log.entryAdded']

    @unittest.skipUnless(shutil.which('curl'), 'curl is not installed')
    def test_its_commands_answer_the_same(self):
        rows = self.ask('everyday_detector', SCENE)
        curl, _, sfmamba = page.evaluate(
            '[...document.querySelectorAll("#command-list pre")].map((e) => e.textContent)')
        said = subprocess.run(['bash', '-c', curl], check=True, stdout=subprocess.PIPE,
                              cwd=SAMPLES).stdout
        found = json.loads(said)['results'][0]['detections']
        self.assertEqual([(object['label'], f'{object["score"]:.3f}') for object in found],
                         [(label, score) for label, score, _ in rows])
        # The page assumes that gRPC uses the port after the HTTP port. Here gRPC uses another one.
        guessed = f'127.0.0.1:{int(server.url.rstrip("/").rsplit(":")[-1]) + 1}'
        self.assertIn(guessed, sfmamba)
        said = subprocess.run(
            ['bash', '-c', sfmamba.replace(guessed, server.address)
             .replace('bazel-bin/client/sfmamba', str(SFMAMBA.absolute()))],
            check=True, stdout=subprocess.PIPE, text=True, cwd=SAMPLES).stdout
        for label, _, _ in rows:
            self.assertIn(label, said)


class SwitchTest(unittest.TestCase):
    def test_the_console_can_be_switched_off(self):
        without = Server('--disable_console')
        self.addCleanup(without.close)
        for path in ('', 'console/main.js'):
            with self.assertRaises(urllib.error.HTTPError) as raised:
                urllib.request.urlopen(without.url + path)
            self.assertEqual(raised.exception.code, 404)
            raised.exception.close()
        with urllib.request.urlopen(without.url + 'v1/models') as answer:
            self.assertIn(b'everyday', answer.read())
        with urllib.request.urlopen(server.url) as answer:
            self.assertIn(b'<!doctype html>', answer.read())


if __name__ == '__main__':
    unittest.main()
