"""Tests the dashboards and the provisioning files of Grafana. Does not run Grafana."""

import re
import unittest

import queries
import yaml


class DashboardTest(unittest.TestCase):

    def setUp(self):
        self.dashboards = queries.dashboards()
        self.assertIn('sfmamba.json', self.dashboards)

    def panels(self):
        for name, dashboard in self.dashboards.items():
            for panel in dashboard['panels']:
                yield f'{name}: {panel["title"]}', panel

    def test_panels_have_ids_of_their_own_and_do_not_overlap(self):
        for name, dashboard in self.dashboards.items():
            ids = [panel['id'] for panel in dashboard['panels']]
            self.assertEqual(len(ids), len(set(ids)), name)
            taken = set()
            for panel in dashboard['panels']:
                box = panel['gridPos']
                cells = {(x, y) for x in range(box['x'], box['x'] + box['w'])
                         for y in range(box['y'], box['y'] + box['h'])}
                self.assertFalse(cells & taken, panel['title'])
                self.assertLessEqual(box['x'] + box['w'], 24, panel['title'])
                taken |= cells

    def test_rows_are_those_of_the_specification(self):
        rows = [panel['title'] for panel in self.dashboards['sfmamba.json']['panels']
                if panel['type'] == 'row']
        self.assertEqual(rows, ['Traffic', 'Latency', 'Batching', 'Queue', 'Process',
                                'Versions', 'Access', 'Models'])

    def test_each_panel_asks_the_chosen_data_source(self):
        for where, panel in self.panels():
            if panel['type'] == 'row':
                continue
            self.assertTrue(panel['targets'], where)
            for part in [panel, *panel['targets']]:
                self.assertEqual(part['datasource'],
                                 {'type': 'prometheus', 'uid': '${datasource}'}, where)

    def test_graphs_have_a_unit(self):
        for where, panel in self.panels():
            if panel['type'] == 'timeseries':
                self.assertTrue(panel['fieldConfig']['defaults']['unit'], where)

    def test_variables_of_queries_are_defined(self):
        for name, dashboard in self.dashboards.items():
            known = {variable['name'] for variable in dashboard['templating']['list']}
            known.add('__rate_interval')
            for panel in dashboard['panels']:
                for target in panel.get('targets', []):
                    used = set(re.findall(r'\$\{?(\w+)', target['expr']))
                    self.assertLessEqual(used, known, f'{name}: {panel["title"]}')

    def test_provisioning_gives_the_data_source_and_the_folder(self):
        folder = queries.DEPLOY / 'grafana/provisioning'
        sources = yaml.safe_load((folder / 'datasources/prometheus.yaml').read_text())
        self.assertEqual(sources['apiVersion'], 1)
        [source] = sources['datasources']
        self.assertEqual(source['type'], 'prometheus')
        chosen = [variable['current']['value']
                  for dashboard in self.dashboards.values()
                  for variable in dashboard['templating']['list']
                  if variable['type'] == 'datasource']
        self.assertEqual(set(chosen), {source['uid']})
        providers = yaml.safe_load((folder / 'dashboards/sfmamba.yaml').read_text())
        [provider] = providers['providers']
        compose = yaml.safe_load((queries.DEPLOY / 'compose.yaml').read_text())
        mounts = dict(volume.split(':')[:2]
                      for volume in compose['services']['grafana']['volumes'])
        self.assertEqual(mounts['./grafana/dashboards'], provider['options']['path'])
        self.assertEqual(mounts['./grafana/provisioning'], '/etc/grafana/provisioning')
