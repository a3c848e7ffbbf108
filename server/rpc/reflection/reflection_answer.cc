#include "server/rpc/reflection/reflection_answer.h"

#include <set>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "grpcpp/support/status.h"

namespace sfmamba::rpc {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using grpc::reflection::v1alpha::FileDescriptorResponse;
using grpc::reflection::v1alpha::ServerReflectionRequest;
using grpc::reflection::v1alpha::ServerReflectionResponse;

namespace {

// Adds the file and all that it imports, each once.
void AddFile(const FileDescriptor& file, std::set<const FileDescriptor*>* added,
             FileDescriptorResponse* response) {
  if (!added->insert(&file).second) return;
  google::protobuf::FileDescriptorProto proto;
  file.CopyTo(&proto);
  proto.SerializeToString(response->add_file_descriptor_proto());
  for (int i = 0; i < file.dependency_count(); ++i) {
    AddFile(*file.dependency(i), added, response);
  }
}

void SetError(grpc::StatusCode code, const std::string& message,
              ServerReflectionResponse* response) {
  response->mutable_error_response()->set_error_code(code);
  response->mutable_error_response()->set_error_message(message);
}

// `file` may be null: there is none.
void SetFile(const FileDescriptor* file, ServerReflectionResponse* response) {
  if (file == nullptr) {
    return SetError(grpc::StatusCode::NOT_FOUND, "not found", response);
  }
  std::set<const FileDescriptor*> added;
  AddFile(*file, &added, response->mutable_file_descriptor_response());
}

void SetExtensions(const std::string& type,
                   ServerReflectionResponse* response) {
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  const Descriptor* descriptor = pool.FindMessageTypeByName(type);
  if (descriptor == nullptr) {
    return SetError(grpc::StatusCode::NOT_FOUND, "not found", response);
  }
  auto* numbers = response->mutable_all_extension_numbers_response();
  numbers->set_base_type_name(type);
  std::vector<const FieldDescriptor*> extensions;
  pool.FindAllExtensions(descriptor, &extensions);
  for (const FieldDescriptor* extension : extensions) {
    numbers->add_extension_number(extension->number());
  }
}

const FileDescriptor* FileOfExtension(const std::string& type, int number) {
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  const Descriptor* descriptor = pool.FindMessageTypeByName(type);
  if (descriptor == nullptr) return nullptr;
  const FieldDescriptor* extension =
      pool.FindExtensionByNumber(descriptor, number);
  return extension == nullptr ? nullptr : extension->file();
}

}  // namespace

ServerReflectionResponse Reflect(const ServerReflectionRequest& request,
                                 const std::vector<std::string>& services) {
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  ServerReflectionResponse response;
  response.set_valid_host(request.host());
  *response.mutable_original_request() = request;
  switch (request.message_request_case()) {
    case ServerReflectionRequest::kFileByFilename:
      SetFile(pool.FindFileByName(request.file_by_filename()), &response);
      break;
    case ServerReflectionRequest::kFileContainingSymbol:
      SetFile(pool.FindFileContainingSymbol(request.file_containing_symbol()),
              &response);
      break;
    case ServerReflectionRequest::kFileContainingExtension: {
      const auto& asked = request.file_containing_extension();
      SetFile(
          FileOfExtension(asked.containing_type(), asked.extension_number()),
          &response);
      break;
    }
    case ServerReflectionRequest::kAllExtensionNumbersOfType:
      SetExtensions(request.all_extension_numbers_of_type(), &response);
      break;
    case ServerReflectionRequest::kListServices:
      for (const std::string& name : services) {
        response.mutable_list_services_response()->add_service()->set_name(
            name);
      }
      break;
    case ServerReflectionRequest::MESSAGE_REQUEST_NOT_SET:
      SetError(grpc::StatusCode::INVALID_ARGUMENT, "nothing is asked for",
               &response);
  }
  return response;
}

}  // namespace sfmamba::rpc
