"""Tests the console's live view, keyboard, picture sources, screen sizes and accessibility.

Skipped without chromium-headless-shell, which deploy/setup.sh --interop installs.
"""

import base64
import json
import pathlib
import struct
import unittest

from console_case import HEIGHT, TWO, WIDTH, ConsoleCase, detections, png, set_up_module
from console_stand_in import Answer, encode_runs, error

SCENE = pathlib.Path('client/samples/scene_01.jpg')  # The picture has 560 x 420 pixels.


def setUpModule():
    set_up_module()


def latencies(done):
    """Returns the latency histogram of the model "finder" as text.

    Half of its `done` requests take 10 to 20 ms, and the others take 40 to 50 ms.
    """
    name = 'sfmamba_request_duration_seconds'
    labels = 'method="Detect",model="finder",code="OK"'
    return '# HELP sfmamba_request_duration_seconds Time.\n' + ''.join(
        f'{name}_bucket{{{labels},le="{le}"}} {count}\n'
        for le, count in (('0.01', 0), ('0.02', done / 2), ('0.04', done / 2), ('0.05', done),
                          ('+Inf', done))) + f'{name}_sum{{{labels}}} {0.0312 * done}\n'


def metrics(second, start=1.0):
    """Returns the metrics page of a server that has answered ten images per second for `second`
    seconds.
    """
    done = 10 * second
    model = 'model="finder"'
    return (latencies(done) +
            f'sfmamba_items_total{{{model},version="1",outcome="ok"}} {done}\n'
            f'sfmamba_items_total{{{model},version="1",outcome="expired"}} {99 * second}\n'
            f'sfmamba_queue_items{{{model},priority="normal"}} 7\n'
            f'sfmamba_queue_items{{{model},priority="high"}} 2\n'
            f'sfmamba_predicted_wait_seconds{{{model}}} 0.25\n'
            f'sfmamba_batch_items_sum{{{model}}} {done}\n'
            f'sfmamba_batch_items_count{{{model}}} {done / 2.5}\n'
            f'sfmamba_build_info{{version="9.8 \\"x\\\\",revision="abc"}} 1\n'
            f'sfmamba_device_busy_ratio{{device="cpu"}} 0.5\n'
            f'process_start_time_seconds {start}\n')


class LiveTest(ConsoleCase):
    def tearDown(self):
        self.page.events[:] = [
            (method, parameters) for method, parameters in self.page.events
            if method != 'Log.entryAdded' or parameters['entry']['source'] != 'network']
        super().tearDown()

    def tiles(self):
        """Returns the figures that the page shows for the first model, by their names."""
        return dict(self.page.evaluate(
            '[...document.querySelector("#live article").querySelectorAll("dd")]'
            '.map((e) => [e.dataset.tile, e.innerText])'))

    def wait_for_latency(self, text):
        self.page.wait_for(
            f'document.querySelector("[data-tile=p95]")?.innerText === {json.dumps(text)}')

    def wait_for_reading(self, reading):
        """Waits until the page has fetched the metrics `reading` times."""
        self.page.wait_for(f'performance.getEntriesByType("resource")'
                           f'.filter((e) => e.name.endsWith("/metrics")).length >= {reading}')

    def test_numbers_are_those_of_the_server(self):
        self.server.metrics = metrics
        self.wait_for_latency('49 ms')
        tiles = self.tiles()
        # At each reading, the counters grow by ten images, as in one second of a real server. The
        # page reads them about once per second of its own clock, so its rate is not exactly ten.
        self.assertGreater(float(tiles.pop('Images/s')), 3)
        self.assertEqual(tiles, {'p50': '20 ms', 'p95': '49 ms', 'Queue': '9',
                                 'Predicted wait': '250 ms', 'Mean batch': '2.5'})
        self.assertIn('9.8 "x\\ abc', self.text('#build'))
        self.assertIn('50 %', self.text('#live article:last-child'))
        drawn = """(() => {
            const canvas = document.querySelector('#live canvas');
            const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
            return data.some((value) => value > 0);
        })()"""
        self.page.wait_for(drawn)

    def test_models_have_their_states(self):
        states = self.page.evaluate('[...document.querySelectorAll("#live article .state")]'
                                    '.map((e) => e.innerText).filter(Boolean)')
        self.assertEqual(states, ['READY', 'READY', 'READY', 'LOADING'])
        self.assertIn('20 classes · input 256 x 320 · batches up to 8 · computed in BF16 · 6.4 MiB',
                      self.text('#live article'))
        options = self.texts('#model option')
        self.assertEqual(options, ['finder: detector', 'mapper: segmenter',
                                   'namer, version 1: classifier',
                                   'namer, version 2: classifier (LOADING)'])

    def test_a_restart_begins_anew(self):
        start = 1.0
        done = 100  # After the restart, the counter starts from 0 and grows faster.
        self.server.metrics = lambda reading: metrics(done + reading * start, start)
        self.page.open(self.server.url)
        self.wait_for_latency('49 ms')
        self.server.lost = True
        self.wait_for_text('connection', 'No connection: the server cannot be reached')
        start, done = 3.0, 0
        self.server.metrics_read = 0
        self.server.lost = False
        self.wait_for_text('connection', 'Connected')
        self.page.wait_for('parseFloat(document.querySelector("#live dd").innerText) > 15')
        self.wait_for_latency('49 ms')

    def test_of_few_requests_latencies_claim_no_more_than_is_known(self):
        for done, p50, p95 in ((1, '31 ms', '31 ms'), (4, '10–20 ms', '40–50 ms')):
            with self.subTest(done):
                def set_done(done):
                    self.server.metrics = lambda _: (
                        latencies(done) + 'sfmamba_queue_items{model="finder"} 1\n')
                set_done(0)
                self.page.open(self.server.url)
                self.wait_for_reading(1)
                set_done(done)
                self.wait_for_latency(p95)
                self.assertEqual(self.tiles()['p50'], p50)

    def test_idle_models_have_one_row_each(self):
        self.server.metrics = metrics
        self.page.open(self.server.url)
        self.wait_for_latency('49 ms')
        for width in (1440, 390):
            self.page.resize(width, 900)
            busy, *idle, server = self.page.evaluate(
                '[...document.querySelectorAll("#live article")].map((e) => e.offsetHeight)')
            self.assertEqual(len(idle), 3)
            self.assertLess(max(idle), 48)
            self.assertGreater(min(busy, server), 80)

    def test_it_rests_while_nobody_looks(self):
        self.wait_for_reading(2)
        self.page.evaluate("""(() => {
            Object.defineProperty(document, 'hidden', {configurable: true, get: () => true});
            document.dispatchEvent(new Event('visibilitychange'));
        })()""")
        # Waits a second for requests in flight to end. After that, the hidden page must send no
        # request for three seconds. A visible page reads the metrics about once per second.
        before = self.page.evaluate("""new Promise((done) => setTimeout(() => {
            window.before = performance.getEntriesByType('resource').length;
            setTimeout(() => done(
                performance.getEntriesByType('resource').length - window.before), 3000);
        }, 1000))""")
        self.assertEqual(before, 0)
        self.page.evaluate("""(() => {
            Object.defineProperty(document, 'hidden', {configurable: true, get: () => false});
            document.dispatchEvent(new Event('visibilitychange'));
        })()""")
        self.page.wait_for('performance.getEntriesByType("resource").length > window.before')


class PictureTest(ConsoleCase):
    def setUp(self):
        super().setUp()
        self.server.answer = lambda: detections(*TWO)

    def test_a_picture_is_dropped(self):
        self.transfer('drop', 'dataTransfer')

    def test_a_picture_is_pasted(self):
        self.transfer('paste', 'clipboardData')

    def transfer(self, event, field):
        """Gives the page a file, like a browser when the user drops or pastes one."""
        self.page.evaluate(f"""(() => {{
            const bytes = Uint8Array.from(atob('{base64.b64encode(png()).decode()}'),
                (c) => c.charCodeAt(0));
            const transfer = new DataTransfer();
            transfer.items.add(new File([bytes], 'moved.png', {{type: 'image/png'}}));
            const event = new Event('{event}', {{bubbles: true, cancelable: true}});
            Object.defineProperty(event, '{field}', {{value: transfer}});
            document.getElementById('drop').dispatchEvent(event);
        }})()""")
        self.wait_for_answer()
        self.assertEqual(self.server.asked[0]['body'], png())
        self.assertIn('moved.png: 200 x 100 pixels', self.text('#picture-note'))

    def test_a_turned_picture_is_drawn_upright(self):
        # EXIF orientation 6 is a quarter turn to the right.
        exif = b'Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0'
        jpeg = SCENE.read_bytes()
        turned = jpeg[:2] + b'\xff\xe1' + struct.pack('>H', len(exif) + 2) + exif + jpeg[2:]
        self.give('turned.jpg', turned)
        self.wait_for_answer()
        self.assertIn('420 x 560 pixels', self.text('#picture-note'))
        self.assertLess(self.page.evaluate('(({width, height}) => width / height)'
                                           '(document.getElementById("view"))'), 0.8)
        # The page sends the file unchanged, because the server also applies the orientation.
        self.assertEqual(self.server.asked[0]['body'], turned)

    def try_sample(self, name):
        """Presses the sample's button. Returns the name of the model that the page asks."""
        self.page.evaluate(f'document.querySelector("[data-sample=\'{name}.webp\']").click()')
        self.wait_for_text('picture-note', f'{name}.webp')
        self.wait_for_answer()
        self.assertEqual(self.server.asked[-1]['body'][8:12], b'WEBP')
        return self.server.asked[-1]['path'].split('/')[3].split(':')[0]

    def test_samples_run_a_model_of_their_task(self):
        names = Answer({'results': [{'categories': [{'label': 'cup', 'score': 0.75}]}]})
        objects = self.server.answer()
        self.server.answer = lambda: (
            names if self.server.asked[-1]['path'].endswith(':classify') else objects)
        for name, model in (('room', 'finder'), ('photographer', 'namer'), ('cat', 'namer'),
                            ('street', 'finder')):
            self.assertEqual(self.try_sample(name), model)
        self.assertIn(f'{self.server.url}console/street.webp', self.text('#command-list'))

    def test_a_sample_leaves_a_model_that_can_tell_of_it(self):
        self.server.answer = lambda: Answer({'results': [{
            'rle': {'classes': [{'label': 'table',
                                 'rle': encode_runs(HEIGHT, WIDTH, [0, HEIGHT * WIDTH])}]},
            'areas': [{'label': 'table', 'pixelCount': str(HEIGHT * WIDTH), 'fraction': 1}],
            'width': WIDTH, 'height': HEIGHT}]})
        self.select('mapper')
        self.assertEqual(self.try_sample('room'), 'mapper')

    def test_the_default_model_is_run_first(self):
        namer = {'name': 'models/zebra/versions/1', 'task': 'CLASSIFICATION', 'state': 'READY'}
        self.server.models = [*self.server.models, namer]
        self.server.answer = lambda: Answer(
            {'results': [{'categories': [{'label': 'cup', 'score': 0.75}]}]})
        self.page.open(self.server.url)
        self.page.wait_for('!document.getElementById("model").disabled')
        self.assertEqual(self.try_sample('photographer'), 'namer')
        namer['defaultForTask'] = True
        self.page.open(self.server.url)
        self.page.wait_for('!document.getElementById("model").disabled')
        self.give()
        self.wait_for_answer()
        self.assertEqual(self.server.asked[-1]['path'], '/v1/models/zebra:classify')
        self.select('finder')
        self.assertEqual(self.try_sample('cat'), 'zebra')


class KeyboardTest(ConsoleCase):
    def focus(self):
        return self.page.evaluate('(({id, textContent}) => id || textContent.trim())'
                                  '(document.activeElement)')

    def tab_to(self, wanted):
        """Presses Tab until `wanted` has the focus. Its outline must be visible."""
        for _ in range(40):
            self.page.press('Tab')
            if self.focus() == wanted:
                style = self.page.evaluate('getComputedStyle(document.activeElement.id === "file" '
                                           '? document.activeElement.nextElementSibling '
                                           ': document.activeElement).outlineStyle')
                self.assertEqual(style, 'solid', wanted)
                return
        self.fail(f'Tab never comes to {wanted}')

    def test_a_model_is_run_without_a_mouse(self):
        self.server.answer = lambda: detections(*TWO)
        self.tab_to('model')
        self.tab_to('file')
        self.tab_to('Room')
        self.page.press('Enter')
        self.wait_for_answer()
        self.tab_to('cup1')  # The legend's entry: class and count.
        self.page.press(' ')
        self.assertEqual(self.page.evaluate('document.activeElement.getAttribute("aria-pressed")'),
                         'false')
        for _ in range(20):
            self.page.press('Tab', shift=True)
            if self.focus() == 'go':
                break
        self.page.press('Tab', shift=True)
        self.assertEqual(self.focus(), 'crops')
        self.page.press('Tab', shift=True)
        self.assertEqual(self.focus(), 'tiles')
        self.page.press('Tab', shift=True)
        self.assertEqual(self.focus(), 'threshold')
        self.page.press('ArrowLeft')
        self.assertEqual(self.text('#threshold-value'), '0.45')
        self.tab_to('go')
        self.page.press('Enter')
        self.page.wait_for('!document.body.classList.contains("busy")')
        self.assertEqual(len(self.server.asked), 2)
        self.tab_to('cup')  # The table's entry.
        self.page.press('Enter')
        self.assertEqual(self.page.evaluate('document.activeElement.getAttribute("aria-pressed")'),
                         'true')
        self.tab_to('Copy')
        self.page.press('Enter')
        self.page.wait_for('document.getElementById("copied").innerText')
        self.tab_to('pause')


class ScreenTest(ConsoleCase):
    def test_every_control_has_a_name(self):
        self.server.answer = lambda: detections(*TWO)
        self.give()
        self.wait_for_answer()
        nodes = self.page.call('Accessibility.getFullAXTree')['nodes']
        named = {'button', 'combobox', 'slider', 'spinbutton', 'table', 'article', 'image', 'alert',
                 'heading', 'form', 'link'}
        roles = set()
        for node in nodes:
            role = node.get('role', {}).get('value')
            roles.add(role)
            if not node.get('ignored') and role in named - {'alert', 'form'}:
                self.assertTrue(node.get('name', {}).get('value'), node)
        self.assertLessEqual({'button', 'combobox', 'slider', 'table', 'status', 'heading', 'main',
                              'columnheader', 'rowheader'}, roles)

    def test_phones_need_no_sideways_scrolling(self):
        self.server.answer = lambda: detections(*TWO)
        for width in (320, 360, 768, 1920):
            with self.subTest(width):
                self.page.resize(width, 700)
                self.give(f'{width}{"long" * 30}.png')
                self.wait_for_answer()
                self.assertLessEqual(self.page.evaluate('document.documentElement.scrollWidth'),
                                     width)
                self.assertLessEqual(self.page.evaluate(
                    'document.getElementById("view").getBoundingClientRect().right'), width)

    def test_answers_come_into_view_on_a_phone(self):
        self.page.reduce_motion()
        self.addCleanup(self.page.set_dark, False)
        seen = """(() => {
            const [picture, answer] = ['view', 'result'].map(
                (id) => document.getElementById(id).getBoundingClientRect());
            return [answer.top >= 0 && answer.top + 100 < innerHeight,
                picture.top >= 0 && picture.bottom < innerHeight];
        })()"""
        for i, (answer, wait, height, picture) in enumerate((
                (detections(*TWO), self.wait_for_answer, 844, True),
                (error(8, 'the queue is full', 429), self.wait_for_error, 844, True),
                (detections(*TWO), self.wait_for_answer, 390, False))):
            with self.subTest(height):
                self.server.answer = lambda answer=answer: answer
                self.page.resize(390, height)
                self.page.evaluate('scrollTo(0, 0)')
                self.give(f'{i}.png')
                wait()
                self.page.wait_for('!document.body.classList.contains("busy")')
                self.assertEqual(self.page.evaluate(seen), [True, picture])
        self.page.events[:] = [event for event in self.page.events if event[0] != 'Log.entryAdded']

    def test_nothing_scrolls_where_the_answer_is_seen(self):
        self.server.answer = lambda: detections(*TWO)
        self.page.resize(1440, 900)
        self.give()
        self.wait_for_answer()
        self.assertEqual(self.page.evaluate('scrollY'), 0)

    def test_text_is_readable_by_day_and_night(self):
        """Checks that the contrast is at least 4.5 to 1, as WCAG 2.1 demands."""
        self.addCleanup(self.page.set_dark, False)
        self.assertReadable()  # A button is disabled now.
        self.server.answer = lambda: detections(*TWO)
        self.give()
        self.wait_for_answer()
        self.assertReadable()
        self.server.answer = lambda: error(8, 'the queue is full', 429, {
            '@type': 'type.googleapis.com/google.rpc.RetryInfo', 'retryDelay': '60s'})
        self.give('another.png')
        self.wait_for_error()
        self.assertReadable()
        self.page.events[:] = [event for event in self.page.events if event[0] != 'Log.entryAdded']

    def assertReadable(self):
        for dark in (False, True):
            self.page.set_dark(dark)
            worst = self.page.evaluate("""(() => {
                const numbers = (color) => color.match(/[\\d.]+/g).map(Number);
                const light = ([red, green, blue]) => [red, green, blue].map((v) => v / 255)
                    .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
                    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
                const ground = (element) => {
                    const color = numbers(getComputedStyle(element).backgroundColor);
                    return color.length > 3 && color[3] === 0 && element.parentElement
                        ? ground(element.parentElement) : color;
                };
                return [...document.querySelectorAll('body *')]
                    .filter((e) => e.checkVisibility() &&
                        [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()))
                    .map((e) => {
                        const [a, b] = [light(numbers(getComputedStyle(e).color)),
                          light(ground(e))];
                        return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), e.outerHTML];
                    }).sort((a, b) => a[0] - b[0])[0];
            })()""")
            self.assertGreaterEqual(worst[0], 4.5, f'dark: {dark}, {worst[1]}')


if __name__ == '__main__':
    unittest.main()
