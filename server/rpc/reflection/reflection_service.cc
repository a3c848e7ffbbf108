#include "server/rpc/reflection/reflection_service.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "google/protobuf/descriptor_database.h"
#include "server/errors/reasons.h"
#include "server/rpc/call.h"
#include "server/rpc/grpc_status.h"

namespace sfmamba::rpc {

using google::protobuf::FileDescriptorProto;
using grpc::reflection::v1alpha::ServerReflectionRequest;
using grpc::reflection::v1alpha::ServerReflectionResponse;
using Files = google::protobuf::DescriptorPoolDatabase;

namespace {

void SetError(grpc::StatusCode code, const std::string& message,
              ServerReflectionResponse* response) {
  response->mutable_error_response()->set_error_code(code);
  response->mutable_error_response()->set_error_message(message);
}

void SetNotFound(ServerReflectionResponse* response) {
  SetError(grpc::StatusCode::NOT_FOUND, "not found", response);
}

// Adds the file and all that it imports, each once.
void AddFile(const FileDescriptorProto& file, Files* files,
             std::set<std::string>* added, ServerReflectionResponse* response) {
  if (!added->insert(file.name()).second) return;
  file.SerializeToString(response->mutable_file_descriptor_response()
                             ->add_file_descriptor_proto());
  for (const std::string& name : file.dependency()) {
    FileDescriptorProto imported;
    if (files->FindFileByName(name, &imported)) {
      AddFile(imported, files, added, response);
    }
  }
}

// Finds the file that is asked for; false if there is none.
bool FindFile(const ServerReflectionRequest& request, Files* files,
              FileDescriptorProto* file) {
  switch (request.message_request_case()) {
    case ServerReflectionRequest::kFileByFilename:
      return files->FindFileByName(request.file_by_filename(), file);
    case ServerReflectionRequest::kFileContainingSymbol:
      return files->FindFileContainingSymbol(request.file_containing_symbol(),
                                             file);
    default:
      return files->FindFileContainingExtension(
          request.file_containing_extension().containing_type(),
          request.file_containing_extension().extension_number(), file);
  }
}

}  // namespace

ServerReflectionResponse Reflect(const ServerReflectionRequest& request,
                                 const std::vector<std::string>& services) {
  Files files(*google::protobuf::DescriptorPool::generated_pool());
  ServerReflectionResponse response;
  response.set_valid_host(request.host());
  *response.mutable_original_request() = request;
  switch (request.message_request_case()) {
    case ServerReflectionRequest::MESSAGE_REQUEST_NOT_SET:
      SetError(grpc::StatusCode::INVALID_ARGUMENT, "nothing is asked for",
               &response);
      break;
    case ServerReflectionRequest::kListServices:
      for (const std::string& name : services) {
        response.mutable_list_services_response()->add_service()->set_name(
            name);
      }
      break;
    case ServerReflectionRequest::kAllExtensionNumbersOfType: {
      const std::string& type = request.all_extension_numbers_of_type();
      std::vector<int> numbers;
      if (!files.FindAllExtensionNumbers(type, &numbers)) {
        SetNotFound(&response);
        break;
      }
      auto* answer = response.mutable_all_extension_numbers_response();
      answer->set_base_type_name(type);
      answer->mutable_extension_number()->Add(numbers.begin(), numbers.end());
      break;
    }
    default: {
      FileDescriptorProto file;
      std::set<std::string> added;
      if (FindFile(request, &files, &file)) {
        AddFile(file, &files, &added, &response);
      } else {
        SetNotFound(&response);
      }
    }
  }
  return response;
}

// One stream: reads a request, sends its answer, reads the next.
class ReflectionService::Stream final
    : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  Stream(ReflectionService* service, std::string client,
         grpc::CallbackServerContext* context)
      : client_(std::move(client)), service_(*service), context_(*context) {}

  const std::string& client() const { return client_; }

  // For callers inside the service, which hold its mu_.
  void AssertLocked() const ABSL_ASSERT_EXCLUSIVE_LOCK(service_.mu_) {
    service_.mu_.AssertHeld();
  }

  void Read() ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_.mu_) {
    if (!finished_) StartRead(&request_);
  }

  // Ends the stream, once what is being sent is sent.
  void End(const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_.mu_) {
    if (finished_) return;
    finished_ = true;
    end_ = EndCall(status, &context_);
    if (!writing_) Finish(end_);
  }

  void OnReadDone(bool ok) override {
    ServerReflectionRequest request;
    absl::Status status;
    if (ok) status = Take(&request);
    // Without the lock, for which all streams wait: it takes 0.1 ms.
    if (ok && status.ok()) {
      Serialize(Reflect(request, service_.services_), &response_);
    }
    absl::MutexLock lock(&service_.mu_);
    if (!ok || !status.ok()) return End(status);
    if (finished_) return;
    writing_ = true;
    StartWrite(&response_);
  }

  void OnWriteDone(bool ok) override {
    absl::MutexLock lock(&service_.mu_);
    writing_ = false;
    if (finished_) return Finish(end_);
    if (!ok) return End(absl::CancelledError("the caller has gone"));
    Read();
  }

  void OnDone() override {
    {
      absl::MutexLock lock(&service_.mu_);
      service_.streams_.erase(this);
    }
    delete this;
  }

 private:
  // Parses what was read, if the caller may read still.
  absl::Status Take(ServerReflectionRequest* request) const {
    const absl::Status allowed =
        CheckCaller(&service_.gate_, context_, security::Scope::kRead).status();
    if (!allowed.ok()) return allowed;
    if (request_.Length() > kMostRequestBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("a request of ", request_.Length(), " bytes, at most ",
                       kMostRequestBytes, " are read"));
    }
    return Parse(request_, request);
  }

  const std::string client_;  // The caller's name.
  ReflectionService& service_;
  grpc::CallbackServerContext& context_;
  grpc::ByteBuffer request_, response_;
  bool writing_ ABSL_GUARDED_BY(service_.mu_) = false;
  bool finished_ ABSL_GUARDED_BY(service_.mu_) = false;
  grpc::Status end_ ABSL_GUARDED_BY(service_.mu_);
};

ReflectionService::ReflectionService(const security::Gate* gate,
                                     std::vector<std::string> services)
    : gate_(*gate), services_(std::move(services)) {}

void ReflectionService::EndStreams() {
  absl::MutexLock lock(&mu_);
  ended_ = true;
  for (Stream* stream : streams_) {
    stream->AssertLocked();
    stream->End(server::Draining("the server"));
  }
}

StreamReactor* ReflectionService::ServerReflectionInfo(
    grpc::CallbackServerContext* context) {
  const absl::StatusOr<security::Caller> caller =
      CheckCaller(&gate_, *context, security::Scope::kRead);
  if (!caller.ok())
    return new Refused<StreamReactor>(EndCall(caller.status(), context));
  absl::MutexLock lock(&mu_);
  if (ended_) {
    return new Refused<StreamReactor>(
        EndCall(server::Draining("the server"), context));
  }
  const size_t of_client = std::count_if(
      streams_.begin(), streams_.end(),
      [&](const Stream* s) { return s->client() == caller->name; });
  if (streams_.size() >= kMostStreams || of_client >= kMostOfClient) {
    return new Refused<StreamReactor>(
        EndCall(absl::ResourceExhaustedError(absl::StrCat(
                    "at most ", kMostStreams, " streams of reflection, ",
                    kMostOfClient, " of one client, are served")),
                context));
  }
  auto* stream = new Stream(this, caller->name, context);
  stream->AssertLocked();
  streams_.insert(stream);
  stream->Read();
  return stream;
}

}  // namespace sfmamba::rpc
