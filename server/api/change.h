#ifndef SFMAMBA_SERVER_API_CHANGE_H_
#define SFMAMBA_SERVER_API_CHANGE_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "server/admin/model_changes.h"
#include "server/call/call.h"
#include "server/call/change_call.h"
#include "server/call/method_table.h"
#include "server/observability/metrics.h"
#include "server/prediction/transport_environment.h"
#include "server/repository/model_repository.h"

namespace sfmamba::api {

// Returns the handler of a method that changes the server. `start` begins the
// change for the caller `who`. `start` must call its argument `done` when the
// change has ended. `fill` then fills the response. `fill` may be called after
// the MethodTable was destroyed.
template <typename Request, typename Response>
call::Handler Change(
    std::function<void(const prediction::TransportEnvironment& environment,
                       const std::string& who, const Request& request,
                       admin::ModelChanges::Done done)>
        start,
    std::function<void(const repository::ModelRepository& repository,
                       const Request& request, Response* response)>
        fill) {
  return [start = std::move(start), fill = std::move(fill)](
             const prediction::TransportEnvironment& environment,
             observability::Method counted_as,
             std::unique_ptr<call::Call> call) {
    const auto change =
        call::ChangeCall::New(environment, counted_as, std::move(call));
    Request request;
    const absl::Status status = change->Read(&request);
    if (!status.ok()) return change->End(status, nullptr);
    start(environment, admin::WhoIs(change->info().caller, change->info().peer),
          request,
          {[change, request, fill,
            &repository = environment.repository](const absl::Status& status) {
             Response response;
             if (status.ok()) fill(repository, request, &response);
             change->End(status, &response);
           },
           [change] { return change->client_has_gone(); }});
  };
}

}  // namespace sfmamba::api

#endif  // SFMAMBA_SERVER_API_CHANGE_H_
