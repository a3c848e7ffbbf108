"""Two servers of unequal speed behind balancers that read their load reports."""

import json
import time
import unittest

import fleet
import grpc

DEADLINE = 2  # Seconds.
SETTLE = 12  # Seconds until the shares have settled.
MEASURE = 5  # Seconds.
CALLERS = 32  # For each server, so that neither runs dry while shares move.

WEIGHTED = json.dumps({'loadBalancingConfig': [
    {'weighted_round_robin': {'blackoutPeriod': '1s', 'weightUpdatePeriod': '0.5s'}}]})


def goodput(call, callers, settle):
    """Calls a second that are answered by their deadline, while as many callers wait for one."""
    with fleet.Load(call, callers, period=0) as load:
        time.sleep(settle)
        before, begin = load.answered, time.monotonic()
        time.sleep(MEASURE)
        return (load.answered - before) / (time.monotonic() - begin)


class WeightsTest(unittest.TestCase):
    def setUp(self):
        self.replicas = [fleet.Replica(self, milliseconds=milliseconds, max_batch_size=4).start()
                         for milliseconds in (20, 60)]
        self.alone = [goodput(self.call(replica.address), CALLERS, 1)
                      for replica in self.replicas]

    def call(self, target, service_config='{}'):
        channel = grpc.insecure_channel(target, [('grpc.service_config', service_config),
                                                 ('grpc.use_local_subchannel_pool', 1)])
        self.addCleanup(channel.close)
        return fleet.plain_call(channel, DEADLINE)

    def check(self, how, call):
        together = goodput(call, 2 * CALLERS, SETTLE)
        part = together / sum(self.alone)
        print(f'{how}: alone {self.alone[0]:.0f} and {self.alone[1]:.0f} calls/s, together '
              f'{together:.0f}, {part:.1%} of the sum')
        return part

    def target(self):
        return 'ipv4:' + ','.join(replica.address for replica in self.replicas)

    def test_grpcs_weighted_round_robin(self):
        self.assertGreaterEqual(self.check('gRPC', self.call(self.target(), WEIGHTED)), 0.95)

    def test_envoys_weighted_round_robin(self):
        if not fleet.Envoy.is_installed():
            self.skipTest('Envoy is not on the PATH')
        envoy = fleet.Envoy(self, self.replicas, weighted=True)
        self.assertGreaterEqual(self.check('Envoy', self.call(envoy.address)), 0.95)


if __name__ == '__main__':
    unittest.main()
