#ifndef SFMAMBA_SERVER_SHARES_PRIORITY_H_
#define SFMAMBA_SERVER_SHARES_PRIORITY_H_

#include <array>

namespace sfmamba::server {

// The urgency that a caller requests. See RequestOptions.priority in
// sfmamba/v1/vision.proto. The first value is the most urgent.
enum class Priority { kHigh, kNormal, kLow };
inline constexpr int kPriorityCount = 3;
inline constexpr std::array<Priority, kPriorityCount> kPrioritiesInOrder = {
    Priority::kHigh, Priority::kNormal, Priority::kLow};

// The ratio in which priorities share a device's time if requests of all
// priorities wait. Indexed by Priority.
inline constexpr double kPriorityShares[kPriorityCount] = {8, 3, 1};

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_SHARES_PRIORITY_H_
