"""The component that gives the server a certificate and tokens."""

import pathlib
import subprocess
import tempfile
import unittest

import yaml
from kubernetes_test import VERSIONS, named, validate, with_components

COMPONENT = pathlib.Path('deploy/kubernetes/components/tls')


class TlsComponentTest(unittest.TestCase):
    def setUp(self):
        self.resources = with_components('models-volume', 'tls')
        self.pod = named(self.resources, 'Deployment')['spec']['template']['spec']
        [self.container] = self.pod['containers']
        self.flags = dict(argument.removeprefix('--').replace('$(CPUS)', '2').split('=', 1)
                          for argument in self.container['args'])

    def test_every_resource_is_valid(self):
        for resource in self.resources:
            for version in VERSIONS:
                with self.subTest(kind=resource['kind'], version=version):
                    validate(resource, version)

    def test_the_files_are_in_secrets_that_are_mounted_as_folders(self):
        mounts = {mount['mountPath']: mount for mount in self.container['volumeMounts']}
        volumes = {volume['name']: volume for volume in self.pod['volumes']}
        self.assertEqual({mount['name'] for mount in mounts.values()}, set(volumes))
        for flag, secret, file in [('tls_cert_file', 'sfmamba-tls', 'tls.crt'),
                                   ('tls_key_file', 'sfmamba-tls', 'tls.key'),
                                   ('token_file', 'sfmamba-tokens', 'tokens.textproto')]:
            with self.subTest(flag=flag):
                path = pathlib.PurePosixPath(self.flags[flag])
                self.assertEqual(path.name, file)
                mount = mounts[str(path.parent)]
                self.assertNotIn('subPath', mount)
                self.assertTrue(mount['readOnly'])
                self.assertEqual(volumes[mount['name']]['secret'],
                                 {'secretName': secret, 'defaultMode': 0o440})
        self.assertEqual(self.pod['securityContext']['fsGroup'],
                         self.pod['securityContext']['runAsGroup'])

    def test_probes_ask_the_port_that_speaks_in_clear(self):
        ports = {port['name']: port['containerPort'] for port in self.container['ports']}
        self.assertEqual(len(set(ports.values())), len(ports))
        for probe in ('startupProbe', 'readinessProbe', 'livenessProbe'):
            self.assertEqual(self.container[probe]['grpc']['port'], ports['health'], probe)

    def test_proxies_know_that_the_ports_speak_tls(self):
        for service in (one for one in self.resources if one['kind'] == 'Service'):
            protocols = {port['name']: port.get('appProtocol')
                         for port in service['spec']['ports']}
            self.assertEqual((protocols['grpc'], protocols['http']), (None, 'https'))
            self.assertIsNone(protocols.get('metrics'))

    def test_the_server_knows_the_flags(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                ['server/sfmamba_server', f'--model_repository={folder}', '--validate_config',
                 *(f'--{name}={value}' for name, value in self.flags.items() if name != 'config')],
                capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_it_says_what_it_needs(self):
        text = (COMPONENT / 'kustomization.yaml').read_text()
        needed = {volume['secret']['secretName'] for volume in self.pod['volumes']
                  if 'secret' in volume}
        for secret in needed:
            self.assertIn(secret, text)
        self.assertEqual(yaml.safe_load(text)['kind'], 'Component')


if __name__ == '__main__':
    unittest.main()
