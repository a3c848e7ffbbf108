#ifndef SFMAMBA_MODEL_PROCESSOR_GROUP_H_
#define SFMAMBA_MODEL_PROCESSOR_GROUP_H_

#include <vector>

namespace sfmamba::model {

// A group of processors that together run one batch at a time. Other groups run
// other batches at the same time.
struct ProcessorGroup {
  std::vector<int> processors;  // Linux's CPU numbers; not empty.
  int threads = 1;              // Threads that compute a batch; at least 1.
};

}  // namespace sfmamba::model

#endif  // SFMAMBA_MODEL_PROCESSOR_GROUP_H_
