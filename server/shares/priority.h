#ifndef SFMAMBA_SERVER_SHARES_PRIORITY_H_
#define SFMAMBA_SERVER_SHARES_PRIORITY_H_

#include <array>

namespace sfmamba::server {

// How urgent a caller says that its request is. The order of the values is the
// order of service. See RequestOptions.priority in sfmamba/v1/vision.proto.
enum class Priority { kHigh, kNormal, kLow };
inline constexpr int kPriorityCount = 3;
inline constexpr std::array<Priority, kPriorityCount> kPrioritiesInOrder = {
    Priority::kHigh, Priority::kNormal, Priority::kLow};

// The classes' shares of a device's time while all of them wait for it, in the
// order of Priority.
inline constexpr double kPriorityShares[kPriorityCount] = {8, 3, 1};

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_SHARES_PRIORITY_H_
