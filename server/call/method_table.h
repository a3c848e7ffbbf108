#ifndef SFMAMBA_SERVER_CALL_METHOD_TABLE_H_
#define SFMAMBA_SERVER_CALL_METHOD_TABLE_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "server/call/call.h"
#include "server/observability/metrics.h"
#include "server/observability/request_record.h"
#include "server/prediction/transport_environment.h"
#include "server/security/caller.h"

namespace sfmamba::call {

// Answers an admitted call, now or later, and counts it as `counted_as`. Must
// not block. `environment` outlives the call.
using Handler = std::function<void(
    const prediction::TransportEnvironment& environment,
    observability::Method counted_as, std::unique_ptr<Call> call)>;

// An RPC method.
struct Method {
  // "sfmamba.v1.VisionService/GetModel". Without a slash: gRPC does not serve
  // the method.
  std::string name;
  // The methods and the paths that serve it over HTTP, "POST,PUT
  // /v1/{model=models/**}:classify". A variable is a field of the request:
  // {name} is one segment of the path, {name=models/**} all that begins with
  // "models/". A part in brackets may be left out. Empty: HTTP does not serve
  // the method.
  std::string http;
  std::optional<security::Scope> scope;  // None: everybody may call.
  // None: calls are neither counted nor logged, and are answered over HTTP
  // while the server drains.
  std::optional<observability::Method> metric;
  Handler handle;  // Null: the method is a stream, which its transport serves.
};

// The record of a call that no prediction records, in the name of its caller.
class CallRecord : public observability::RequestRecord {
 public:
  CallRecord(const prediction::TransportEnvironment& environment,
             observability::Method counted_as, const Call& call);
};

// The methods that the server has, and the checks that precede each of them.
// Thread-safe.
class MethodTable {
 public:
  MethodTable(prediction::TransportEnvironment environment,
              std::vector<Method> methods)
      : env_(std::move(environment)), methods_(std::move(methods)) {}

  const prediction::TransportEnvironment& environment() const { return env_; }
  const std::vector<Method>& methods() const { return methods_; }

  // Has the method's handler answer the call if the caller may make it.
  // `method` is one of the table's, which outlives the call.
  void Serve(const Method& method, std::unique_ptr<Call> call) const;

 private:
  const prediction::TransportEnvironment env_;
  const std::vector<Method> methods_;
};

// The subject of a method. Requests about no single model are counted apart.
enum class About { kModel, kServer };

// Fills the response, and writes the model that it finds into the record.
template <typename Request, typename Response>
using Answer = std::function<absl::Status(
    const prediction::TransportEnvironment& environment, const Request& request,
    Response* response, observability::RequestRecord* record)>;

// Makes the handler of a method that is answered at once.
template <typename Request, typename Response>
Handler AnswerAtOnce(About about, Answer<Request, Response> answer) {
  return [about, answer = std::move(answer)](
             const prediction::TransportEnvironment& environment,
             observability::Method counted_as, std::unique_ptr<Call> call) {
    CallRecord record(environment, counted_as, *call);
    if (about == About::kServer) record.set_no_model();
    Request request;
    Response response;
    absl::Status status = call->Read(&request);
    if (status.ok()) status = answer(environment, request, &response, &record);
    call->Finish(record.Finish(status), &response);
  };
}

// Makes the handler of a method whose calls are not counted.
template <typename Request, typename Response>
Handler AnswerUncounted(std::function<absl::Status(
                            const prediction::TransportEnvironment& environment,
                            const Request& request, Response* response)>
                            answer) {
  return [answer = std::move(answer)](
             const prediction::TransportEnvironment& environment,
             observability::Method, std::unique_ptr<Call> call) {
    Request request;
    Response response;
    absl::Status status = call->Read(&request);
    if (status.ok()) status = answer(environment, request, &response);
    call->Finish(status, &response);
  };
}

}  // namespace sfmamba::call

#endif  // SFMAMBA_SERVER_CALL_METHOD_TABLE_H_
