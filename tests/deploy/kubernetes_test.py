"""Tests that the manifests of Kubernetes and KServe are valid for the schemas. Also tests that the
manifests agree with each other and with the server."""

import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import jsonschema
import queries
import yaml

from kustomization import apply_patch, render

FOLDER = pathlib.Path('deploy/kubernetes')
KSERVE = pathlib.Path('deploy/kserve')
SCHEMAS = pathlib.Path('external/schemas')
VERSIONS = ('1.29', '1.37')
COMPONENTS = ('hpa', 'keda', 'service-monitor', 'models-volume', 'gateway', 'gateway-tls')

DEFINITIONS = {version: json.loads((SCHEMAS / f'kubernetes-{version}.json').read_text())
               for version in VERSIONS}
CUSTOM = yaml.safe_load(pathlib.Path('tests/deploy/custom_resources.yaml').read_text())


def with_components(*names):
    """Returns the resources of the base with these components."""
    resources = render(FOLDER / 'base')
    for name in names:
        resources = render(FOLDER / 'components' / name, resources)
    return resources


def renderings():
    """Yields (name, resources) for each overlay, for the base with each component, and for the
    files of KServe."""
    for path in sorted((FOLDER / 'overlays').iterdir()):
        yield path.name, render(path)
    for name in COMPONENTS:
        yield f'base + {name}', with_components(name)
    yield 'kserve', [yaml.safe_load(path.read_text()) for path in sorted(KSERVE.glob('*.yaml'))]


def named(resources, kind):
    """Returns the resource of this kind. There must be exactly one."""
    [found] = [resource for resource in resources if resource['kind'] == kind]
    return found


def _definition_name(definitions, resource):
    group, _, version = resource['apiVersion'].rpartition('/')
    kind = {'group': group, 'kind': resource['kind'], 'version': version}
    for name, definition in definitions['$defs'].items():
        if kind in definition.get('x-kubernetes-group-version-kind', []):
            return name
    return None


class Definitions(jsonschema.RefResolver):
    """Finds a definition directly by its name. The base class would search the whole schema, which
    is slow."""

    def __init__(self, definitions):
        super().__init__('', {})
        self._definitions = definitions['$defs']

    def resolve(self, ref):
        return ref, self._definitions[ref.rpartition('/')[2]]


def _with_references(schema):
    """Returns the schema with references to definitions of Kubernetes. custom_resources.yaml writes
    {kubernetes: NAME} for such a reference."""
    if isinstance(schema, list):
        return [_with_references(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if 'kubernetes' in schema:
        return {'$ref': f'/$defs/{schema["kubernetes"]}'}
    return {key: _with_references(value) for key, value in schema.items()}


def validate(resource, version):
    """Raises ValidationError if the resource is not valid in this version of Kubernetes. The
    schemas of custom resources, for example KEDA's, are in custom_resources.yaml."""
    definitions = DEFINITIONS[version]
    name = _definition_name(definitions, resource)
    if name:
        schema = {'$ref': f'/$defs/{name}'}
        required = ['apiVersion', 'kind', 'metadata']
    else:
        group, _, api = resource['apiVersion'].partition('/')
        spec = CUSTOM[f'{resource["kind"]}.{group}/{api}']
        meta = 'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta'
        schema = _with_references({'type': 'object', 'additionalProperties': False,
                                   'properties': {'apiVersion': {}, 'kind': {},
                                                  'metadata': {'kubernetes': meta},
                                                  'spec': spec}})
        required = ['apiVersion', 'kind', 'metadata', 'spec']
    for field in required:
        if field not in resource:
            raise jsonschema.ValidationError(f'{field} is missing')
    resolver = Definitions(definitions)
    jsonschema.Draft202012Validator(schema, resolver=resolver).validate(resource)


class SchemaTest(unittest.TestCase):

    def test_every_resource_is_valid(self):
        for where, resources in renderings():
            for resource in resources:
                for version in VERSIONS:
                    with self.subTest(where=where, kind=resource['kind'], version=version):
                        validate(resource, version)

    def test_the_validation_sees_what_is_wrong(self):
        deployment = named(with_components(), 'Deployment')
        container = '/spec/template/spec/containers/0'
        for path, value in [
                ('/spec/replica', 1),
                (f'{container}/livenessProbe/grpc/port', '8001'),
                (f'{container}/imagePullPolicies', 'Always'),
                ('/spec/template/spec/terminationGracePeriodSeconds', 'long')]:
            with self.subTest(path=path), self.assertRaises(jsonschema.ValidationError):
                validate(apply_patch(deployment, [{'op': 'add', 'path': path, 'value': value}]),
                         VERSIONS[-1])
        keda = named(with_components('keda'), 'ScaledObject')
        with self.assertRaises(jsonschema.ValidationError):
            validate(apply_patch(keda, [{'op': 'add', 'path': '/spec/maxReplicas', 'value': 2}]),
                     VERSIONS[-1])
        runtime = yaml.safe_load((KSERVE / 'serving-runtime.yaml').read_text())
        with self.assertRaises(jsonschema.ValidationError):
            validate(apply_patch(runtime, [{'op': 'add', 'path': '/spec/containers/0/arg',
                                            'value': []}]), VERSIONS[-1])

    @unittest.skipUnless(shutil.which('kubectl'), 'there is no kubectl here')
    def test_kubectl_renders_the_same(self):
        for overlay in sorted((FOLDER / 'overlays').iterdir()):
            # Bazel provides the files as symbolic links to another folder. kustomize reads no files
            # outside its folder, so the test copies them.
            with tempfile.TemporaryDirectory() as place:
                copied = shutil.copytree(FOLDER, pathlib.Path(place) / 'copy')
                done = subprocess.run(
                    ['kubectl', 'kustomize', copied / 'overlays' / overlay.name],
                    capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stderr, '')  # No warnings, for example of deprecated fields.
            # kustomize adds a hash to the name of the ConfigMap. The name is in the ConfigMap
            # itself and in the pod's volume.
            text, count = re.subn(r'name: sfmamba-[a-z0-9]{10}$', 'name: sfmamba', done.stdout,
                                  flags=re.M)
            self.assertEqual(count, 2)

            def key(resource):
                return resource['kind'], resource['metadata']['name']
            self.assertEqual(sorted(yaml.safe_load_all(text), key=key),
                             sorted(render(overlay), key=key))


class AgreementTest(unittest.TestCase):
    """Tests that files agree on values, for example names, ports and times."""

    def setUp(self):
        self.resources = with_components(*COMPONENTS)
        self.deployment = named(self.resources, 'Deployment')
        self.pod = self.deployment['spec']['template']
        [self.container] = self.pod['spec']['containers']

    def test_everything_selects_the_pods(self):
        labels = self.pod['metadata']['labels']
        selectors = [resource['spec'][field] for resource in self.resources
                     for field in ('selector', 'podSelector') if field in resource.get('spec', {})]
        self.assertEqual(len(selectors), 6)
        for selector in selectors:
            self.assertEqual(selector.get('matchLabels', selector), labels)

    def test_everything_scales_this_deployment(self):
        for kind in ('HorizontalPodAutoscaler', 'ScaledObject'):
            target = named(self.resources, kind)['spec']['scaleTargetRef']
            self.assertEqual((target['apiVersion'], target['kind'], target['name']),
                             ('apps/v1', 'Deployment', self.deployment['metadata']['name']))
        self.assertNotIn('replicas', self.deployment['spec'])

    def test_autoscalers_average_the_pods_worst_devices_and_models(self):
        asked = dict(queries.autoscaler_queries())
        self.assertEqual(len(asked), 5)
        for where, query in asked.items():
            with self.subTest(autoscaler=where):
                self.assertRegex(query, r'^(avg\()?max by \(instance\)')
                # The HPA itself computes the average over the pods. The queries of the other
                # autoscalers must compute it, so they begin with avg.
                self.assertEqual(query.startswith('avg'), not where.startswith('HPA'))
        for scaler in ('HPA', 'KEDA'):
            self.assertEqual(
                set().union(*(queries.metrics(query) for where, query in asked.items()
                              if where.startswith(scaler))),
                {'sfmamba_device_busy_ratio', 'sfmamba_backlog_seconds'})
        hpa = {metric['pods']['metric']['name']: metric['pods']['target']['averageValue']
               for metric in named(self.resources, 'HorizontalPodAutoscaler')['spec']['metrics']
               if metric['type'] == 'Pods'}
        for trigger in named(self.resources, 'ScaledObject')['spec']['triggers']:
            [metric] = queries.metrics(trigger['metadata']['query'])
            self.assertEqual(hpa[metric], f'{1000 * float(trigger["metadata"]["threshold"]):.0f}m')

    def test_the_operator_gets_the_rules_of_prometheus(self):
        made = subprocess.run(['python3', 'tools/prometheus_rule.py'], capture_output=True,
                              text=True, timeout=60).stdout
        self.assertEqual((FOLDER / 'components/service-monitor/rules.yaml').read_text(), made,
                         'run tools/prometheus_rule.py')
        groups = [group['rules'] for resource in yaml.safe_load_all(made)
                  for group in resource['spec']['groups']]
        self.assertEqual(sum(groups, []), list(queries.rules()))

    def test_the_server_uses_the_cpus_that_the_pod_asks_for(self):
        runtime = yaml.safe_load((KSERVE / 'serving-runtime.yaml').read_text())
        for container in (self.container, runtime['spec']['containers'][0]):
            [variable] = [one for one in container['env'] if one['name'] == 'CPUS']
            self.assertEqual(variable['valueFrom']['resourceFieldRef'],
                             {'containerName': container['name'], 'resource': 'requests.cpu'})
            self.assertIn('--compute_threads=$(CPUS)', container['args'])
            self.assertIn('--decode_threads=$(CPUS)', container['args'])

    def test_a_pod_has_the_memory_that_its_budget_counts_on(self):
        for overlay in ('cpu', 'gpu'):
            deployment = named(render(FOLDER / 'overlays' / overlay), 'Deployment')
            [container] = deployment['spec']['template']['spec']['containers']
            self.assertEqual(container['resources']['requests']['memory'],
                             container['resources']['limits']['memory'])

    def test_operators_alone_change_models(self):
        """Checks that no route of the gateway leads to a method that changes models or settings."""
        resources = with_components('gateway')
        methods, paths = [], []
        for resource in resources:
            for rule in resource.get('spec', {}).get('rules', []):
                for match in rule.get('matches', []):
                    methods += [match['method']] if 'method' in match else []
                    paths += [match['path']['value']] if 'path' in match else []
        self.assertTrue(methods)
        self.assertTrue(paths)
        for method in methods:
            if method['service'] == 'inference.GRPCInferenceService':
                self.assertNotRegex(method['method'], 'Repository|Setting')
            else:
                self.assertIn(method['service'],
                              ('sfmamba.v1.VisionService', 'grpc.health.v1.Health'))
        for path in paths:
            self.assertNotRegex(path, 'repository|metrics|^/$|^/v2$')

    def test_a_gpu_pod_does_not_serve_on_the_cpu(self):
        for overlay, asks in [('gpu', True), ('cpu', False)]:
            deployment = named(render(FOLDER / 'overlays' / overlay), 'Deployment')
            args = deployment['spec']['template']['spec']['containers'][0]['args']
            self.assertEqual('--device=cuda' in args, asks, overlay)
            self.assertEqual(args[0], '--config=/etc/sfmamba/server.textproto')

    def test_gpu_pods_keep_what_they_measured_and_share_it(self):
        resources = render(FOLDER / 'overlays/gpu')
        pod = named(resources, 'Deployment')['spec']['template']['spec']
        [container] = pod['containers']
        mounts = {mount['name']: mount['mountPath'] for mount in container['volumeMounts']}
        [value] = [argument.split('=')[1] for argument in container['args']
                   if argument.startswith('--fold_table=')]
        self.assertTrue(value.startswith(mounts['measured'] + '/'), value)
        [volume] = [volume for volume in pod['volumes'] if volume['name'] == 'measured']
        claim = named(resources, 'PersistentVolumeClaim')
        self.assertEqual(volume['persistentVolumeClaim'], {'claimName': claim['metadata']['name']})
        self.assertEqual(claim['spec']['accessModes'], ['ReadWriteMany'])

    def test_a_pod_that_fails_leaves_the_rotation_within_seconds(self):
        runtime = yaml.safe_load((KSERVE / 'serving-runtime.yaml').read_text())
        for container in (self.container, runtime['spec']['containers'][0]):
            start, ready = container['startupProbe'], container['readinessProbe']
            self.assertEqual(start['grpc'], ready['grpc'])
            self.assertGreaterEqual(start['periodSeconds'] * start['failureThreshold'], 300)
            self.assertLessEqual(ready['periodSeconds'] * ready['failureThreshold'], 10)

    def test_ports_that_are_named_exist(self):
        ports = {port['name']: port['containerPort'] for port in self.container['ports']}
        for resource in self.resources:
            if resource['kind'] == 'Service':
                for port in resource['spec']['ports']:
                    self.assertEqual(ports[port['targetPort']], port['port'])
        policy = named(self.resources, 'NetworkPolicy')
        for rule in policy['spec']['ingress']:
            for port in rule['ports']:
                self.assertIn(port['port'], ports)
        [endpoint] = named(self.resources, 'ServiceMonitor')['spec']['endpoints']
        self.assertEqual(endpoint['port'], 'metrics')

    def test_the_probes_ask_the_port_of_the_configuration(self):
        config = named(self.resources, 'ConfigMap')['data']['server.textproto']
        port = int(re.search(r'^port: (\d+)', config, re.M)[1])
        others = [int(re.search(rf'^{name}_port: (\d+)', config, re.M)[1])
                  for name in ('http', 'metrics', 'health')]
        self.assertEqual([port, *others],
                         [entry['containerPort'] for entry in self.container['ports']])
        # The probes of kubelet use the health port. Other pods cannot reach this port, because the
        # NetworkPolicy does not allow it.
        for probe in ('startupProbe', 'readinessProbe', 'livenessProbe'):
            self.assertEqual(self.container[probe]['grpc']['port'], others[-1])

    def test_the_pod_waits_longer_than_the_server_drains(self):
        config = named(self.resources, 'ConfigMap')['data']['server.textproto']
        drains = sum(int(seconds) for seconds in
                     re.findall(r'^drain_\w+ \{ seconds: (\d+) \}', config, re.M))
        self.assertEqual(drains, 40)
        # The server must have more than 3 s to exit after it has drained.
        self.assertGreater(self.pod['spec']['terminationGracePeriodSeconds'], drains + 3)

    def test_mounts_have_volumes(self):
        for where, resources in renderings():
            for resource in resources:
                if resource['kind'] == 'Deployment':
                    pod = resource['spec']['template']['spec']
                    self.assertEqual({mount['name'] for mount in pod['containers'][0]['volumeMounts']},
                                     {volume['name'] for volume in pod['volumes']}, where)

    def test_nothing_may_write_or_rise(self):
        for security in (self.container['securityContext'],
                         yaml.safe_load((KSERVE / 'serving-runtime.yaml').read_text())
                         ['spec']['containers'][0]['securityContext']):
            self.assertTrue(security['readOnlyRootFilesystem'])
            self.assertFalse(security['allowPrivilegeEscalation'])
            self.assertEqual(security['capabilities'], {'drop': ['ALL']})
        self.assertEqual(self.pod['spec']['securityContext']['runAsUser'], 65532)

    def test_the_server_accepts_its_configuration_and_arguments(self):
        config = FOLDER / 'base/server.textproto'
        service = yaml.safe_load((KSERVE / 'inference-service.yaml').read_text())
        all_arguments = [[f'--config={config}', *self.container['args'][1:]]]
        for path in KSERVE.glob('serving-runtime*.yaml'):
            [container] = yaml.safe_load(path.read_text())['spec']['containers']
            all_arguments.append([argument.replace('{{.Name}}', service['metadata']['name'])
                                  for argument in container['args']])
            # KServe downloads the model that storageUri names into this folder.
            self.assertIn('--model=mambavision-t=/mnt/models', all_arguments[-1])
        self.assertEqual(len(all_arguments), 3)
        for arguments in all_arguments:
            # kubelet replaces $(CPUS) in the same way.
            arguments = [argument.replace('$(CPUS)', '2') for argument in arguments]
            done = subprocess.run(['server/sfmamba_server', '--host=0.0.0.0', *arguments,
                                   '--validate_config'], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr)
