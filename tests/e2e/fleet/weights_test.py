"""Tests balancers that read load reports, on two servers of unequal speed."""

import json
import time
import unittest

import fleet
import grpc

DEADLINE = 2  # The deadline of a call in seconds.
SETTLE = 14  # How long the weights take to settle, in seconds.
MEASURE = 6  # How long the rates are measured, in seconds.
# The least fraction of both servers' capacity that must be used. It is lower than the fractions in
# docs/front-door.md, because the test may run on a busy machine. If the balancer ignores the
# reports, only about half of the capacity is used.
LEAST = 0.85
CALLERS = 32  # The callers per server. They are enough to keep it busy while weights change.

WEIGHTED = json.dumps({'loadBalancingConfig': [
    {'weighted_round_robin': {'blackoutPeriod': '1s', 'weightUpdatePeriod': '0.5s'}}]})


def goodput(call, callers, settle):
    """Returns the rate of answered calls, in calls per second, of `callers` concurrent callers."""
    with fleet.Load(call, callers, period=0) as load:
        time.sleep(settle)
        before, begin = load.answered, time.monotonic()
        time.sleep(MEASURE)
        return (load.answered - before) / (time.monotonic() - begin)


def call(test, target, service_config='{}'):
    channel = grpc.insecure_channel(target, [('grpc.service_config', service_config),
                                             ('grpc.use_local_subchannel_pool', 1)])
    test.addCleanup(channel.close)
    return fleet.plain_call(channel, DEADLINE)


class WeightsTest(unittest.TestCase):
    def start(self, *flags):
        self.replicas = [
            fleet.Replica(self, *flags, milliseconds=milliseconds, max_batch_size=4).start()
            for milliseconds in (20, 60)]
        self.target = 'ipv4:' + ','.join(replica.address for replica in self.replicas)

    def part(self, how, together, settle):
        """Returns the rate of both servers together as a fraction of the sum of their separate
        rates.
        """
        alone = [goodput(call(self, replica.address), CALLERS, 1) for replica in self.replicas]
        both = goodput(together, 2 * CALLERS, settle)
        part = both / sum(alone)
        print(f'{how}: alone {alone[0]:.0f} and {alone[1]:.0f} calls/s, together {both:.0f}, '
              f'{part:.1%} of the sum', flush=True)
        return part

    def test_grpcs_weighted_round_robin(self):
        self.start()
        self.assertGreaterEqual(self.part('gRPC', call(self, self.target, WEIGHTED), SETTLE), LEAST)

    def test_envoys_weighted_round_robin(self):
        if not fleet.Envoy.is_installed():
            self.skipTest('Envoy is not on the PATH')
        self.start()
        envoy = fleet.Envoy(self, self.replicas, weighted=True)
        self.assertGreaterEqual(self.part('Envoy', call(self, envoy.address), SETTLE), LEAST)

    def test_without_reports_the_slower_server_holds_up_both(self):
        self.start('--load_reports=false')
        self.assertLess(self.part('no reports', call(self, self.target, WEIGHTED), 3), 0.75)


if __name__ == '__main__':
    unittest.main()
