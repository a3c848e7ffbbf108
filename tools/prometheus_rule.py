#!/usr/bin/env python3
"""Prints deploy/prometheus/rules as the objects that a Prometheus operator takes.

    tools/prometheus_rule.py > deploy/kubernetes/components/service-monitor/rules.yaml
"""

import pathlib

RULES = pathlib.Path(__file__).resolve().parent.parent / 'deploy/prometheus/rules'


def objects():
    """Returns one PrometheusRule for each file of rules."""
    yield '# Made by tools/prometheus_rule.py of deploy/prometheus/rules.\n'
    for path in sorted(RULES.glob('*.yml')):
        yield (f'---\napiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\n'
               f'metadata:\n  name: sfmamba-{path.stem}\n'
               f'  labels:\n    app.kubernetes.io/name: sfmamba\nspec:\n')
        for line in path.read_text().splitlines(keepends=True):
            yield '  ' + line if line.strip() else line


if __name__ == '__main__':
    print(end=''.join(objects()))
