"""Tests clients while the real server is stopped and started again."""

import json
import pathlib
import shutil
import socket
import subprocess
import tempfile
import threading
import unittest

import grpc

import sfmamba
from sfmamba import _messages

RENDERS = [f'client/samples/render_0{number}.jpg' for number in range(1, 7)]
PATIENCE = 60  # The time limit of each wait, in seconds.


class Server:
    """Runs the real server with the model "everyday", on one port until the test ends."""

    def __init__(self, test, *flags):
        folder = tempfile.TemporaryDirectory()
        test.addCleanup(folder.cleanup)
        shutil.copytree('models/everyday', pathlib.Path(folder.name, 'everyday'))
        with socket.create_server(('127.0.0.1', 0)) as free:
            port = free.getsockname()[1]
        self.address = f'127.0.0.1:{port}'
        self._command = ['server/sfmamba_server', f'--model_repository={folder.name}',
                         '--host=127.0.0.1', f'--port={port}', '--http_port=-1',
                         '--metrics_port=0', *flags]
        self.start()
        test.addCleanup(lambda: self.stop(kill=True))

    def start(self):
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE,
                                         stderr=subprocess.STDOUT, text=True)
        for line in self._process.stdout:
            if '"msg":"serving"' in line:
                break
        else:
            raise RuntimeError('the server has ended')
        threading.Thread(target=self._process.stdout.read, daemon=True).start()

    def stop(self, kill=False):
        self.signal(kill)
        self._process.wait(PATIENCE)

    def signal(self, kill=False):
        self._process.kill() if kill else self._process.terminate()


def restart(server, answers, kill=False):
    """Yields the `answers`. Stops the server after 20 of them and starts it again."""
    for number, answer in enumerate(answers):
        if number == 20:
            server.stop(kill)
            threading.Timer(0.5, server.start).start()
        yield answer


class RestartTest(unittest.TestCase):
    maxDiff = None

    def test_the_command_sends_again_what_is_not_answered(self):
        for kill in (False, True):
            server = Server(self, '--drain_delay=0s')
            client = subprocess.Popen(
                ['client/sfmamba', 'stream', '-', '--ordered', f'--server={server.address}'],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            names = RENDERS * 10
            threading.Thread(target=self.write, args=(client.stdin, names)).start()
            lines = [json.loads(line) for line in restart(server, client.stdout, kill)]
            client.stdout.close()
            self.assertEqual(client.wait(PATIENCE), 0)
            self.assertEqual([line['file'] for line in lines], names)
            self.assertTrue(all('classify' in line for line in lines))

    @staticmethod
    def write(pipe, names):
        pipe.write('\n'.join(names))
        pipe.close()

    def test_the_python_client_loses_no_picture(self):
        server = Server(self, '--drain_delay=0s')
        with sfmamba.Client(server.address) as client:
            pictures = RENDERS * 10
            for kill in (False, True):
                stream = client.stream(client.classify, pictures, in_flight=32)
                answers = list(restart(server, stream, kill))
                self.assertEqual([picture for picture, _ in answers], pictures)
                self.assertEqual([str(answer) for _, answer in answers
                                  if isinstance(answer, Exception)], [])
                answers = list(restart(server, client.map(client.classify, pictures, in_flight=32),
                                       kill))
                self.assertEqual([type(answer) for answer in answers],
                                 [sfmamba.Classification] * len(pictures))

    def test_a_server_that_drains_answers_those_who_ask_it_alone(self):
        server = Server(self, '--drain_delay=20s')
        server.signal()
        picture = RENDERS[0]
        subprocess.run(['client/sfmamba', 'classify', picture, f'--server={server.address}'],
                       check=True, stdout=subprocess.PIPE)
        with sfmamba.Client(server.address) as client:
            client.classify(picture)
            self.assertFalse(client.health())

    # A regression test. With a pushback of 0, gRPC did not retry and the call waited until its
    # deadline.
    def test_grpcs_own_retries_are_not_held_up(self):
        server = Server(self, '--drain_delay=0s')
        policy = {'maxAttempts': 5, 'initialBackoff': '0.01s', 'maxBackoff': '0.1s',
                  'backoffMultiplier': 2, 'retryableStatusCodes': ['UNAVAILABLE']}
        config = {'methodConfig': [{'name': [{}], 'retryPolicy': policy}]}
        with grpc.insecure_channel(
                server.address, [('grpc.service_config', json.dumps(config))]) as channel:
            classify = channel.unary_unary(
                '/sfmamba.v1.VisionService/Classify',
                request_serializer=lambda request: request.SerializeToString(),
                response_deserializer=_messages.ClassifyResponse.FromString)
            request = _messages.ClassifyRequest(
                images=[{'encoded': pathlib.Path(RENDERS[0]).read_bytes()}])
            classify(request, timeout=PATIENCE)
            server.signal()
            with self.assertRaises(grpc.RpcError) as raised:
                while True:
                    classify(request, timeout=PATIENCE)
        # If the server's GOAWAY and a new call cross on the way, gRPC cancels the call.
        self.assertIn(raised.exception.code(),
                      (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED))


if __name__ == '__main__':
    unittest.main()
