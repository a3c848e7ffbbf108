#ifndef SFMAMBA_CLIENT_COMMANDS_BENCH_BENCH_COMMAND_H_
#define SFMAMBA_CLIENT_COMMANDS_BENCH_BENCH_COMMAND_H_

#include <string>
#include <vector>

#include "client/commands/command.h"

namespace sfmamba::client {

// `sfmamba bench`: loads the server and tells throughput, latency and answers.
// Errors under load are a result: the exit code is 1 only if nothing was
// answered with OK.
int RunBench(const std::vector<std::string>& arguments, const Console& console);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_BENCH_BENCH_COMMAND_H_
