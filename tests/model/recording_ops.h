#ifndef SFMAMBA_TESTS_MODEL_RECORDING_OPS_H_
#define SFMAMBA_TESTS_MODEL_RECORDING_OPS_H_

#include <vector>

#include "tests/model/launch_plan.h"

namespace sfmamba::model {

// While an object exists, tensors of libtorch's "meta" device count as a
// GPU's tensors. The object records the work that this thread enqueues on them.
// This is the work of this project's kernels, libraries' kernels and libtorch's
// own operators. An unknown operator ends the test. If `operators` is false,
// libtorch's operators are neither recorded nor checked. Only one object may
// exist at a time.
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
