"""Tests sfmamba.ray on a cluster of two nodes on this machine, one of which is killed."""

import concurrent.futures
import os
import sys
import unittest

import batch_testing
import ray
import sfmamba.ray
from batch_testing import add_pictures, folder, wait_until
from ray.cluster_utils import Cluster

PICTURES = 200
# The program of a server's process. start_servers() appends its arguments.
SERVER = """
import sys, threading
sys.path.insert(0, sys.argv[1])
from batch_testing import BatchServer
BatchServer(port=int(sys.argv[3].partition('=')[2]))
threading.Event().wait()
"""


class RayTest(unittest.TestCase):
    def setUp(self):
        # Ray's workers must find the same modules as this process.
        os.environ['PYTHONPATH'] = os.pathsep.join(path for path in sys.path if path)
        self.addCleanup(os.environ.pop, 'PYTHONPATH')
        self.cluster = Cluster(initialize_head=True, head_node_args=self.node(2))
        self.second = self.cluster.add_node(**self.node(1))
        ray.init(address=self.cluster.address, log_to_driver=False)
        self.addCleanup(self.cluster.shutdown)
        self.addCleanup(ray.shutdown)
        self.photos = folder(self) / 'photos'
        add_pictures(self.photos, PICTURES, bad=[5])

    @staticmethod
    def node(cpus):
        """Returns the arguments of a node that has room for one actor."""
        return {'num_cpus': cpus, 'resources': {'caller': 1}, 'object_store_memory': 100 << 20,
                'include_dashboard': False}

    def rows(self, servers, callers):
        """Returns the rows of the dataset by file name."""
        pictures = ray.data.read_binary_files(str(self.photos), include_paths=True,
                                              override_num_blocks=20)
        answers = pictures.map_batches(
            sfmamba.ray.Predictor, batch_format='pyarrow', batch_size=10, concurrency=callers,
            num_cpus=0, resources={'caller': 1},
            fn_constructor_kwargs={'servers': servers, 'model': 'fake'})
        rows = answers.take_all()
        self.assertEqual(len(rows), PICTURES)
        return {os.path.basename(row['path']): row for row in rows}

    def assert_complete(self, rows):
        self.assertEqual(sorted(rows), [f'{number:05}.jpg' for number in range(PICTURES)])
        self.assertEqual({name: row['reason'] for name, row in rows.items() if row['reason']},
                         {'00005.jpg': 'IMAGE_DECODE_FAILED'})
        self.assertNotIn('bytes', rows['00000.jpg'])
        self.assertEqual(len(rows['00000.jpg']['labels']), 2)

    def test_a_node_that_is_killed_loses_no_row(self):
        servers = [batch_testing.server(self) for _ in range(2)]
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            rows = pool.submit(self.rows, [one.address for one in servers], 2)
            wait_until(lambda: sum(len(one.asked) for one in servers) >= 30)
            self.cluster.remove_node(self.second, allow_graceful=False)
            self.cluster.add_node(**self.node(1))
            self.assert_complete(rows.result())

    def test_callers_ask_the_server_of_their_own_node(self):
        command = [sys.executable, '-c', SERVER, os.path.dirname(os.path.abspath(__file__))]
        servers = sfmamba.ray.start_servers(command, num_gpus=0)
        self.assertEqual(len(set(servers.addresses.values())), 2)
        self.assert_complete(self.rows(servers.addresses, 2))


if __name__ == '__main__':
    unittest.main()
