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
  kExitUsage = 2,  // Also: a file that cannot be read or written.
};

struct Console {
  std::ostream& out;           // The answer.
  std::ostream& err;           // Errors and progress.
  bool show_progress = false;  // Whether `err` is a terminal.
};

// The flags that every verb has.
struct CommonFlags {
  std::string server = "127.0.0.1:8001";
  absl::Duration deadline = absl::Seconds(10);
  bool json = false;
  // Once the flags are parsed, how VisionClient reaches the server.
  VisionClientOptions client;

  // This outlives `flags`, and stays where it is.
  void AddTo(FlagSet* flags);

 private:
  AccessOptions access_;
};

// Parses the arguments of a verb. Writes the help or the usage error where that
// was all, and returns the exit code then.
absl::optional<int> ParseArguments(FlagSet* flags,
                                   const std::vector<std::string>& arguments,
                                   std::vector<std::string>* positional,
                                   const Console& console);

// Writes `message` as one line, its control characters as spaces, to `err`.
void WriteErrorLine(absl::string_view message, const Console& console);

// Writes `message` as WriteErrorLine() does, and where to find help; returns
// kExitUsage.
int UsageError(absl::string_view message, const Console& console);

// Writes why a call failed, as JSON too if that was asked for; returns
// kExitRpcError.
int RpcError(const absl::Status& status, const CommonFlags& flags,
             const Console& console);

// Writes what `out` still holds back; returns `exit_code`, or kExitUsage where
// an answer was lost because `out` could not be written, as on a full disk.
int FinishOutput(int exit_code, const Console& console);

// The members "error": {code, reason, message, fields, retry_delay_ms,
// trace_id} of an object.
void WriteError(const absl::Status& status, JsonWriter* json);

// A duration for people, with its unit: "12.34 ms".
std::string FormatMilliseconds(absl::Duration duration);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_COMMAND_H_
