#ifndef SFMAMBA_TESTS_E2E_SOAK_REQUESTS_H_
#define SFMAMBA_TESTS_E2E_SOAK_REQUESTS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba {

// A request, how it must end, and how the server must count its images.
struct SoakRequest {
  std::string name;
  v1::ClassifyRequest request;
  absl::StatusCode code = absl::StatusCode::kOk;
  std::string reason;                   // Of an error.
  std::map<std::string, int> outcomes;  // Of items_total.
  bool counts_for_model =
      true;  // False: for "_unknown", the model is not known.
};

// Requests that succeed, all of them different kinds of input. `jpeg` is a
// picture, `model` names the size of tensors and is asked by `id`.
std::vector<SoakRequest> GoodRequests(const std::string& id,
                                      const v1::Model& model,
                                      const std::string& jpeg);

// Requests that fail in the same way each time, alone or among others.
std::vector<SoakRequest> BadRequests(const std::string& id,
                                     const v1::Model& model,
                                     const std::string& jpeg);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_E2E_SOAK_REQUESTS_H_
