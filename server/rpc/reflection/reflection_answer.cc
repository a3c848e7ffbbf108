#include "server/rpc/reflection/reflection_answer.h"

#include <set>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "google/protobuf/descriptor_database.h"
#include "grpcpp/support/status.h"

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

}  // namespace sfmamba::rpc
