#ifndef SFMAMBA_CLIENT_COMMANDS_OUTPUT_MODEL_TABLE_H_
#define SFMAMBA_CLIENT_COMMANDS_OUTPUT_MODEL_TABLE_H_

#include <string>
#include <vector>

#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::client {

// Returns the state of a version with its reason, if there is one.
std::string StateText(const v1::Model& model);

// Returns a human-readable table with one row for each version.
std::string ModelTable(const std::vector<v1::Model>& models);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_OUTPUT_MODEL_TABLE_H_
