#ifndef SFMAMBA_SERVER_BATCHING_PRIORITY_H_
#define SFMAMBA_SERVER_BATCHING_PRIORITY_H_

#include "server/base/priority.h"

namespace sfmamba::batching {

using server::kPrioritiesInOrder;
using server::kPriorityShares;
using server::Priority;

inline constexpr int kPriorities = server::kPriorityCount;

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_PRIORITY_H_
