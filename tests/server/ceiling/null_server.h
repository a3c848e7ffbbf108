#ifndef SFMAMBA_TESTS_SERVER_CEILING_NULL_SERVER_H_
#define SFMAMBA_TESTS_SERVER_CEILING_NULL_SERVER_H_

#include "absl/time/time.h"
#include "tests/server/ceiling/server_child.h"

namespace sfmamba {

// The height and width of the null model's input in pixels.
constexpr int kNullModelSide = 224;

// Runs the server with a classifier "null" of 1000 classes. A batch takes
// `batch_time` without using the CPU, like a batch on a GPU. If `batch_time` is
// infinite, the queue is full with 8 images. Runs until this process is killed.
void ServeNullModel(absl::Duration batch_time, const Listening& listening);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_SERVER_CEILING_NULL_SERVER_H_
