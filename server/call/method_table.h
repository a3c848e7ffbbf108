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

// A function that answers a call, either before the function returns or later.
// The scope of the caller has already been checked. The function counts the
// call in the metrics as `counted_as` and must not block. `environment` must
// outlive the call.
using Handler = std::function<void(
    const prediction::TransportEnvironment& environment,
    observability::Method counted_as, std::unique_ptr<Call> call)>;

// Describes an RPC method.
struct Method {
  // The full gRPC name, such as "sfmamba.v1.VisionService/GetModel". A name
  // without a slash is not served over gRPC.
  std::string name;
  // The HTTP methods and the path template, for example
  // "POST,PUT /v1/{model=models/**}:classify". If empty, the method is not
  // served over HTTP. A path template may contain these elements:
  // - {name} is a variable. It matches one path segment and assigns the segment
  //   to the request's field `name`.
  // - {name=models/**} is a variable that matches several segments. It matches
  //   any text that starts with "models/", and assigns the text to `name`.
  // - [text] is an optional part of the path.
  std::string http;
  // The scope that a caller needs. If empty, a caller needs no authorization.
  std::optional<security::Scope> scope;
  // The name under which the metrics count the calls. Empty for methods that
  // take little time, for example health checks. Their calls are neither
  // counted nor logged. While the server drains, the HTTP transport still
  // answers their calls, but refuses the calls of all other methods.
  std::optional<observability::Method> metric;
  // Answers the calls. Null for a streaming method, which the transport serves.
  Handler handle;
};

// Counts and logs a call under the name of its caller. Not used for
// predictions, which have their own record. A prediction that MethodTable
// refuses is recorded by this class, too.
class CallRecord : public observability::RequestRecord {
 public:
  CallRecord(const prediction::TransportEnvironment& environment,
             observability::Method counted_as, const Call& call);
};

// Holds the server's methods and checks the caller of each call. Thread-safe.
class MethodTable {
 public:
  MethodTable(prediction::TransportEnvironment environment,
              std::vector<Method> methods)
      : env_(std::move(environment)), methods_(std::move(methods)) {}

  const prediction::TransportEnvironment& environment() const { return env_; }
  const std::vector<Method>& methods() const { return methods_; }

  // Checks the caller and passes the call to the method's handler. `method`
  // must be in this table. The table must outlive the call.
  void Serve(const Method& method, std::unique_ptr<Call> call) const;

 private:
  const prediction::TransportEnvironment env_;
  const std::vector<Method> methods_;
};

// Tells whether a method is about a model or about the whole server. The
// metrics count these two kinds of requests separately.
enum class About { kModel, kServer };

// A function that fills the response to a request. If the request is about a
// model, the function stores the model in `record`. If the function returns an
// error, the client receives this error.
template <typename Request, typename Response>
using Answer = std::function<absl::Status(
    const prediction::TransportEnvironment& environment, const Request& request,
    Response* response, observability::RequestRecord* record)>;

// Returns the handler of a method that responds immediately. `answer` fills the
// response.
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

// Returns the handler of a method that responds immediately and whose calls are
// not counted. `answer` fills the response.
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
