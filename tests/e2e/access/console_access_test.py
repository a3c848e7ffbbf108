"""Tests the console of a server that demands a token.

Skipped without chromium-headless-shell, which deploy/setup.sh --interop installs.
"""

import json
import pathlib
import sys
import unittest

sys.path.append(str(pathlib.Path(__file__).parents[1] / 'console'))  # Helpers of the console tests.

from console_case import TWO, ConsoleCase, detections, set_up_module

TOKEN = 'correct-horse-battery'


def setUpModule():
    set_up_module()


class AccessTest(ConsoleCase):
    def setUp(self):
        self.server.reset()
        self.server.token = TOKEN
        self.page.events.clear()
        self.page.resize(1280, 900)
        self.page.open(self.server.url)
        self.page.evaluate('sessionStorage.clear()')
        self.page.open(self.server.url)
        self.wait_for_text('access-note', 'those who have a token')

    def tearDown(self):
        for method, parameters in self.page.events:
            if method == 'Network.requestWillBeSent':
                self.assertNotIn(TOKEN, parameters['request']['url'])
        # The browser logs an error for each response with the status 401. These tests cause such
        # responses, so the errors are removed before the base class checks the log.
        self.page.events[:] = [
            (method, parameters) for method, parameters in self.page.events
            if method != 'Log.entryAdded' or parameters['entry']['source'] != 'network']
        super().tearDown()

    def give_token(self, text):
        """Types the token. The token field already has the focus."""
        self.assertEqual(self.page.evaluate('document.activeElement.id'), 'token')
        self.page.type(text)
        self.page.press('Enter')

    def test_a_token_opens_the_page(self):
        self.assertIn('Refused', self.text('#connection'))
        self.give_token(TOKEN)
        self.page.wait_for('!document.getElementById("model").disabled')
        self.wait_for_text('access-note', 'takes the token')
        self.assertEqual(self.page.evaluate('document.getElementById("token").value'), '')
        self.server.answer = lambda: detections(*TWO)
        self.give()
        self.wait_for_answer()
        self.assertEqual(self.server.asked[0]['headers']['Authorization'], f'Bearer {TOKEN}')
        self.assertNotIn(TOKEN, self.page.evaluate('document.documentElement.outerHTML'))
        self.assertIn('-H "Authorization: Bearer $SFMAMBA_TOKEN"', self.text('#command-list'))
        self.assertIn("token=os.environ['SFMAMBA_TOKEN']", self.text('#command-list'))

    def test_a_token_lasts_until_it_is_forgotten(self):
        self.give_token(TOKEN)
        self.page.wait_for('!document.getElementById("model").disabled')
        self.page.open(self.server.url)
        self.page.wait_for('!document.getElementById("model").disabled')
        self.page.wait_for('!document.getElementById("forget-token").hidden')
        self.page.evaluate('document.getElementById("forget-token").click()')
        self.wait_for_text('access-note', 'those who have a token')
        self.assertIsNone(self.page.evaluate('sessionStorage.getItem("token")'))
        self.assertEqual(self.page.evaluate('JSON.stringify(localStorage)'), '{}')
        self.assertEqual(self.page.evaluate('document.cookie'), '')

    def test_a_wrong_token_is_told_and_not_kept(self):
        self.give_token('wrong')
        self.wait_for_text('access-note', 'does not know this token')
        self.assertIsNone(self.page.evaluate('sessionStorage.getItem("token")'))
        self.give_token('two words')
        self.wait_for_text('access-note', 'no blanks')

    def test_who_has_no_token_is_not_asked_again_and_again(self):
        asked = self.server.refused
        self.page.evaluate('new Promise((done) => setTimeout(done, 4000))')
        self.assertEqual(self.server.refused, asked)

    def test_a_token_that_is_revoked_is_asked_for_anew(self):
        self.give_token(TOKEN)
        self.page.wait_for('!document.getElementById("model").disabled')
        self.server.token = 'another'
        self.wait_for_text('access-note', 'does not know this token')
        self.assertTrue(self.page.evaluate('document.getElementById("forget-token").hidden'))

    def test_the_field_is_named_and_hidden_from_shoulders(self):
        field = json.loads(self.page.evaluate("""(() => {
            const field = document.getElementById('token');
            return JSON.stringify([field.type, field.labels[0].innerText, field.autocomplete,
                document.getElementById(field.getAttribute('aria-describedby')).role]);
        })()"""))
        self.assertEqual(field, ['password', 'Token', 'off', 'status'])

    def test_it_fits_a_phone(self):
        self.page.resize(360, 740)
        self.assertLessEqual(
            self.page.evaluate('document.documentElement.scrollWidth'), 360)


class OpenTest(ConsoleCase):
    def test_nobody_is_asked_by_a_server_that_needs_no_token(self):
        self.assertTrue(self.page.evaluate('document.getElementById("access").hidden'))


if __name__ == '__main__':
    unittest.main()
