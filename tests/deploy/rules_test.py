"""Checks the configuration of Prometheus and Alertmanager and the rules with the tools promtool and
amtool. Also runs the unit tests of the rules."""

import pathlib
import re
import subprocess
import unittest

import queries

ALERTMANAGER = 'deploy/alertmanager/alertmanager.yml'


def promtool(*arguments):
    return subprocess.run(['promtool', *arguments], capture_output=True, text=True, timeout=60)


def receivers(**labels):
    """Returns the names of the receivers to which Alertmanager sends an alert with these labels."""
    done = subprocess.run(['amtool', 'config', 'routes', 'test', f'--config.file={ALERTMANAGER}',
                           *(f'{name}={value}' for name, value in labels.items())],
                          capture_output=True, text=True, timeout=60)
    return done.stdout.split()


class AlertmanagerTest(unittest.TestCase):

    def test_its_configuration_is_valid(self):
        done = subprocess.run(['amtool', 'check-config', ALERTMANAGER],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn('2 inhibit rules', done.stdout)

    def test_each_severity_has_a_receiver_of_its_own(self):
        severities = {rule['labels']['severity'] for rule in queries.rules() if 'alert' in rule}
        self.assertEqual(severities, {'page', 'ticket'})
        for severity in severities:
            self.assertEqual(receivers(alertname='A', severity=severity), [severity])

    def test_what_inhibits_and_what_is_inhibited_are_alerts(self):
        alerts = {rule['alert'] for rule in queries.rules() if 'alert' in rule}
        text = pathlib.Path(ALERTMANAGER).read_text()
        self.assertLessEqual(set(re.findall(r'alertname !?= "(\w+)"', text)), alerts)


class RulesTest(unittest.TestCase):

    def test_the_configuration_and_the_rules_it_names_are_valid(self):
        done = promtool('check', 'config', '--lint=all', '--lint-fatal',
                        'deploy/prometheus/prometheus.yml')
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn('2 rule files found', done.stdout)

    def test_rules_do_what_their_unit_tests_say(self):
        done = promtool('test', 'rules', 'tests/deploy/rules_test.yml')
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_each_alert_is_tested_and_explained(self):
        tests = pathlib.Path('tests/deploy/rules_test.yml').read_text()
        runbook = pathlib.Path('docs/operations.md').read_text()
        anchors = {re.sub(r'[^\w -]', '', title).strip().lower().replace(' ', '-')
                   for title in re.findall(r'^#+ (.*)$', runbook, re.M)}
        alerts = [rule for rule in queries.rules() if 'alert' in rule]
        self.assertGreater(len(alerts), 5)
        for alert in alerts:
            with self.subTest(alert=alert['alert']):
                self.assertRegex(tests, rf'alertname: {alert["alert"]}\n.*\n\s+exp_alerts')
                file, anchor = alert['annotations']['runbook'].split('#')
                self.assertEqual(file, 'docs/operations.md')
                self.assertIn(anchor, anchors)
