#ifndef SFMAMBA_TESTS_SERVER_CEILING_ECHO_SERVER_H_
#define SFMAMBA_TESTS_SERVER_CEILING_ECHO_SERVER_H_

#include "tests/server/ceiling/server_child.h"

namespace sfmamba {

// A gRPC server whose Classify answers the same bytes at once, as many as the
// null model's answers have. Runs until this process is killed.
void ServeEcho(const Listening& listening);

// Serves as ServeEcho() does, and for each call decodes and resizes the
// message's JPEG like the null model's preprocessing, on the thread that gRPC
// calls it on, and drops the result. No server that does this work can do with
// less.
void ServeDecodingEcho(const Listening& listening);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_SERVER_CEILING_ECHO_SERVER_H_
