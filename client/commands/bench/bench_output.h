#ifndef SFMAMBA_CLIENT_COMMANDS_BENCH_BENCH_OUTPUT_H_
#define SFMAMBA_CLIENT_COMMANDS_BENCH_BENCH_OUTPUT_H_

#include <string>

#include "client/bench/load_report.h"
#include "client/commands/bench/bench_flags.h"

namespace sfmamba::client {

// Returns the report as human-readable lines of text.
std::string BenchText(const LoadReport& report, const BenchFlags& flags);

// Returns the report as one JSON object. It contains the flags and then all
// measured figures. A key's suffix is its unit, for example "latency_ms".
std::string BenchJson(const LoadReport& report, const BenchFlags& flags);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_BENCH_BENCH_OUTPUT_H_
