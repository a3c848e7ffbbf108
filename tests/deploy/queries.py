"""The PromQL that deploy/ ships: dashboards, rules and autoscalers.

A query is a pair of where it stands, in words, and its text.
"""

import json
import pathlib
import re

import yaml

DEPLOY = pathlib.Path('deploy')

# Those of what the test's server does not do: speak TLS, ask for tokens, send traces, and load
# versions after its start.
NOT_HERE = {
    'sfmamba_model_reloads_total',
    'sfmamba_security_reloads_total',
    'sfmamba_tls_certificate_expiry_timestamp_seconds',
    'sfmamba_tls_handshake_failures_total',
    'sfmamba_trace_spans_dropped_total',
    'sfmamba_trace_spans_exported_total',
    'sfmamba_unauthorized_total',
}

# Their series exist once something has failed that does not fail here.
RARE_ALERTS = {'SfmambaDeviceFails'}

# What Grafana would put for its variables, of a short window.
VARIABLES = {
    '$__rate_interval': '5s',
    '$job': 'sfmamba',
    '$model': '.+',
    '$instance': '.+',
}


def dashboards():
    """Each dashboard by its file's name."""
    return {path.name: json.loads(path.read_text())
            for path in sorted((DEPLOY / 'grafana/dashboards').glob('*.json'))}


def fill(query):
    """The query with Grafana's variables replaced."""
    for name, value in VARIABLES.items():
        query = query.replace(name, value)
    return query


def dashboard_queries():
    """Of every panel; annotations are empty while no alert fires."""
    for name, dashboard in dashboards().items():
        for panel in dashboard['panels']:
            for target in panel.get('targets', []):
                where = f'{name}: {panel["title"]} {target["refId"]}'
                yield where, fill(target['expr'])


def variable_queries():
    """(where, label, selector) of each label_values(selector, label)."""
    for name, dashboard in dashboards().items():
        for variable in dashboard['templating']['list']:
            if variable['type'] == 'query':
                found = re.fullmatch(r'label_values\((.*), (\w+)\)', variable['definition'])
                where = f'{name}: variable {variable["name"]}'
                yield where, found[2], fill(found[1])


def rules():
    """Each rule as its file has it."""
    for path in sorted((DEPLOY / 'prometheus/rules').glob('*.yml')):
        for group in yaml.safe_load(path.read_text())['groups']:
            yield from group['rules']


def rule_queries():
    for rule in rules():
        yield rule.get('alert') or rule.get('record'), rule['expr']


def quiet(query):
    """The query with comparisons that answer 0 or 1, so that it has data even
    while its condition does not hold."""
    return re.sub(r'(==|!=|<=|>=|<|>)(?=\s)', r'\1 bool', query)


def metrics(query):
    """The names of the server's own metrics in the query, less the suffixes of
    histograms' series."""
    names = re.findall(r'(?<![\w:])(?:sfmamba|process)_[a-z0-9_]+(?![\w:])',
                       re.sub(r'"[^"]*"', '', query))
    return {re.sub(r'_(bucket|sum|count)$', '', name) for name in names}


def autoscaler_queries():
    """What the HPA's metric is computed by, KEDA's query and KServe's."""
    kubernetes = DEPLOY / 'kubernetes/components'
    hpa = yaml.safe_load((kubernetes / 'hpa/hpa.yaml').read_text())
    adapter = yaml.safe_load((kubernetes / 'hpa/adapter-values.yaml').read_text())
    for metric in hpa['spec']['metrics']:
        if metric['type'] != 'Pods':
            continue
        name = metric['pods']['metric']['name']
        [rule] = [rule for rule in adapter['rules']['custom']
                  if rule['seriesQuery'].split('{')[0] == name]
        # Outside of a cluster there is no pod to group by.
        yield f'HPA {name}', (rule['metricsQuery'].replace('<<.Series>>', name)
                              .replace('<<.LabelMatchers>>', '')
                              .replace('<<.GroupBy>>', 'instance'))
    keda = yaml.safe_load((kubernetes / 'keda/keda.yaml').read_text())
    for trigger in keda['spec']['triggers']:
        yield f'KEDA {trigger["metadata"]["threshold"]}', trigger['metadata']['query']
    service = yaml.safe_load((DEPLOY / 'kserve/inference-service.yaml').read_text())
    for metric in service['spec']['predictor']['autoScaling']['metrics']:
        # The test's server has a model of another name.
        query = metric['external']['metric']['query']
        yield 'KServe', query.replace(f'"{service["metadata"]["name"]}"', '"namer"')
