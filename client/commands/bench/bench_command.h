#ifndef SFMAMBA_CLIENT_COMMANDS_BENCH_BENCH_COMMAND_H_
#define SFMAMBA_CLIENT_COMMANDS_BENCH_BENCH_COMMAND_H_

#include <string>
#include <vector>

#include "client/commands/command.h"

namespace sfmamba::client {

// `sfmamba bench`: puts load on the server and shows throughput, latency and
// the statuses of answers. Requests that fail under load are a part of the
// measurement. So the exit code is kExitOk if at least one request was answered
// with OK.
int RunBench(const std::vector<std::string>& arguments, const Console& console);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_BENCH_BENCH_COMMAND_H_
