// Prints the OpenAPI description of REST for a test in Python.

#include <iostream>
#include <vector>

#include "server/api/vision/vision_methods.h"
#include "server/rest/open_api.h"

int main() {
  const std::vector<sfmamba::call::Method> methods =
      sfmamba::api::VisionMethods();
  std::cout << sfmamba::rest::OpenApi(sfmamba::rest::MethodPaths(methods),
                                      "1.2");
}
