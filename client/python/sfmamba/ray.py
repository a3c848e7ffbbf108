"""Runs a model over a data set in Ray Data. docs/batch.md, "Ray", has recipes.

  pictures = ray.data.read_binary_files('photos/', include_paths=True)
  rows = pictures.map_batches(sfmamba.ray.Predictor, batch_format='pyarrow', concurrency=4,
                              fn_constructor_kwargs={'servers': ['gpu1:8001', 'gpu2:8001'],
                                                     'model': 'photographs'})
"""

import ctypes
import dataclasses
import signal
import socket
import subprocess
import time
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

import pyarrow as pa
import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from .batch.asking import Rows
from .batch.servers import Access
from .client import Client

_START = 300.0  # Seconds in which a server must load its models.
_PR_SET_PDEATHSIG = 1


class Predictor:
    """A callable class for Dataset.map_batches(..., batch_format='pyarrow'). Each actor has its own
    client for all servers.

    It appends the columns of docs/batch.md, "Rows", to a batch. A picture that fails has a reason
    and a message. If the image column contains bytes, it is dropped. If it contains paths, it
    stays.
    """

    def __init__(self, servers: Union[Sequence[str], Mapping[str, str]], task: str = 'classify',
                 model: str = '', image_column: str = 'bytes', access: Optional[Access] = None,
                 resize: bool = False, **parameters: Any) -> None:
        """Connects. Raises JobError if no server can be reached.

        Args:
          servers: addresses, or the dictionary NodeServers.addresses. If it is the dictionary, an
            actor uses only the server of its own node. If its node has no server, the actor uses
            all servers.
          task: 'classify', 'detect' or 'segment'.
          model: name of the model. '': the servers' only or default one.
          image_column: contains paths or the bytes of files.
          access: TLS and tokens.
          resize: whether the client resizes pictures to a classifier's input.
          **parameters: parameters of the client's method that `task` names.
        """
        if isinstance(servers, Mapping):
            node = ray.get_runtime_context().get_node_id()
            servers = [servers[node]] if node in servers else list(servers.values())
        self._image_column = image_column
        self._rows = Rows(task, servers, model, access, resize, **parameters)

    def __call__(self, batch: pa.Table) -> pa.Table:
        images = batch.column(self._image_column)
        rows = self._rows(images.to_pylist())
        if not pa.types.is_string(images.type) and not pa.types.is_large_string(images.type):
            batch = batch.drop_columns([self._image_column])
        for field in self._rows.task.answer_fields:
            batch = batch.append_column(field, pa.array([row[field.name] for row in rows],
                                                        field.type))
        return batch


class _Server:
    """An actor that runs a server's process on its node."""

    def __init__(self, command: Sequence[str]) -> None:
        with socket.create_server(('127.0.0.1', 0)) as free:
            self._address = f'127.0.0.1:{free.getsockname()[1]}'
        self._process = subprocess.Popen(
            [*command, '--host=127.0.0.1', f'--port={self._address.rpartition(":")[2]}'],
            # Makes the kernel kill the server when the actor's process ends. Ray may kill the
            # actor, so the actor cannot always end the server itself.
            preexec_fn=lambda: ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL))

    def address(self) -> str:
        """Waits until the server serves. Returns its address for callers on this node."""
        end = time.monotonic() + _START
        with Client(self._address) as client:
            while True:
                if self._process.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(f'the server has not started: {self._process.args!r} ended '
                                       f'with {self._process.poll()}')
                try:
                    if client.health():
                        return self._address
                except Exception:  # It does not listen yet.
                    pass
                time.sleep(0.2)


@dataclasses.dataclass
class NodeServers:
    """One server on each node, for the callers on the same node. The servers end when this object
    is deleted.

    Attributes:
      addresses: the server's address on each node, by node ID. Pass it to Predictor as `servers`.
    """

    addresses: Dict[str, str]
    _actors: List[Any]


def start_servers(command: Sequence[str], num_gpus: float = 1.0) -> NodeServers:
    """Starts a server on each living node that has enough GPUs, on the node's loopback address.

    Args:
      command: the server's command without host and port, such as ['sfmamba_server',
        '--model_repository=models', '--http_port=-1', '--metrics_port=0'].
      num_gpus: number of GPUs that each server takes. 0: servers run on CPUs, on every node.
    """
    nodes = [node['NodeID'] for node in ray.nodes()
             if node['Alive'] and node['Resources'].get('GPU', 0) >= num_gpus]
    actors = [ray.remote(_Server).options(
        num_cpus=0, num_gpus=num_gpus,
        scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False)).remote(list(command))
              for node in nodes]
    addresses = ray.get([actor.address.remote() for actor in actors])
    return NodeServers(dict(zip(nodes, addresses)), actors)
