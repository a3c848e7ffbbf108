// Measures how long the methods of BatchQueue take in two situations. In the
// first, 8,192 tasks with 1, 20 or 200 different batch keys are waiting. In the
// second, each of 10,000 clients has one task waiting, with 1 or 20 keys.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/batching/batch_queue.h"
#include "server/batching/reservation.h"

namespace sfmamba::batching {
namespace {

constexpr int kRounds = 2000;

double Microseconds(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now() - start)
      .count();
}

void Time(int keys, int waiting = 8192, int clients = 0) {
  std::mt19937 random(1);
  BatchOptions options;
  options.max_batch_size = 32;
  options.mode = BatchMode::kLatency;
  QueueRoom room({1 << 20, 1 << 20});
  BatchQueue queue(options, 4);
  int pushed = 0;
  absl::Time now = absl::UnixEpoch();
  const auto side = [&] {
    return 32 * (1 + static_cast<int>(random() % keys));
  };
  const auto push = [&] {
    BatchTask task;
    const int s = side();
    task.key = {s, s, ImageType::kFloat32};
    task.deadline = task.finish_by =
        now + absl::Seconds(10) + absl::Milliseconds(random() % 100'000);
    if (clients > 0) {
      task.reservation = *room.Take(1, 0, absl::StrCat(pushed++ % clients));
    }
    queue.Push(std::move(task), now);
  };
  for (int key = 1; key <= keys; ++key) {
    for (int images = 1; images <= 32; images *= 2) {
      queue.profile().Import({{{32 * key, 32 * key, ImageType::kFloat32},
                               images,
                               absl::Milliseconds(1 + 0.1 * images),
                               absl::Milliseconds(2 + 0.1 * images)}},
                             now);
    }
  }
  for (int i = 0; i < waiting; ++i) push();

  double pushes = 0, estimates = 0, drops = 0, dues = 0, pops = 0, rans = 0;
  std::vector<double> slowest;
  for (int round = 0; round < kRounds; ++round) {
    now += absl::Milliseconds(1);
    AdmissionRequest request;
    const int s = side();
    request.key = {s, s, ImageType::kFloat32};
    request.deadline = now + absl::Seconds(60);
    const std::string client = absl::StrCat(random() % std::max(1, clients));
    if (clients > 0) request.client = client;
    auto start = std::chrono::steady_clock::now();
    queue.Estimate(request, now);
    slowest.push_back(Microseconds(start));
    estimates += slowest.back();
    start = std::chrono::steady_clock::now();
    queue.TakeDropped(now);
    drops += Microseconds(start);
    start = std::chrono::steady_clock::now();
    queue.Due(now);
    dues += Microseconds(start);
    start = std::chrono::steady_clock::now();
    std::optional<Batch> batch = queue.PopBatch(now);
    pops += Microseconds(start);
    start = std::chrono::steady_clock::now();
    queue.Ran(batch->number, now + absl::Milliseconds(4));
    rans += Microseconds(start);
    start = std::chrono::steady_clock::now();
    for (size_t i = 0; i < batch->tasks.size(); ++i) push();
    pushes += Microseconds(start) / batch->tasks.size();
  }
  std::sort(slowest.begin(), slowest.end());
  std::printf(
      "%d keys, %d clients, us: push %.2f, estimate %.2f (99 %%: %.2f), "
      "TakeDropped %.2f, "
      "Due %.2f, PopBatch of 32 %.2f, Ran %.2f\n",
      keys, clients, pushes / kRounds, estimates / kRounds,
      slowest[slowest.size() * 99 / 100], drops / kRounds, dues / kRounds,
      pops / kRounds, rans / kRounds);
}

}  // namespace
}  // namespace sfmamba::batching

int main() {
  using sfmamba::batching::Time;
  for (const int keys : {1, 20, 200}) Time(keys);
  for (const int keys : {1, 20}) Time(keys, 10'000, 10'000);
}
