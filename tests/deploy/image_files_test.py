"""Tests the Dockerfile, compose.yaml, and the folder that becomes the image.

Needs no container engine such as Docker. tests/e2e/image_test.sh builds and runs the image.
"""

import fnmatch
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import jsonschema
import yaml

DOCKERFILE = pathlib.Path('deploy/Dockerfile')
COMPOSE = pathlib.Path('deploy/compose.yaml')
SERVER = 'server/sfmamba_server'
CLIENT = 'client/sfmamba'


def instructions(text):
    """Yields (name, arguments) for each instruction of a Dockerfile."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith('#')]
    for line in '\n'.join(lines).replace('\\\n', ' ').splitlines():
        name, _, arguments = line.partition(' ')
        yield name, arguments.strip()


def stages(text):
    """Returns the stages of a Dockerfile in their order: {name: (base, instructions)}."""
    found = {}
    for name, arguments in instructions(text):
        if name == 'FROM':
            base, stage = re.fullmatch(r'(\S+) AS (\S+)', arguments).groups()
            found[stage] = (base, [])
        elif found:
            found[list(found)[-1]][1].append((name, arguments))
    return found


def seconds(text):
    return int(re.fullmatch(r'(\d+)s', text)[1])


class DockerfileTest(unittest.TestCase):

    def setUp(self):
        self.stages = stages(DOCKERFILE.read_text())

    def whole(self, stage):
        """Returns the instructions of a stage. The instructions of the stages on which it is based
        come first."""
        base, own = self.stages[stage]
        return (self.whole(base) if base in self.stages else [('FROM', base)]) + own

    def only(self, stage, name):
        """Returns the arguments of the instruction `name`. There must be exactly one."""
        [arguments] = [arguments for each, arguments in self.whole(stage) if each == name]
        return arguments

    def test_images_hold_nothing_but_what_was_staged(self):
        self.assertEqual(list(self.stages)[-1], 'cpu')  # The last stage is the default target.
        for stage in ('cpu', 'cuda'):
            self.assertEqual(self.only(stage, 'FROM'), 'scratch')
            copies = [arguments for name, arguments in self.whole(stage) if name == 'COPY']
            self.assertEqual(copies, [f'--from=build-{stage} /stage /', 'models /models'])
            self.assertNotIn('RUN', dict(self.whole(stage)))  # The image has no shell.

    def test_images_run_as_nobody_and_get_signals(self):
        for stage in ('cpu', 'cuda'):
            self.assertEqual(self.only(stage, 'USER'), '65532:65532')
            self.assertEqual(self.only(stage, 'STOPSIGNAL'), 'SIGTERM')
            for name in ('ENTRYPOINT', 'CMD'):  # Their exec form is a JSON list.
                self.assertIsInstance(json.loads(self.only(stage, name)), list)
            self.assertIn('org.opencontainers.image.revision', self.only(stage, 'LABEL'))

    def test_the_machine_is_set_up_before_the_sources_come(self):
        names = [arguments for name, arguments in self.whole('build-cpu')
                 if name in ('COPY', 'RUN')]
        self.assertEqual(names[:3], ['deploy/setup.sh deploy/', 'deploy/setup.sh', '. .'])
        self.assertIn(('RUN', 'deploy/setup.sh --cuda --cuda-runtime'), self.whole('build-cuda'))
        self.assertIn('--config=cuda', self.whole('build-cuda')[-1][1])

    def test_bases_are_stages_or_named(self):
        for stage, (base, _) in self.stages.items():
            self.assertIn(base, [*self.stages, '${BASE}', 'scratch'], stage)

    def test_the_base_is_one_image_and_not_what_a_tag_means_today(self):
        [base] = [arguments for name, arguments in instructions(DOCKERFILE.read_text())
                  if name == 'ARG' and arguments.startswith('BASE=')]
        self.assertRegex(base, r'^BASE=debian(:bookworm-\d{8}-slim|@sha256:[0-9a-f]{64})$')

    def test_images_hold_a_list_of_what_is_in_them(self):
        for stage in ('build-cpu', 'build-cuda'):
            command = self.stages[stage][1][-1][1]
            self.assertIn('deploy/sbom.py /stage --add models=models', command)
            self.assertLess(command.index('stage.sh'), command.index('sbom.py'))

    def test_the_context_holds_what_is_copied(self):
        rules = [line[1:] for line in pathlib.Path('.dockerignore').read_text().splitlines()
                 if line.startswith('!')]
        needed = ['base', 'bazel', 'client', 'kernels', 'model', 'models', 'proto', 'server',
                  'third_party', 'deploy/setup.sh', 'deploy/stage.sh', 'deploy/sbom.py',
                  'deploy/cuda-runtime.txt', 'tools/workspace_status.sh', 'WORKSPACE', 'BUILD',
                  '.bazelrc']
        self.assertEqual(sorted(rules), sorted(needed))
        for ignored in ('.git', '.deps', 'tests', 'out', 'bazel-bin'):
            self.assertFalse([rule for rule in rules if fnmatch.fnmatch(ignored, rule)])

    def test_the_server_accepts_its_command(self):
        command = json.loads(self.only('cpu', 'ENTRYPOINT')) + json.loads(self.only('cpu', 'CMD'))
        self.assertEqual(command[0], '/usr/bin/sfmamba_server')
        done = subprocess.run([SERVER, *command[1:], '--print_effective_config'],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('host: "0.0.0.0"', done.stdout)
        ports = re.findall(r'^(?:metrics_|http_)?port: (\d+)', done.stdout, re.M)
        self.assertEqual(sorted(ports), self.only('cpu', 'EXPOSE').split())

    def test_the_client_accepts_the_health_check(self):
        check = self.only('cpu', 'HEALTHCHECK')
        command = json.loads(check[check.index('CMD ') + 4:])
        self.assertEqual(command[0], '/usr/bin/sfmamba')
        [server] = [part for part in command if part.startswith('--server=')]
        _, grpc_port, _ = self.only('cpu', 'EXPOSE').split()  # HTTP, gRPC and metrics.
        self.assertEqual(server, f'--server=127.0.0.1:{grpc_port}')
        # Nothing listens on port 1, so the client must exit with 1 (failed call). It would exit
        # with 2 if it did not accept its arguments.
        done = subprocess.run([CLIENT, *command[1:], '--server=127.0.0.1:1'],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1, done.stderr)


class StageTest(unittest.TestCase):

    def test_what_is_staged_loads_without_the_machine(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(['deploy/stage.sh', folder, SERVER, CLIENT],
                                  capture_output=True, text=True, timeout=240)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stdout, r'MB  usr/lib/x86_64-linux-gnu/libtorch_cpu.so')
            libraries = f'{folder}/usr/lib/x86_64-linux-gnu'
            loader = [f'{folder}/lib64/ld-linux-x86-64.so.2', '--inhibit-cache',
                      '--library-path', libraries]
            for program in ('sfmamba_server', 'sfmamba'):
                listed = subprocess.run([*loader, '--list', f'{folder}/usr/bin/{program}'],
                                        capture_output=True, text=True, timeout=60)
                self.assertEqual(listed.returncode, 0, listed.stderr)
                paths = re.findall(r'=> (\S+)', listed.stdout)
                self.assertGreater(len(paths), 20)
                elsewhere = [path for path in paths if not path.startswith(folder)]
                self.assertEqual(elsewhere, [])
            # Without OMP_WAIT_POLICY, the server would set a variable and execute /proc/self/exe
            # again. In this test, /proc/self/exe is the loader and not the server.
            told = subprocess.run([*loader, f'{folder}/usr/bin/sfmamba_server', '--help'],
                                  capture_output=True, text=True, timeout=60,
                                  env={'OMP_WAIT_POLICY': 'passive'})
            self.assertIn('--model_repository', told.stdout)
            contents = pathlib.Path(folder, 'usr/share/sfmamba/contents.tsv').read_text()
            for place in ('tmp', 'var/cache/sfmamba'):  # The user of the image may write there.
                self.assertEqual(pathlib.Path(folder, place).stat().st_mode & 0o7777, 0o1777)
            listed = {line.split('\t')[0] for line in contents.splitlines()}
            files = {os.path.relpath(os.path.join(place, name), folder)
                     for place, _, names in os.walk(folder) for name in names}
            self.assertEqual(files - listed,
                             {'etc/passwd', 'etc/group', 'etc/nsswitch.conf',
                              'usr/share/sfmamba/contents.tsv'})
            self.assertRegex(contents, r'libgrpc\.so\.29\t\d+\tlibgrpc29\t1\.51')

    def test_what_is_not_there_is_said(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(['deploy/stage.sh', folder, 'server/nothing'],
                                  capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn('server/nothing is not there', done.stderr)


class ComposeTest(unittest.TestCase):

    def setUp(self):
        self.compose = yaml.safe_load(COMPOSE.read_text())
        self.services = self.compose['services']
        profile = pathlib.Path('deploy/.env').read_text()
        self.default = re.search(r'^COMPOSE_PROFILES=(\w+)$', profile, re.M)[1]

    def test_it_is_valid(self):
        schema = json.loads(pathlib.Path('external/schemas/compose.json').read_text())
        jsonschema.Draft7Validator(schema).validate(self.compose)
        with self.assertRaises(jsonschema.ValidationError):
            self.services['grafana']['port'] = ['3000']
            jsonschema.Draft7Validator(schema).validate(self.compose)

    def test_each_profile_has_one_server_that_prometheus_finds(self):
        prometheus = yaml.safe_load(pathlib.Path('deploy/prometheus/prometheus.yml').read_text())
        [job] = prometheus['scrape_configs']
        [target] = job['static_configs'][0]['targets']
        by_profile = {}
        for service in self.services.values():
            for profile in service.get('profiles', []):
                by_profile.setdefault(profile, []).append(service)
        self.assertEqual(by_profile.pop('edge'), [self.services['envoy']])
        self.assertEqual(sorted(by_profile), ['cpu', 'gpu'])
        self.assertEqual(self.default, 'cpu')
        for [service] in by_profile.values():
            self.assertEqual(service['networks']['default']['aliases'] + ['8002'],
                             target.split(':'))
            self.assertTrue(service['read_only'])
            self.assertEqual(service['cap_drop'], ['ALL'])
            # The default drain_delay is 5 s and the default drain_timeout is 25 s. After them, the
            # server must have more than 3 s to exit.
            self.assertGreater(seconds(service['stop_grace_period']), 5 + 25 + 3)

    def test_the_gpu_profile_does_not_serve_on_the_cpu(self):
        self.assertIn('--device=cuda', self.services['server-gpu']['command'])
        self.assertNotIn('--device=cuda', self.services['server-cpu']['command'])
        # The command in compose.yaml replaces CMD of the image. It must therefore repeat the
        # argument of CMD.
        [command] = re.findall(r'^CMD \["(--model_repository.*)"\]$', DOCKERFILE.read_text(), re.M)
        for server in ('server-cpu', 'server-gpu'):
            self.assertIn(command, self.services[server]['command'])

    def test_servers_take_the_clients_address_from_envoy_alone(self):
        address = self.services['envoy']['networks']['default']['ipv4_address']
        for server in ('server-cpu', 'server-gpu'):
            self.assertIn(f'--trusted_proxies={address}/32', self.services[server]['command'])

    def test_what_a_gpu_took_long_to_measure_is_kept(self):
        command = ' '.join(self.services['server-gpu']['command'])
        mounts = dict(volume.split(':')[:2] for volume in self.services['server-gpu']['volumes'])
        self.assertIn(f'--fold_table={mounts["measured"]}/', command)
        # The engine gives a new volume the permissions of the image's folder at the mount point.
        # stage.sh must therefore create this folder.
        self.assertIn(mounts['measured'].lstrip('/'), pathlib.Path('deploy/stage.sh').read_text())
        self.assertIn('measured', self.compose['volumes'])

    def test_what_is_of_others_is_pinned(self):
        for name, service in self.services.items():
            if 'build' not in service:
                self.assertRegex(service['image'], r':v?\d+\.\d+\.\d+$|@sha256:[0-9a-f]{64}$', name)

    def test_prometheus_tells_alertmanager(self):
        prometheus = yaml.safe_load(pathlib.Path('deploy/prometheus/prometheus.yml').read_text())
        [manager] = prometheus['alerting']['alertmanagers']
        self.assertEqual(manager['static_configs'], [{'targets': ['alertmanager:9093']}])
        service = self.services['alertmanager']
        self.assertIn('127.0.0.1:9093:9093', service['ports'])
        self.assertIn('./alertmanager:/etc/alertmanager:ro', service['volumes'])

    def test_targets_are_stages_of_the_dockerfile(self):
        known = stages(DOCKERFILE.read_text())
        for service in self.services.values():
            if 'build' in service:
                self.assertIn(service['build']['target'], known)
                self.assertEqual(service['build']['dockerfile'], str(DOCKERFILE))

    def test_what_is_mounted_is_there_and_read_only(self):
        for name, service in self.services.items():
            for volume in service['volumes']:
                source, _, *options = volume.split(':')
                if source.startswith('.') and source != '../models':  # The test has no ../models.
                    self.assertTrue((COMPOSE.parent / source).exists(), source)
                if source.startswith('.'):
                    self.assertEqual(options, ['ro'], f'{name}: {volume}')
                else:
                    self.assertIn(source, self.compose['volumes'])

    def test_only_this_machine_is_listened_on(self):
        for name, service in self.services.items():
            for port in service['ports']:
                self.assertTrue(port.startswith('127.0.0.1:'), f'{name}: {port}')
