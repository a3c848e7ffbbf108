#ifndef SFMAMBA_TESTS_SERVER_CEILING_ECHO_SERVER_H_
#define SFMAMBA_TESTS_SERVER_CEILING_ECHO_SERVER_H_

#include "tests/server/ceiling/server_child.h"

namespace sfmamba {

// Runs a gRPC server whose Classify answers at once with constant bytes, as
// long as the null model's answers. Runs until this process is killed.
void ServeEcho(const Listening& listening);

// Serves like ServeEcho(). For each call, it also decodes and resizes the
// message's JPEG like the null model's preprocessing. It does this on gRPC's
// thread and discards the result. No server that does this work can be faster.
void ServeDecodingEcho(const Listening& listening);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_SERVER_CEILING_ECHO_SERVER_H_
