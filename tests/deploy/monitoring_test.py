"""Each query that deploy/ ships, asked of a real Prometheus that scrapes a real
server under load."""

import re
import time
import unittest

import live
import queries

UNSET = queries.NOT_HERE
LIMIT = 40  # Seconds in which every query must have had data.


class MonitoringTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.live = live.Live('server/sfmamba_server', 'client/sfmamba')

    @classmethod
    def tearDownClass(cls):
        cls.live.close()

    def all_queries(self):
        yield from queries.dashboard_queries()
        yield from queries.rule_queries()
        yield from queries.autoscaler_queries()

    def test_every_query_returns_data(self):
        waiting = {where: queries.quiet(query) for where, query in self.all_queries()
                   if not queries.metrics(query) & UNSET and where not in queries.RARE_ALERTS}
        self.assertGreater(len(waiting), 40)
        deadline = time.monotonic() + LIMIT
        while waiting and time.monotonic() < deadline:
            for where, query in list(waiting.items()):
                if self.live.numbers(query):
                    del waiting[where]
            time.sleep(0.2)
        self.assertEqual(waiting, {})

    def test_every_recorded_series_is_made(self):
        waiting = {rule['record'] for rule in queries.rules() if 'record' in rule}
        deadline = time.monotonic() + LIMIT
        while waiting and time.monotonic() < deadline:
            waiting = {name for name in waiting if not self.live.numbers(name)}
            time.sleep(0.2)
        self.assertEqual(waiting, set())

    def test_every_metric_that_is_named_is_exported(self):
        waiting = {where: queries.metrics(query) - UNSET for where, query in self.all_queries()}
        deadline = time.monotonic() + LIMIT  # Some are there once they are counted.
        while waiting and time.monotonic() < deadline:
            exported = set(re.findall(r'^# TYPE (\S+)', self.live.exposition(), re.M))
            waiting = {where: names - exported for where, names in waiting.items()
                       if names - exported}
            time.sleep(0.2)
        self.assertEqual(waiting, {})

    def test_every_metric_of_the_server_is_shown(self):
        shown = set().union(*(queries.metrics(query)
                              for _, query in queries.dashboard_queries()))
        exported = set(re.findall(r'^# TYPE (sfmamba_\S+)', self.live.exposition(), re.M))
        self.assertEqual(exported - shown, set())

    def test_every_variable_has_values(self):
        for where, label, selector in queries.variable_queries():
            with self.subTest(variable=where):
                values = self.live.ask(f'label/{label}/values', **{'match[]': selector})
                self.assertTrue(values)

    def test_a_narrow_queue_raises_the_alert_of_refusals(self):
        deadline = time.monotonic() + LIMIT
        firing = []
        while 'narrow' not in firing and time.monotonic() < deadline:
            firing = [alert['labels']['model'] for alert in self.live.ask('alerts')['alerts']
                      if alert['labels']['alertname'] == 'SfmambaRefusesImages']
            time.sleep(0.2)
        self.assertIn('narrow', firing)

    def test_what_fires_is_told_to_alertmanager(self):
        deadline = time.monotonic() + LIMIT
        told = {}
        while 'narrow' not in told and time.monotonic() < deadline:
            told = {alert['labels']['model']: alert['labels'] for alert in self.live.told()
                    if alert['labels']['alertname'] == 'SfmambaRefusesImages'}
            time.sleep(0.2)
        self.assertIn('narrow', told)
        self.assertEqual(told['narrow']['severity'], 'ticket')
