#ifndef SFMAMBA_TESTS_MODEL_RECORDING_OPS_H_
#define SFMAMBA_TESTS_MODEL_RECORDING_OPS_H_

#include <vector>

#include "tests/model/launch_plan.h"

namespace sfmamba::model {

// While one of these lives, tensors of libtorch's "meta" device count as a
// GPU's, and what this thread enqueues on them is recorded: our kernels, the
// libraries', and libtorch's own operators, of which an unknown one ends the
// test. Without `operators`, libtorch's are not recorded, and none is unknown.
// One at a time.
class LaunchRecorder {
 public:
  explicit LaunchRecorder(bool operators = true);
  ~LaunchRecorder();
  LaunchRecorder(const LaunchRecorder&) = delete;
  LaunchRecorder& operator=(const LaunchRecorder&) = delete;

  std::vector<Launch> launches;
};

}  // namespace sfmamba::model

#endif  // SFMAMBA_TESTS_MODEL_RECORDING_OPS_H_
