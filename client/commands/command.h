#ifndef SFMAMBA_CLIENT_COMMANDS_COMMAND_H_
#define SFMAMBA_CLIENT_COMMANDS_COMMAND_H_

#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "client/commands/flag_set.h"
#include "client/commands/output/json_writer.h"
#include "client/rpc/server_access.h"
#include "client/rpc/vision_client.h"

namespace sfmamba::client {

enum ExitCode : int {
  kExitOk = 0,
  kExitRpcError = 1,
  // This is also the exit code if a file cannot be read or written.
  kExitUsage = 2,
};

struct Console {
  std::ostream& out;           // Receives the answers.
  std::ostream& err;           // Receives errors and progress.
  bool show_progress = false;  // True if `err` is a terminal.
};

// The flags that every verb of the command line has. Verbs are, for example,
// classify and bench.
struct CommonFlags {
  std::string server = "127.0.0.1:8001";
  absl::Duration deadline = absl::Seconds(10);
  bool json = false;
  // How VisionClient reaches the server. Set when the flags are parsed.
  VisionClientOptions client;

  // This object must outlive `flags` and must not move.
  void AddTo(FlagSet* flags);

 private:
  AccessOptions access_;
};

// Parses the arguments of a verb. If a flag asks for help or is wrong, writes
// the help or the error and returns the exit code. Otherwise returns nullopt.
absl::optional<int> ParseArguments(FlagSet* flags,
                                   const std::vector<std::string>& arguments,
                                   std::vector<std::string>* positional,
                                   const Console& console);

// Writes `message` to `err` as one line. Control characters become spaces.
void WriteErrorLine(absl::string_view message, const Console& console);

// Writes `message` like WriteErrorLine(), and a second line that tells where to
// find help. Returns kExitUsage.
int UsageError(absl::string_view message, const Console& console);

// Writes why a call failed to `err`, and also as JSON if `flags` ask for JSON.
// Returns kExitRpcError.
int RpcError(const absl::Status& status, const CommonFlags& flags,
             const Console& console);

// Flushes `out`. Returns kExitUsage if a successful command's output cannot be
// written, for example because the disk is full. Otherwise returns `exit_code`.
int FinishOutput(int exit_code, const Console& console);

// Writes the member "error" of a JSON object, with the members code, reason,
// message, fields, retry_delay_ms and trace_id.
void WriteError(const absl::Status& status, JsonWriter* json);

// Returns the duration as text with its unit, for example "12.34 ms".
std::string FormatMilliseconds(absl::Duration duration);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_COMMAND_H_
