#ifndef SFMAMBA_TESTS_GPU_REPLAYS_H_
#define SFMAMBA_TESTS_GPU_REPLAYS_H_

#include "absl/status/statusor.h"
#include "tests/gpu/benchmark.h"

namespace sfmamba {

// What a GPU does when a model's pass is replayed without pauses, as under a
// server's full load: it warms up, and where power is the limit it slows down.
struct ReplayFigure {
  double ms = 0;  // Milliseconds of a pass, with one graph at a time.
  Clocks clocks;  // Read in the middle of these replays.
  // With the graphs of all slots at once, whose passes overlap.
  double overlapped_images_per_second = 0;
};

// Records the pass of a classifier over a batch, as the engine does, and
// replays it for options.sustained: one graph, then one for each slot at once.
// Fails if the pass cannot be recorded or does not fit into memory.
absl::StatusOr<ReplayFigure> MeasureReplays(const EngineCase& engine,
                                            const EngineOptions& options);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_GPU_REPLAYS_H_
