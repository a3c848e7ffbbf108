#ifndef SFMAMBA_SERVER_API_VISION_VISION_METHODS_H_
#define SFMAMBA_SERVER_API_VISION_VISION_METHODS_H_

#include <vector>

#include "server/call/method_table.h"

namespace sfmamba::api {

// Returns the methods of sfmamba.v1.VisionService.
std::vector<call::Method> VisionMethods();

}  // namespace sfmamba::api

#endif  // SFMAMBA_SERVER_API_VISION_VISION_METHODS_H_
