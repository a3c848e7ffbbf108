#ifndef SFMAMBA_TESTS_E2E_SOAK_SOAK_REQUESTS_H_
#define SFMAMBA_TESTS_E2E_SOAK_SOAK_REQUESTS_H_

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba {

// A request, its expected end, and how the server must count its images.
struct SoakRequest {
  std::string name;
  std::variant<v1::ClassifyRequest, v1::DetectRequest, v1::SegmentRequest>
      request;
  absl::StatusCode code = absl::StatusCode::kOk;
  std::string reason;                   // The expected error's reason.
  std::map<std::string, int> outcomes;  // Expected growth of items_total.
  std::string counts_for;  // A model id, or "_unknown" if there is none.
};

// Returns valid Classify requests for the model `id`. Each has another kind of
// input. `jpeg` is the content of a picture file. `model` gives the size of
// tensors.
std::vector<SoakRequest> GoodRequests(const std::string& id,
                                      const v1::Model& model,
                                      const std::string& jpeg);

// Returns requests that always fail in the same way, even if other requests run
// at the same time.
std::vector<SoakRequest> BadRequests(const std::string& id,
                                     const v1::Model& model,
                                     const std::string& jpeg);

// Returns valid requests for a detector and a segmenter.
std::vector<SoakRequest> GoodDenseRequests(const std::string& detector,
                                           const std::string& segmenter,
                                           const std::string& jpeg);
std::vector<SoakRequest> BadDenseRequests(const std::string& detector,
                                          const std::string& segmenter,
                                          const std::string& jpeg);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_E2E_SOAK_SOAK_REQUESTS_H_
