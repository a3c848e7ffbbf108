#ifndef SFMAMBA_CLIENT_COMMANDS_CLASSIFY_COMMAND_H_
#define SFMAMBA_CLIENT_COMMANDS_CLASSIFY_COMMAND_H_

#include <string>
#include <vector>

#include "client/commands/command.h"
#include "client/commands/output/json_writer.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::client {

// `sfmamba classify FILE...`: shows a table of labels and scores. Each file is
// sent in its own request, and several requests are in flight at a time.
// Returns the exit code.
int RunClassify(const std::vector<std::string>& arguments,
                const Console& console);

// Writes the member "categories" of a JSON object.
void WriteCategories(const v1::ClassifyResult& result, JsonWriter* json);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_CLASSIFY_COMMAND_H_
