#ifndef SFMAMBA_CLIENT_COMMANDS_DETECT_COMMAND_H_
#define SFMAMBA_CLIENT_COMMANDS_DETECT_COMMAND_H_

#include <string>
#include <vector>

#include "client/commands/command.h"

namespace sfmamba::client {

// `sfmamba detect FILE...`: a table of objects, and annotated pictures where
// --output_dir asks for them. Each file is a request of its own. Returns the
// exit code.
int RunDetect(const std::vector<std::string>& arguments,
              const Console& console);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_DETECT_COMMAND_H_
