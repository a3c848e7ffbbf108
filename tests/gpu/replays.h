#ifndef SFMAMBA_TESTS_GPU_REPLAYS_H_
#define SFMAMBA_TESTS_GPU_REPLAYS_H_

#include "absl/status/statusor.h"
#include "tests/gpu/benchmark.h"

namespace sfmamba {

// What a GPU does while a model's graph is replayed without pauses, as under a
// server's full load. It becomes warm, and if power is the limit, it becomes
// slower.
struct ReplayFigure {
  double ms = 0;  // Milliseconds of a pass, with one graph at a time.
  Clocks clocks;  // Read in the middle of these replays.
  // The images per second if there is a graph for each slot (context of the
  // model) and all graphs are replayed at once, so that the replays overlap.
  double overlapped_images_per_second = 0;
};

// Records the network's work for a batch as a graph, as the engine does. First
// replays one graph for options.sustained. Then replays a graph for each slot,
// all at once and each as many times as the first graph. Returns an error if
// the work cannot be recorded or does not fit into memory.
absl::StatusOr<ReplayFigure> MeasureReplays(const EngineCase& engine,
                                            const EngineOptions& options);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_GPU_REPLAYS_H_
