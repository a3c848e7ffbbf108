#ifndef SFMAMBA_TESTS_SERVER_CEILING_NULL_SERVER_H_
#define SFMAMBA_TESTS_SERVER_CEILING_NULL_SERVER_H_

#include "absl/time/time.h"
#include "tests/server/ceiling/server_child.h"

namespace sfmamba {

// Pixels of a side of the null model's input.
constexpr int kNullModelSide = 224;

// The server with a classifier, "null", of 1000 classes, that takes
// `batch_time` for a batch but no processor: none if that is zero, or else as
// if it computed on a GPU. If it is infinite the queue is full with 8 images.
// Runs until this process is killed.
void ServeNullModel(absl::Duration batch_time, const Listening& listening);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_SERVER_CEILING_NULL_SERVER_H_
