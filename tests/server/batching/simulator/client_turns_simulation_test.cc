// Tests the device time that ClientTurns gives each client, over 20 seeds.

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/batching/simulator/scenarios.h"
#include "tests/server/batching/simulator/simulator.h"
#include "tests/server/batching/simulator/trace.h"

namespace sfmamba::batching {
namespace {

using ::testing::IsEmpty;
using ::testing::Range;
using ::testing::Values;

constexpr int kSeeds = 20;

SimulationResult RunToEnd(const SimulationOptions& options,
                          const std::vector<SimulatedRequest>& trace) {
  const SimulationResult result = Simulate(options, trace);
  EXPECT_THAT(result.errors, IsEmpty());
  EXPECT_EQ(result.left, 0);
  EXPECT_EQ(result.refused + result.dropped + result.late + result.in_time,
            result.offered);
  return result;
}

SimulatedModel Model(int max_batch_size) {
  SimulatedModel model;
  model.options.max_batch_size = max_batch_size;
  model.options.max_queue_items = 8192;
  model.cost = [](const BatchKey&, int images) {
    return absl::Milliseconds(10 + 20 * images);
  };
  return model;
}

// Each flooder sends one image after another. The caller, another client, also
// sends one image at a time, with a deadline of 10 s. The caller pauses between
// two images for longer than one round of all clients. Its turn is therefore
// due when it comes back.
struct Flood {
  int batch = 1;
  int flooders = 8;
  absl::Duration deadline;  // The deadline of the flooders.
  bool is_new_each_time = false;
  server::Priority priority = server::Priority::kNormal;
};

class StarvationTest : public ::testing::TestWithParam<int> {
 protected:
  // Returns the results of the caller. The caller has priority NORMAL.
  ClientResult Caller(const Flood& flood) {
    std::mt19937 random(GetParam());
    std::uniform_real_distribution<double> part(0, 1);
    SimulationOptions options;
    options.models = {Model(flood.batch)};
    options.noise = 0.05;
    options.seed = GetParam();
    options.admits = false;
    std::vector<SimulatedRequest> trace;
    for (int i = 0; i < flood.flooders; ++i) {
      SimulatedRequest request;
      request.at = absl::Milliseconds(50 * part(random));
      request.key = {224, 224};
      request.deadline = flood.deadline;
      request.priority = flood.priority;
      request.client = absl::StrCat("flooder ", i);
      request.again = absl::Milliseconds(2);
      request.until = absl::Minutes(1);
      request.is_new_each_time = flood.is_new_each_time;
      trace.push_back(request);
    }
    SimulatedRequest request;
    request.at = absl::Seconds(1);
    request.key = {224, 224};
    request.deadline = absl::Seconds(10);
    request.client = "caller";
    request.again = absl::Milliseconds(1200);
    request.until = absl::Minutes(1);
    trace.push_back(request);
    return RunToEnd(options, trace).clients.at("caller");
  }
};

// With n clients, the caller waits for at most n + 2 batches. The clients are
// the flooders and the caller itself.
TEST_P(StarvationTest, ACallerWaitsForItsTurnOnlyWhateverOthersClaim) {
  for (const auto& [batch, flooders] : {std::pair(1, 8), {1, 32}, {8, 32}}) {
    for (const double deadline : {0.5, 1.5, 30.0}) {
      for (const bool is_new : {false, true}) {
        const ClientResult caller =
            Caller({batch, flooders, absl::Seconds(deadline), is_new});
        EXPECT_EQ(caller.in_time, caller.offered);
        const double batches = absl::FDivDuration(caller.longest_wait,
                                                  Model(batch).cost({}, batch));
        EXPECT_LE(batches, flooders + 1 + 2)
            << batch << ", " << flooders << ", " << deadline << ", " << is_new;
      }
    }
  }
}

// The caller is the only client of class NORMAL. If no other class waited, the
// caller would wait for at most 1 + 2 batches. The flooders have class HIGH.
// The classes share the device in the ratio 8 to 3, so NORMAL gets 3/11 of the
// time. The caller's wait may therefore be 11/3 times as long.
TEST_P(StarvationTest, AFloodOfAHigherClassDelaysByItsShare) {
  for (const bool is_new : {false, true}) {
    const ClientResult caller =
        Caller({1, 8, absl::Seconds(1.5), is_new, server::Priority::kHigh});
    EXPECT_EQ(caller.in_time, caller.offered);
    EXPECT_LE(caller.longest_wait,
              (1 + 2) * Model(1).cost({}, 1) * (8 + 3) / 3.0);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, StarvationTest, Range(1, kSeeds + 1));

// The parameters are the load, the deadline and the number of clients. The load
// is a multiple of the capacity. The deadline is a multiple of the duration of
// a full batch.
class GoodputTest
    : public ::testing::TestWithParam<std::tuple<double, int, int>> {};

// Compares the goodput of several clients with the goodput of one client that
// sends the same images. The images of one client run in the order of their
// deadlines, which is the policy EDF (earliest deadline first).
TEST_P(GoodputTest, IsThatOfTheEarliestDeadlineFirst) {
  const auto [load, batches, clients] = GetParam();
  Scenario scenario = CpuClassifier(batches);
  scenario.length /= 3;
  double turns = 0, reference = 0;
  int lost_in_queue = 0, reference_lost = 0, admitted = 0;
  for (uint32_t seed = 1; seed <= kSeeds; ++seed) {
    scenario.kinds[0].clients = clients;
    const std::vector<SimulatedRequest> trace =
        TraceOf(scenario, Arrivals::kPoisson, load, seed);
    std::vector<SimulatedRequest> of_one = trace;
    for (SimulatedRequest& request : of_one) request.client = "one";
    const double all =
        kSeeds * scenario.capacity * absl::ToDoubleSeconds(scenario.length);
    const SimulationResult result = RunToEnd(scenario.options, trace);
    turns += result.in_time / all;
    lost_in_queue += result.dropped + result.late;
    admitted += result.offered - result.refused;
    const SimulationResult edf = RunToEnd(scenario.options, of_one);
    reference += edf.in_time / all;
    reference_lost += edf.dropped + edf.late;
  }
  EXPECT_GE(turns, reference - 0.01);
  // Images of new clients may overtake images that already wait.
  EXPECT_LE(lost_in_queue, reference_lost + 0.05 * admitted);
  std::printf(
      "load %g, %d batches, %d clients: %.3f, EDF %.3f; lost %.3f, %.3f\n",
      load, batches, clients, turns, reference,
      double(lost_in_queue) / admitted, double(reference_lost) / admitted);
}

INSTANTIATE_TEST_SUITE_P(Loads, GoodputTest,
                         ::testing::Combine(Values(1.0, 2.0, 4.0, 10.0),
                                            Values(10, 2),
                                            Values(1, 20, 1000)));

class SharesTest : public ::testing::TestWithParam<int> {
 protected:
  // A greedy client always has `images` images of one model and size waiting.
  struct Greedy {
    int model = 0;
    int side = 224;
    double deadline = 1;  // Seconds.
    int images = 64;
  };

  // Returns the share of the device time of each client. The simulation lasts
  // as long as 200 of the longest batches.
  std::vector<double> Shares(int models, const std::vector<Greedy>& clients) {
    SimulationOptions options;
    options.admits = false;
    options.noise = 0.05;
    options.seed = GetParam();
    for (int i = 0; i < models; ++i) {
      SimulatedModel model = Model(8 >> i);
      model.cost = [i](const BatchKey& key, int images) {
        const double area = key.height * key.width / (224.0 * 224.0);
        return absl::Milliseconds(10 + (10 + 20 * i) * area * images);
      };
      options.models.push_back(model);
    }
    absl::Duration longest;
    std::vector<SimulatedRequest> trace;
    std::mt19937 random(GetParam());
    for (size_t i = 0; i < clients.size(); ++i) {
      const Greedy& greedy = clients[i];
      const SimulatedModel& model = options.models[greedy.model];
      longest = std::max(longest, model.cost({greedy.side, greedy.side},
                                             model.options.max_batch_size));
      for (int n = 0; n < greedy.images; ++n) {
        SimulatedRequest request;
        request.at = absl::Microseconds(random() % 1000);
        request.model = greedy.model;
        request.key = {greedy.side, greedy.side};
        request.deadline = absl::Seconds(greedy.deadline);
        request.client = absl::StrCat(i);
        request.again = absl::ZeroDuration();
        trace.push_back(request);
      }
    }
    std::stable_sort(trace.begin(), trace.end(),
                     [](const auto& a, const auto& b) { return a.at < b.at; });
    const absl::Duration length = 200 * longest;
    for (SimulatedRequest& request : trace) request.until = length;
    const SimulationResult result = RunToEnd(options, trace);
    absl::Duration all;
    std::vector<absl::Duration> device(clients.size());
    for (const RanBatch& batch : result.ran_batches) {
      if (batch.start > length) break;
      for (const auto& [client, time] : batch.device) {
        device[std::stoi(client)] += time;
        all += time;
      }
    }
    std::vector<double> shares;
    for (const absl::Duration time : device) {
      shares.push_back(absl::FDivDuration(time, all));
    }
    return shares;
  }

  void ExpectEqual(int models, const std::vector<Greedy>& clients) {
    const std::vector<double> shares = Shares(models, clients);
    for (size_t i = 0; i < shares.size(); ++i) {
      EXPECT_NEAR(shares[i] * shares.size(), 1, 0.05) << "client " << i;
    }
  }
};

TEST_P(SharesTest, AreEqualWhateverDeadlinesTheClientsClaim) {
  ExpectEqual(1, {{0, 224, 30}, {0, 224, 1}, {0, 224, 5}, {0, 224, 0.6}});
}

TEST_P(SharesTest, AreEqualOverKeys) {
  ExpectEqual(1, {{0, 224, 30}, {0, 320, 1.5}, {0, 160, 5}});
}

TEST_P(SharesTest, AreEqualOverModels) {
  ExpectEqual(3, {{0, 224, 30}, {1, 224, 1.5}, {2, 320, 5}});
}

TEST_P(SharesTest, AreEqualHoweverManyImagesWait) {
  ExpectEqual(1, {{0, 224, 30, 16}, {0, 224, 30, 500}, {0, 224, 2, 100}});
}

INSTANTIATE_TEST_SUITE_P(Seeds, SharesTest, Range(1, kSeeds + 1));

struct Crowd {
  double pause;     // Seconds between the starts of ten clients.
  double deadline;  // Seconds.
  double expire;    // The maximum share of admitted images that expire.
};

class AdmissionTest : public testing::TestWithParam<Crowd> {};

// Each client sends twice as much as the device computes. Every client
// therefore always has waiting images. Images of clients that start later may
// overtake them.
TEST_P(AdmissionTest, FewImagesExpireInTheQueue) {
  const Crowd& crowd = GetParam();
  int admitted = 0, in_time = 0;
  double worst = 0;
  for (uint32_t seed = 1; seed <= 5; ++seed) {
    std::mt19937 random(seed);
    SimulationOptions options;
    options.models = {Model(8)};
    options.noise = 0.05;
    options.seed = seed;
    std::exponential_distribution<double> gap(2 * 8 / 0.17);
    const double end = 10 * crowd.pause + 2 * crowd.deadline + 20;
    std::vector<SimulatedRequest> trace;
    for (int client = 0; client < 10; ++client) {
      for (double at = client * crowd.pause; at < end; at += gap(random)) {
        SimulatedRequest request;
        request.at = absl::Seconds(at);
        request.key = {224, 224};
        request.deadline = absl::Seconds(crowd.deadline);
        request.client = absl::StrCat(client);
        trace.push_back(request);
      }
    }
    std::stable_sort(trace.begin(), trace.end(),
                     [](const auto& a, const auto& b) { return a.at < b.at; });
    const SimulationResult result = RunToEnd(options, trace);
    for (const auto& [name, client] : result.clients) {
      const int own = client.offered - client.refused;
      admitted += own;
      in_time += client.in_time;
      worst = std::max(worst, 1 - double(client.in_time) / own);
    }
  }
  const double expire = 1 - double(in_time) / admitted;
  std::printf("a client each %g s, deadline %g s: %.3f expire, at most %.3f\n",
              crowd.pause, crowd.deadline, expire, worst);
  EXPECT_LE(expire, crowd.expire);
}

INSTANTIATE_TEST_SUITE_P(Together, AdmissionTest,
                         Values(Crowd{0, 2, 0.05}, Crowd{0, 5, 0.05},
                                Crowd{0, 10, 0.05}));
// Clients that start later take turns that the prediction gave to the first
// clients.
INSTANTIATE_TEST_SUITE_P(OneAfterAnother, AdmissionTest,
                         Values(Crowd{0.5, 2, 0.08}, Crowd{0.5, 10, 0.08},
                                Crowd{6, 2, 0.08}, Crowd{6, 10, 0.08}));

// One client's images of one model run in the order of their deadlines.
TEST(OneClientTest, IsServedByTheEarliestDeadlineFirst) {
  for (uint32_t seed = 1; seed <= kSeeds; ++seed) {
    std::mt19937 random(seed);
    SimulationOptions options;
    options.models = {Model(1)};
    options.admits = false;
    options.noise = 0.3;
    options.seed = seed;
    std::vector<SimulatedRequest> trace(200);
    for (SimulatedRequest& request : trace) {
      request.key = {224, 224};
      request.deadline = absl::Milliseconds(20'000 + random() % 5000);
      request.client = "one";
    }
    std::vector<int> order(trace.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return trace[a].deadline < trace[b].deadline;
    });
    EXPECT_EQ(RunToEnd(options, trace).order, order);
  }
}

}  // namespace
}  // namespace sfmamba::batching
