#ifndef SFMAMBA_MODEL_PROCESSOR_GROUP_H_
#define SFMAMBA_MODEL_PROCESSOR_GROUP_H_

#include <vector>

namespace sfmamba::model {

// Processors that run one batch at a time, beside those of other groups.
struct ProcessorGroup {
  std::vector<int> processors;  // Linux's numbers of them; not empty.
  int threads = 1;              // Threads that compute a batch; at least 1.
};

}  // namespace sfmamba::model

#endif  // SFMAMBA_MODEL_PROCESSOR_GROUP_H_
