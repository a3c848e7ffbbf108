"""Reads the PromQL queries in deploy/: the queries of dashboards, rules and autoscalers.

Most functions yield pairs (where, query). `where` describes the place of the query, for example
"sfmamba.json: Requests A" or "KEDA 0.5". `query` is the PromQL text.
"""

import json
import pathlib
import re

import yaml

DEPLOY = pathlib.Path('deploy')

# The metrics of features that the test's server does not use. It does not use TLS, tokens or
# traces, and loads no versions after its start.
NOT_HERE = {
    'sfmamba_model_reloads_total',
    'sfmamba_security_reloads_total',
    'sfmamba_tls_certificate_expiry_timestamp_seconds',
    'sfmamba_tls_handshake_failures_total',
    'sfmamba_trace_spans_dropped_total',
    'sfmamba_trace_spans_exported_total',
    'sfmamba_unauthorized_total',
}

# The queries of these alerts have no data unless a failure has occurred that no test here causes,
# for example an error of the GPU.
RARE_ALERTS = {'SfmambaDeviceFails'}

# Grafana replaces variables in queries. These are the values for the tests. The window for rates is
# short, because the tests are short.
VARIABLES = {
    '$__rate_interval': '5s',
    '$job': 'sfmamba',
    '$model': '.+',
    '$instance': '.+',
}


def dashboards():
    """Returns the dashboards by the names of their files."""
    return {path.name: json.loads(path.read_text())
            for path in sorted((DEPLOY / 'grafana/dashboards').glob('*.json'))}


def fill(query):
    """Returns the query with the values of Grafana's variables."""
    for name, value in VARIABLES.items():
        query = query.replace(name, value)
    return query


def dashboard_queries():
    """Yields (where, query) for the queries of every panel. Skips the queries of annotations,
    because they have no data while no alert fires."""
    for name, dashboard in dashboards().items():
        for panel in dashboard['panels']:
            for target in panel.get('targets', []):
                where = f'{name}: {panel["title"]} {target["refId"]}'
                yield where, fill(target['expr'])


def variable_queries():
    """Yields (where, label, selector) for each variable of the dashboards that is defined by
    label_values(selector, label)."""
    for name, dashboard in dashboards().items():
        for variable in dashboard['templating']['list']:
            if variable['type'] == 'query':
                found = re.fullmatch(r'label_values\((.*), (\w+)\)', variable['definition'])
                where = f'{name}: variable {variable["name"]}'
                yield where, found[2], fill(found[1])


def rules():
    """Yields the rules of all files in deploy/prometheus/rules."""
    for path in sorted((DEPLOY / 'prometheus/rules').glob('*.yml')):
        for group in yaml.safe_load(path.read_text())['groups']:
            yield from group['rules']


def rule_queries():
    for rule in rules():
        yield rule.get('alert') or rule.get('record'), rule['expr']


def quiet(query):
    """Returns the query with `bool` after each comparison. Such a comparison gives 0 or 1. The
    query then has data even if its condition is false."""
    return re.sub(r'(==|!=|<=|>=|<|>)(?=\s)', r'\1 bool', query)


def metrics(query):
    """Returns the names of the server's metrics in the query. The suffixes _bucket, _sum and _count
    of histograms are removed."""
    names = re.findall(r'(?<![\w:])(?:sfmamba|process)_[a-z0-9_]+(?![\w:])',
                       re.sub(r'"[^"]*"', '', query))
    return {re.sub(r'_(bucket|sum|count)$', '', name) for name in names}


def autoscaler_queries():
    """Yields (where, query) for the queries that compute the HPA's metrics, for KEDA's queries and
    for KServe's query."""
    kubernetes = DEPLOY / 'kubernetes/components'
    hpa = yaml.safe_load((kubernetes / 'hpa/hpa.yaml').read_text())
    adapter = yaml.safe_load((kubernetes / 'hpa/adapter-values.yaml').read_text())
    for metric in hpa['spec']['metrics']:
        if metric['type'] != 'Pods':
            continue
        name = metric['pods']['metric']['name']
        [rule] = [rule for rule in adapter['rules']['custom']
                  if rule['seriesQuery'].split('{')[0] == name]
        # The adapter replaces <<...>>. The query groups by instance, because there are no pods
        # outside a cluster.
        yield f'HPA {name}', (rule['metricsQuery'].replace('<<.Series>>', name)
                              .replace('<<.LabelMatchers>>', '')
                              .replace('<<.GroupBy>>', 'instance'))
    keda = yaml.safe_load((kubernetes / 'keda/keda.yaml').read_text())
    for trigger in keda['spec']['triggers']:
        yield f'KEDA {trigger["metadata"]["threshold"]}', trigger['metadata']['query']
    service = yaml.safe_load((DEPLOY / 'kserve/inference-service.yaml').read_text())
    for metric in service['spec']['predictor']['autoScaling']['metrics']:
        # KServe's query names its own model. The test's server has the model "namer".
        query = metric['external']['metric']['query']
        yield 'KServe', query.replace(f'"{service["metadata"]["name"]}"', '"namer"')
