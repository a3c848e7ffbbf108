#ifndef SFMAMBA_CLIENT_COMMANDS_EVAL_COMMAND_H_
#define SFMAMBA_CLIENT_COMMANDS_EVAL_COMMAND_H_

#include <string>
#include <vector>

#include "client/commands/command.h"

namespace sfmamba::client {

// `sfmamba eval`: how right a model is on a labelled folder (dataset.h), as
// served, how long the server took, and how much the answers differ from those
// of another model. Returns the exit code.
int RunEval(const std::vector<std::string>& arguments, const Console& console);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_EVAL_COMMAND_H_
