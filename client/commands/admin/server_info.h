#ifndef SFMAMBA_CLIENT_COMMANDS_ADMIN_SERVER_INFO_H_
#define SFMAMBA_CLIENT_COMMANDS_ADMIN_SERVER_INFO_H_

#include <string>

#include "sfmamba/v1/admin.pb.h"

namespace sfmamba::client {

// A few lines and a table, for people.
std::string DescribeServer(const v1::ServerInfo& info);

// A line each.
std::string DescribeSettings(const v1::RuntimeSettings& settings);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_ADMIN_SERVER_INFO_H_
