#ifndef SFMAMBA_TESTS_SERVER_CEILING_NULL_SERVER_H_
#define SFMAMBA_TESTS_SERVER_CEILING_NULL_SERVER_H_

#include "tests/server/ceiling/server_child.h"

namespace sfmamba {

// Pixels of a side of the null model's input.
constexpr int kNullModelSide = 224;

// The server with a classifier, "null", of 1000 classes that answers at once
// or, if it stands still, never; its queue is full with 8 images then. Runs
// until this process is killed.
void ServeNullModel(bool stands_still, const Listening& listening);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_SERVER_CEILING_NULL_SERVER_H_
