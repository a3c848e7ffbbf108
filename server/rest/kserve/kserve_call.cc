#include "server/rest/kserve/kserve_call.h"

#include <string>
#include <utility>

#include "inference/grpc_service.pb.h"
#include "server/call/encoded_results.h"
#include "server/rest/http_call.h"
#include "server/rest/kserve/json.h"
#include "server/rest/kserve/request.h"
#include "server/rest/kserve/response.h"

namespace sfmamba::rest {
namespace {

class KserveCall final : public HttpCall {
 public:
  KserveCall(std::unique_ptr<http::Exchange> exchange, PathFields fields,
             absl::Status serving, const KserveLimits& limits,
             server::MemoryBudget* memory)
      : HttpCall(std::move(exchange), std::move(fields), std::move(serving)),
        limits_(limits),
        memory_(*memory) {}

  absl::Status Read(call::Message* message) override {
    if (!serving_.ok()) return serving_;
    const absl::Status status = ReadControlBody(request().body, message);
    return status.ok() ? SetPathFields(message) : status;
  }

  std::unique_ptr<call::Pictures> ReadPictures(
      int max_images, call::Message* message) override {
    absl::Status status = serving_;
    if (status.ok()) status = headers_;
    auto pictures = ReadInferBody(
        status, max_images, limits_.max_raw_bytes, &request(), &memory_,
        static_cast<inference::ModelInferRequest*>(message), &forms_);
    if (pictures->status().ok()) pictures->set_status(SetPathFields(message));
    if (forms_.AnyJson()) {
      info_.max_response_bytes = limits_.max_json_answer_bytes;
    }
    return pictures;
  }

  call::ResultSink& results() override { return results_; }

 private:
  http::HttpResponse Respond(call::Message* rest) override {
    return KserveResponse(
        forms_, fields_.empty() ? std::string() : fields_.front().second, rest);
  }

  const KserveLimits limits_;
  server::MemoryBudget& memory_;
  OutputForms forms_;
  // Exists only because results() must return an encoder. Nothing is ever
  // encoded, because responses of this protocol have no field `results`.
  call::EncodedResults results_;
};

}  // namespace

std::unique_ptr<call::Call> MakeKserveCall(
    std::unique_ptr<http::Exchange> exchange, PathFields fields,
    absl::Status serving, const KserveLimits& limits,
    server::MemoryBudget* memory) {
  return std::make_unique<KserveCall>(std::move(exchange), std::move(fields),
                                      std::move(serving), limits, memory);
}

}  // namespace sfmamba::rest
