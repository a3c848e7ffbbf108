// Prints the figure of docs/serving.md that shows the clients' shares of a
// device over time:
//   bazel run //tests/server/batching/simulator:shares

#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "tests/server/batching/simulator/simulator.h"
#include "tests/server/batching/simulator/trace.h"

namespace sfmamba::batching {
namespace {

constexpr absl::Duration kStep = absl::Seconds(2);
constexpr int kSteps = 9;
constexpr int kColumns = 40;  // The length of a bar for 100 %.

// A client that always has `images` images waiting, from `start` until `end`.
struct Client {
  const char* name;
  int images;
  double deadline, start, end;  // Seconds.
};
constexpr Client kClients[] = {
    {"A", 64, 30, 0, 18}, {"B", 256, 0.6, 4, 14}, {"C", 1, 10, 8, 18}};

SimulationResult Run() {
  SimulationOptions options;
  options.models.resize(1);
  options.models[0].cost = [](const BatchKey&, int images) {
    return absl::Milliseconds(10 + 10 * images);
  };
  options.noise = 0.05;
  options.admits = false;
  std::vector<SimulatedRequest> trace;
  for (const Client& client : kClients) {
    for (int i = 0; i < client.images; ++i) {
      SimulatedRequest request;
      request.at = absl::Seconds(client.start);
      request.key = {224, 224};
      request.deadline = absl::Seconds(client.deadline);
      request.client = client.name;
      request.again = absl::ZeroDuration();
      request.until = absl::Seconds(client.end);
      trace.push_back(request);
    }
  }
  return Simulate(options, trace);
}

void Print(const SimulationResult& result) {
  std::vector<std::map<std::string, absl::Duration>> steps(kSteps);
  for (const RanBatch& batch : result.ran_batches) {
    const int64_t step = batch.start / kStep;
    if (step >= kSteps) break;
    for (const auto& [client, time] : batch.device) steps[step][client] += time;
  }
  for (int step = 0; step < kSteps; ++step) {
    absl::Duration all;
    for (const auto& [client, time] : steps[step]) all += time;
    std::string bar, shares;
    for (const Client& client : kClients) {
      const double share = absl::FDivDuration(steps[step][client.name], all);
      bar.append(static_cast<int>(share * kColumns + 0.5), client.name[0]);
      if (share == 0) continue;
      shares += ' ';
      shares += client.name;
      shares += ' ' + std::to_string(static_cast<int>(100 * share + 0.5)) + '%';
    }
    std::printf("%2d s  %-*s %s\n", 2 * step, kColumns + 1, bar.c_str(),
                shares.c_str());
  }
  for (const Client& client : kClients) {
    const ClientResult& of = result.clients.at(client.name);
    std::printf("%s: longest wait %.0f ms\n", client.name,
                absl::ToDoubleMilliseconds(of.longest_wait));
  }
}

}  // namespace
}  // namespace sfmamba::batching

int main() { sfmamba::batching::Print(sfmamba::batching::Run()); }
