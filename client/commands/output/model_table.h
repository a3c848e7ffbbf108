#ifndef SFMAMBA_CLIENT_COMMANDS_OUTPUT_MODEL_TABLE_H_
#define SFMAMBA_CLIENT_COMMANDS_OUTPUT_MODEL_TABLE_H_

#include <string>
#include <vector>

#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::client {

// A version's state and, if there is one, the reason for it.
std::string StateText(const v1::Model& model);

// Versions, a row each, for people.
std::string ModelTable(const std::vector<v1::Model>& models);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_OUTPUT_MODEL_TABLE_H_
