#ifndef SFMAMBA_CLIENT_COMMANDS_BENCH_BENCH_OUTPUT_H_
#define SFMAMBA_CLIENT_COMMANDS_BENCH_BENCH_OUTPUT_H_

#include <string>

#include "client/bench/load_report.h"
#include "client/commands/bench/bench_flags.h"

namespace sfmamba::client {

// The report for people, lines of text.
std::string BenchText(const LoadReport& report, const BenchFlags& flags);

// One JSON object: the setting, then all that was counted. Latencies are in
// milliseconds, and a key's unit is its suffix.
std::string BenchJson(const LoadReport& report, const BenchFlags& flags);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_BENCH_BENCH_OUTPUT_H_
