#ifndef SFMAMBA_CLIENT_COMMANDS_EVAL_COMMAND_H_
#define SFMAMBA_CLIENT_COMMANDS_EVAL_COMMAND_H_

#include <string>
#include <vector>

#include "client/commands/command.h"

namespace sfmamba::client {

// `sfmamba eval`: shows how accurate a served model is on a labelled folder
// (see dataset.h), and how long the server took. If --against is given, also
// compares the answers with another model's. Returns the exit code.
int RunEval(const std::vector<std::string>& arguments, const Console& console);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_EVAL_COMMAND_H_
