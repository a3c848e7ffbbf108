#ifndef SFMAMBA_CLIENT_COMMANDS_ADMIN_SERVER_INFO_H_
#define SFMAMBA_CLIENT_COMMANDS_ADMIN_SERVER_INFO_H_

#include <string>

#include "sfmamba/v1/admin.pb.h"

namespace sfmamba::client {

// Returns a few lines of text and a table of the served versions.
std::string DescribeServer(const v1::ServerInfo& info);

// Returns one line of text per setting.
std::string DescribeSettings(const v1::RuntimeSettings& settings);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_ADMIN_SERVER_INFO_H_
