"""Tests the console's answers, errors and commands in a headless browser with a stand-in server.

Skipped without chromium-headless-shell, which deploy/setup.sh --interop installs.
"""

import ast
import base64
import json
import subprocess
import threading
import unittest

from console_case import (GREY, HEIGHT, TWO, WIDTH, ConsoleCase, detections, grey_png, png,
                          set_up_module)
from console_stand_in import TIMING, Answer, encode_runs, error

HOSTILE = '<img src=x onerror="document.title=1">\'"&'
ERROR_INFO = {'@type': 'type.googleapis.com/google.rpc.ErrorInfo', 'domain': 'sfmamba.serving'}


def setUpModule():
    set_up_module()


class AnswerTest(ConsoleCase):
    def test_objects_are_drawn_and_listed(self):
        self.server.answer = lambda: detections(*TWO)
        self.give()
        self.wait_for_answer()
        [asked] = self.server.asked
        self.assertEqual(asked['path'], '/v1/models/finder:detect')
        self.assertEqual(asked['body'], png())
        self.assertEqual(asked['headers']['Content-Type'], 'image/png')
        self.assertEqual(asked['headers']['X-Request-Timeout'], '30')
        self.assertRegex(asked['query'].pop('request_id'), '^console-[0-9a-f]{16}$')
        self.assertEqual(asked['query'], {'include_timing': 'true', 'score_threshold': '0.05',
                                          'mask_encoding': 'COCO_RLE'})
        self.assertEqual(self.texts('#answer tbody tr > *'), ['cup', '0.900', '20, 20, 60, 40'])
        self.assertIn('1 more is below', self.text('#answer caption'))
        self.assertTrue(self.text('#status').startswith('1 object, in '))
        self.assertEqual(self.text('#go'), 'Run')
        self.assertNotEqual(self.pixel(50, 40), [GREY] * 3)  # The point is inside the mask.
        self.assertNotEqual(self.pixel(20, 50), [GREY] * 3)  # The point is on the box's edge.
        self.assertEqual(self.pixel(100, 80), [GREY] * 3)  # The point is outside both.
        self.assertEqual(self.pixel(150, 60), [GREY] * 3)  # The object is below the threshold.

    def test_the_threshold_shows_more_without_asking_again(self):
        self.server.answer = lambda: detections(*TWO)
        self.give()
        self.wait_for_answer()
        self.page.evaluate("""(() => {
            const threshold = document.getElementById('threshold');
            threshold.value = 0.2;
            threshold.dispatchEvent(new Event('input'));
        })()""")
        self.assertEqual(len(self.texts('#answer tbody tr')), 2)
        self.assertNotEqual(self.pixel(150, 60), [GREY] * 3)
        self.assertIn('score_threshold=0.2', self.text('#command-list'))
        self.assertEqual(len(self.server.asked), 1)

    def test_tiles_are_asked_for_at_once(self):
        self.server.answer = lambda: detections(*TWO)
        self.give()
        self.wait_for_answer()
        self.choose_tiles('auto')
        _, asked = self.server.asked
        self.assertNotIn('tiles.width', asked['query'])
        self.assertEqual(asked['query']['tiles.merge'], 'GREEDY_NMM')
        self.assertEqual(asked['query']['tiles.match'], 'IOS')
        commands = self.text('#command-list')
        self.assertIn('tiles.merge=GREEDY_NMM', commands)
        self.assertIn('--tiles=auto', commands)
        self.assertIn("tiles=sfmamba.Tiles(merge='GREEDY_NMM', match='IOS')", commands)
        self.choose_tiles('512')
        asked = self.server.asked[-1]['query']
        self.assertEqual((asked['tiles.width'], asked['tiles.height']), ('512', '512'))
        commands = self.text('#command-list')
        self.assertIn('--tiles=512x512', commands)
        self.assertIn('tiles=sfmamba.Tiles(512, 512, merge=', commands)

    def choose_tiles(self, size):
        self.page.evaluate(f"""(() => {{
            const tiles = document.getElementById('tiles');
            tiles.value = '{size}';
            tiles.dispatchEvent(new Event('change'));
        }})()""")
        self.wait_for_answer()

    def test_objects_are_named_by_a_classifier(self):
        body = json.loads(detections(*TWO).body)
        body['results'][0]['detections'][0]['crop'] = {
            'categories': [{'classId': 5, 'label': 'mug', 'score': 0.8}]}
        self.server.answer = lambda: Answer(body)
        self.give()
        self.wait_for_answer()
        self.assertEqual(self.texts('#crops option'), ['the detector alone', 'namer, version 1'])
        self.page.evaluate("""(() => {
            const crops = document.getElementById('crops');
            crops.value = 'models/namer/versions/1';
            crops.dispatchEvent(new Event('change'));
        })()""")
        self.page.wait_for('!document.body.classList.contains("busy")')
        self.assertEqual(self.server.asked[1]['query']['crops.model'], 'models/namer/versions/1')
        self.assertEqual(self.text('#answer tbody button'), 'cup, mug 0.80')

    def test_the_legend_hides_a_class(self):
        self.server.answer = lambda: detections(*TWO)
        self.give()
        self.wait_for_answer()
        self.page.evaluate('document.querySelector("#legend button").click()')
        self.assertEqual(self.pixel(50, 40), [GREY] * 3)
        self.assertEqual(self.page.evaluate(
            'document.querySelector("#legend button").getAttribute("aria-pressed")'), 'false')
        self.page.evaluate('document.querySelector("#legend button").click()')
        self.assertNotEqual(self.pixel(50, 40), [GREY] * 3)

    def test_masks_are_where_their_runs_are(self):
        self.server.answer = lambda: detections(('cup', 1, 0.9, (0, 0, 200, 100)))
        self.give()
        self.wait_for_answer()
        body = json.loads(self.server.answer().body)
        found = body['results'][0]['detections'][0]
        # The mask covers every other row of the left half. Runs go down the columns. In each of
        # 100 columns, 50 runs of one mask pixel alternate with 50 runs of one other pixel. This is
        # the maximum number of runs.
        found['rle'] = encode_runs(HEIGHT, WIDTH, [1] * (100 * HEIGHT) + [100 * HEIGHT])
        self.server.answer = lambda: Answer(body)
        self.page.evaluate('document.getElementById("go").click()')
        self.page.wait_for('!document.body.classList.contains("busy")')
        scale = self.page.evaluate('document.getElementById("view").width') / WIDTH
        self.assertGreater(scale, 1.5)
        self.assertNotEqual(self.pixel(50, 41.5), self.pixel(50, 42.5))
        self.assertEqual(self.pixel(150, 41.5), [GREY] * 3)

    def test_a_class_map_is_drawn_with_its_legend(self):
        size = HEIGHT * WIDTH
        self.server.answer = lambda: Answer({'results': [{
            'rle': {'classes': [
                {'label': 'background',
                 'rle': encode_runs(HEIGHT, WIDTH, [0, size // 2, size // 2])},
                {'classId': 4, 'label': 'table',
                 'rle': encode_runs(HEIGHT, WIDTH, [size // 2, size // 2])}]},
            'areas': [{'label': 'background', 'pixelCount': '10000', 'fraction': 0.5},
                      {'classId': 4, 'label': 'table', 'pixelCount': '10000', 'fraction': 0.5}],
            'width': WIDTH, 'height': HEIGHT}], 'timing': TIMING})
        self.select('mapper')
        self.give()
        self.wait_for_answer()
        self.assertEqual(self.server.asked[0]['path'], '/v1/models/mapper:segment')
        self.assertEqual(self.server.asked[0]['query']['encoding'], 'RLE_PER_CLASS')
        self.assertEqual(self.texts('#answer tbody tr'), ['background\t50.0 %', 'table\t50.0 %'])
        self.assertEqual(self.pixel(50, 50), [GREY] * 3)
        self.assertNotEqual(self.pixel(150, 50), [GREY] * 3)
        self.page.evaluate('document.querySelectorAll("#legend button")[1].click()')
        self.assertEqual(self.pixel(150, 50), [GREY] * 3)

    def test_scores_have_bars_of_their_length(self):
        self.server.answer = lambda: Answer({'results': [{'categories': [
            {'classId': 3, 'label': 'table', 'score': 0.75}, {'label': 'bed', 'score': 0.2},
            {'classId': 8, 'score': 1e-4}, {'classId': 9}]}], 'timing': TIMING})
        self.select('namer')
        self.give()
        self.wait_for_answer()
        self.assertEqual(self.server.asked[0]['path'], '/v1/models/namer/versions/1:classify')
        self.assertEqual(self.server.asked[0]['query']['top_k'], '5')
        self.assertEqual(self.text('#answer .verdict'), 'table')
        self.assertEqual(self.texts('#answer tbody th'), ['table', 'bed', 'class 8', 'class 9'])
        self.assertEqual(self.texts('#answer .number'), ['75.0 %', '20.0 %', '< 0.1 %', '0.0 %'])
        self.assertEqual(self.page.evaluate(
            '[...document.querySelectorAll("#answer .bar")].map((bar) => bar.style.width)'),
            ['75%', '20%', '0.01%', '0%'])

    def test_a_heat_map_is_drawn(self):
        rows = b''.join(b'\0' + bytes(100) + bytes([255]) * 100 for _ in range(HEIGHT))
        self.server.answer = lambda: Answer({'results': [{
            'categories': [{'classId': 3, 'label': 'table', 'score': 0.75}],
            'heatMap': {'classId': 3, 'width': WIDTH, 'height': HEIGHT,
                        'png': base64.b64encode(grey_png(WIDTH, HEIGHT, rows)).decode()}}],
            'timing': TIMING})
        self.select('namer')
        self.give()
        self.wait_for_answer()
        self.assertNotIn('heat_map.encoding', self.server.asked[0]['query'])
        self.page.evaluate('document.getElementById("heat").click()')
        self.page.wait_for('!document.body.classList.contains("busy")')
        self.assertEqual(self.server.asked[1]['query']['heat_map.encoding'], 'PNG')
        self.assertEqual(self.pixel(50, 50), [GREY] * 3)
        red, green, blue = self.pixel(150, 50)
        self.assertGreater(red, 180)
        self.assertLess(max(green, blue), 60)

    def test_the_time_is_shown_by_stage(self):
        self.server.answer = lambda: detections(*TWO)
        self.give()
        self.wait_for_answer()
        times = dict(text.split('\n') for text in self.texts('#timing dl div'))
        self.assertRegex(times.pop('network'), 's$')
        self.assertEqual(times, {'decode': '4.0 ms', 'preprocess': '2.0 ms', 'queue': '10.0 ms',
                                 'inference': '80.0 ms', 'postprocess': '3.0 ms',
                                 'other': '1.0 ms'})
        facts = self.text('#answer .facts')
        for fact in ('models/finder/versions/1', '3 images, padded to 4', '256x320', 'cpu', 'r-1'):
            self.assertIn(fact, facts)

    def test_labels_stay_text(self):
        self.server.answer = lambda: detections((HOSTILE, 1, 0.9, (20, 20, 80, 60)))
        self.server.models = [{**self.server.models[0], 'stateReason': HOSTILE}]
        self.give()
        self.wait_for_answer()
        self.assertEqual(self.text('#answer tbody button'), HOSTILE)
        self.assertIn(HOSTILE, self.text('#legend'))
        self.wait_for_text('live', HOSTILE)
        self.assertEqual(self.page.evaluate('document.querySelectorAll("main img").length'), 0)
        self.assertEqual(self.page.evaluate('document.title'), 'SF-Mamba console')

    def test_a_thousand_objects(self):
        many = [('cup', i % 80, 0.9, (i % 150, i % 50, i % 150 + 40, i % 50 + 40))
                for i in range(1000)]
        self.server.answer = lambda: detections(*many)
        self.give()
        self.wait_for_answer()
        self.assertEqual(len(self.texts('#answer tbody tr')), 100)
        self.assertIn('first 100 of 1000', self.text('#answer'))

    def test_nothing_found(self):
        self.server.answer = lambda: Answer(
            {'results': [{'imageWidth': WIDTH, 'imageHeight': HEIGHT}]})
        self.give()
        self.wait_for_answer()
        self.assertIn('No object has a score above 0.50', self.text('#answer'))


class ErrorTest(ConsoleCase):
    # The browser logs each refused request.
    def tearDown(self):
        self.page.events[:] = [
            (method, parameters) for method, parameters in self.page.events
            if method != 'Log.entryAdded' or parameters['entry']['source'] != 'network']
        super().tearDown()

    def refuse(self, reason, message, *violations):
        self.server.answer = lambda: error(3, message, 400, {**ERROR_INFO, 'reason': reason}, {
            '@type': 'type.googleapis.com/google.rpc.BadRequest',
            'fieldViolations': [dict(zip(('field', 'description'), entry))
                                for entry in violations]})
        self.give(f'{len(self.server.asked)}.txt', b'no picture')
        self.wait_for_error()
        return self.texts('#error p, #error li')

    def test_a_refusal_says_what_to_do_and_why_once(self):
        why = 'this is text; JPEG, PNG and WebP are taken'
        for message in (f'images[0].encoded: {why}', why):
            for description in (f'images[0].encoded: {why}', why):
                with self.subTest(message + description):
                    said = self.refuse('IMAGE_FORMAT_UNSUPPORTED', message,
                                       ('images[0].encoded', description))
                    self.assertEqual(said, [
                        'Choose a JPEG, PNG or WebP picture.',
                        'This is text; JPEG, PNG and WebP are taken.',
                        'INVALID_ARGUMENT · IMAGE_FORMAT_UNSUPPORTED · HTTP 400'])
        self.assertIn('this browser cannot show it', self.text('#picture-note'))
        self.assertEqual(self.text('#status'), '')
        # The page offers no retry and no commands, because the server would refuse this picture
        # again.
        self.assertEqual(self.texts('#error button'), [])
        self.assertTrue(self.page.evaluate('document.getElementById("commands").hidden'))

    def test_a_refusal_lists_fields_that_its_message_leaves_out(self):
        said = self.refuse('OPTION_INVALID', 'two fields are wrong', ('top_k', HOSTILE),
                           ('', 'fields'))
        self.assertEqual(said, ['The server does not take this request: change it.',
                                'Two fields are wrong.', f'top_k: {HOSTILE}',
                                'INVALID_ARGUMENT · OPTION_INVALID · HTTP 400'])

    def test_a_name_stays_as_it_is(self):
        for message in ('models/a/versions/1 is LOADING.', 'top_k: got -1, expected 0 to 5.'):
            self.assertEqual(self.refuse('OPTION_INVALID', message)[1], message)

    def test_each_kind_of_error_says_what_to_do(self):
        for code, http, advice, again in (
                (5, 404, 'Choose another model.', False),
                (7, 403, 'Use a token that may do this.', False),
                (8, 429, 'The server has too much to do: try again later.', False),
                (13, 500, 'Something went wrong: try again.', True),
                (14, 503, 'See whether the server is running, then try again.', True)):
            with self.subTest(code):
                self.server.answer = lambda code=code, http=http: error(code, 'because', http)
                self.give(f'{code}.png')
                self.wait_for_error()
                self.assertEqual(self.texts('#error p')[:2], [advice, 'Because.'])
                self.assertEqual(self.texts('#error button'), ['Try again'] * again)

    def test_a_retry_is_offered_after_its_delay(self):
        self.server.answer = lambda: error(8, 'the queue is full', 429, {
            '@type': 'type.googleapis.com/google.rpc.RetryInfo', 'retryDelay': '1.5s'})
        self.give()
        self.wait_for_error()
        self.assertTrue(self.page.evaluate('document.querySelector("#error button").disabled'))
        self.assertIn('Try again in', self.text('#error button'))
        self.server.answer = lambda: detections(*TWO)
        self.page.wait_for('!document.querySelector("#error button").disabled')
        self.page.evaluate('document.querySelector("#error button").click()')
        self.wait_for_answer()
        self.assertEqual(self.text('#error'), '')

    def test_an_image_has_an_error_of_its_own(self):
        self.server.answer = lambda: Answer({'results': [{'error': {
            'code': 13, 'message': 'the device is out of memory',
            'details': [{**ERROR_INFO, 'reason': 'DEVICE_OOM'}]}}], 'timing': TIMING})
        self.give()
        self.wait_for_error()
        for part in ('INTERNAL', 'DEVICE_OOM', 'out of memory'):
            self.assertIn(part, self.text('#error'))
        self.assertIn('inference', self.text('#timing'))

    def test_a_run_is_cancelled(self):
        gate = threading.Event()
        self.addCleanup(gate.set)
        self.server.answer = lambda: Answer({}, gate=gate)
        self.give()
        self.page.wait_for('!document.getElementById("cancel").hidden')
        self.page.evaluate('document.getElementById("cancel").click()')
        self.wait_for_text('status', 'Cancelled after')
        self.assertTrue(self.page.evaluate('document.getElementById("cancel").hidden'))

    def test_of_two_runs_the_last_is_answered(self):
        gate = threading.Event()
        self.addCleanup(gate.set)
        self.server.answer = lambda: Answer({'results': [{}]}, gate=gate)
        self.give('first.png')
        self.page.wait_for('!document.getElementById("cancel").hidden')
        self.server.answer = lambda: detections(*TWO)
        self.give('second.png')
        self.wait_for_answer()
        gate.set()
        self.assertIn('cup', self.text('#answer'))
        given_up = [parameters for method, parameters in self.page.events
                    if method == 'Network.loadingFailed' and parameters.get('canceled')]
        self.assertEqual(len(given_up), 1)

    def test_answers_that_are_no_answers(self):
        broken = detections(*TWO)
        body = json.loads(broken.body)
        body['results'][0]['detections'][0]['rle']['counts'] = '~~~'
        short = json.loads(broken.body)
        short['results'][0]['detections'][0]['rle']['counts'] = '04'
        for i, (answer, said) in enumerate((
                (Answer(b'<html>a proxy</html>', 502), 'a proxy'),
                (Answer(b'{'), 'The answer is no JSON'),
                (Answer({}), 'no result for the picture'),
                (Answer(body), 'A mask is not run lengths'),
                (Answer(short), 'A mask of 200 x 100 pixels has runs of 4 pixels'),
                (Answer({'results': [{'x': 'y' * 100000}]}, cut=True), 'The connection broke'))):
            with self.subTest(said):
                self.server.answer = lambda answer=answer: answer
                self.give(f'{i}.png')
                self.wait_for_error()
                self.assertIn(said, self.text('#error'))


class CommandTest(ConsoleCase):
    NAME = "-rf $(touch x) 'it`s' \"so\".png"

    def arguments(self, command, program):
        """Returns the arguments that a shell passes to the program."""
        run = subprocess.run(
            ['bash', '-c', f'{program}() {{ printf "%s\\0" "$@"; }}\n{command}'],
            check=True, stdout=subprocess.PIPE, cwd=self.folder)
        return run.stdout.decode().split('\0')[:-1]

    def test_names_are_quoted(self):
        self.server.answer = lambda: detections(*TWO)
        self.give(self.NAME)
        self.wait_for_answer()
        curl, python, sfmamba = self.page.evaluate(
            '[...document.querySelectorAll("#command-list pre")].map((e) => e.textContent)')
        file = './' + self.NAME
        arguments = self.arguments(curl, 'curl')
        self.assertIn('@' + file, arguments)
        self.assertTrue(arguments[-1].startswith(f'{self.server.url}v1/models/finder:detect?'))
        arguments = self.arguments(sfmamba, 'bazel-bin/client/sfmamba')
        self.assertEqual(arguments[:2], ['detect', file])
        self.assertIn('--score_threshold=0.5', arguments)
        self.assertIn('--model=finder', arguments)
        strings = [node.value for node in ast.walk(ast.parse(python))
                   if isinstance(node, ast.Constant)]
        self.assertIn(file, strings)
        self.assertFalse((self.folder / 'x').exists())


if __name__ == '__main__':
    unittest.main()
