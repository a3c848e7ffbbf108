#include "server/rest/open_api.h"

#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "nlohmann/json.hpp"
#include "server/rest/proto_set.h"
#include "server/rest/query_fields.h"

namespace sfmamba::rest {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using Json = nlohmann::ordered_json;

constexpr char kPackage[] = "sfmamba.v1.";
constexpr char kAbout[] =
    "Asks vision models about pictures. Beside it the server speaks the Open "
    "Inference Protocol under /v2, and gRPC at another port.";

// Adds what the proto says about a message, a field or a method.
template <typename Described>
Json Commented(const Described& described, Json json) {
  google::protobuf::SourceLocation place;
  if (!described.GetSourceLocation(&place)) return json;
  std::string text =
      absl::StrCat(place.leading_comments, place.trailing_comments);
  absl::StripAsciiWhitespace(&text);
  if (!text.empty()) {
    json["description"] = absl::StrReplaceAll(text, {{"\n ", "\n"}});
  }
  return json;
}

Json Binary() { return {{"type", "string"}, {"format", "binary"}}; }

Json Content(const std::string& type, Json schema) {
  return {{type, {{"schema", std::move(schema)}}}};
}

Json Response(const std::string& description, Json content) {
  return {{"description", description}, {"content", std::move(content)}};
}

Json Parameter(const std::string& name, const char* in, Json schema) {
  Json parameter = {{"name", name}, {"in", in}, {"schema", std::move(schema)}};
  if (std::string(in) == "path") parameter["required"] = true;
  return parameter;
}

// Writes the description from the descriptors of vision.proto.
class Writer {
 public:
  explicit Writer(const google::protobuf::DescriptorPool& pool) : pool_(pool) {}

  Json Paths();
  // Writes all messages that the paths have named.
  Json Schemas();

 private:
  const Descriptor* Find(const std::string& message) const {
    return pool_.FindMessageTypeByName(kPackage + message);
  }
  // Returns a reference to a message's schema.
  Json Message(const Descriptor& type);
  Json Value(const FieldDescriptor& field);
  Json Field(const FieldDescriptor& field);

  Json Operation(const std::string& method, const std::string& id,
                 Json parameters, const std::string& answer);
  Json Predict(const std::string& method, const std::string& id,
               Json parameters);
  Json QueryOf(const std::vector<const Descriptor*>& types);

  const google::protobuf::DescriptorPool& pool_;
  Json schemas_ = Json::object();
  std::vector<const Descriptor*> unwritten_;
};

Json Writer::Message(const Descriptor& type) {
  const std::string& full = type.full_name();
  if (full == "google.protobuf.Timestamp") {
    return {{"type", "string"}, {"format", "date-time"}};
  }
  if (full == "google.protobuf.Duration") {
    return {{"type", "string"}, {"pattern", "^-?[0-9]+(\\.[0-9]+)?s$"}};
  }
  if (full == "google.protobuf.Any") {
    return {{"type", "object"},
            {"properties", {{"@type", {{"type", "string"}}}}},
            {"additionalProperties", true}};
  }
  const std::string name(absl::StripPrefix(full, kPackage));
  if (!schemas_.contains(name)) {
    schemas_[name] = Json::object();
    unwritten_.push_back(&type);
  }
  return {{"$ref", absl::StrCat("#/components/schemas/", name)}};
}

Json Writer::Value(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return {{"type", "integer"}, {"format", "int32"}};
    case FieldDescriptor::CPPTYPE_INT64:
      return {{"type", "string"}, {"format", "int64"}};
    case FieldDescriptor::CPPTYPE_FLOAT:
      return {{"type", "number"}, {"format", "float"}};
    case FieldDescriptor::CPPTYPE_BOOL:
      return {{"type", "boolean"}};
    case FieldDescriptor::CPPTYPE_ENUM: {
      Json names = Json::array();
      for (int i = 0; i < field.enum_type()->value_count(); ++i) {
        names.push_back(field.enum_type()->value(i)->name());
      }
      return {{"type", "string"}, {"enum", names}};
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return Message(*field.message_type());
    default:
      if (field.type() != FieldDescriptor::TYPE_BYTES) {
        return {{"type", "string"}};
      }
      return {{"type", "string"}, {"format", "byte"}};
  }
}

Json Writer::Field(const FieldDescriptor& field) {
  const bool is_list = field.is_repeated();
  Json schema = Value(field);
  if (is_list) schema = {{"type", "array"}, {"items", std::move(schema)}};
  // What stands beside a reference is not read.
  return schema.contains("$ref") ? schema : Commented(field, schema);
}

Json Writer::Schemas() {
  while (!unwritten_.empty()) {
    const Descriptor& type = *unwritten_.back();
    unwritten_.pop_back();
    Json properties = Json::object();
    for (int i = 0; i < type.field_count(); ++i) {
      properties[type.field(i)->json_name()] = Field(*type.field(i));
    }
    schemas_[std::string(absl::StripPrefix(type.full_name(), kPackage))] =
        Commented(type, {{"type", "object"}, {"properties", properties}});
  }
  return std::move(schemas_);
}

Json Writer::QueryOf(const std::vector<const Descriptor*>& types) {
  Json parameters = Json::array();
  for (const QueryParameter& query : QueryParameters(types)) {
    if (query.name == "model") continue;  // The path has it.
    Json parameter = Parameter(query.name, "query", Field(*query.field));
    if (query.field->is_repeated()) parameter["explode"] = false;
    parameters.push_back(std::move(parameter));
  }
  return parameters;
}

Json Writer::Operation(const std::string& method, const std::string& id,
                       Json parameters, const std::string& answer) {
  Json error = Message(*pool_.FindMessageTypeByName("google.rpc.Status"));
  return Commented(
      *pool_.FindMethodByName(absl::StrCat(kPackage, "VisionService.", method)),
      {{"operationId", id},
       {"parameters", std::move(parameters)},
       {"responses",
        {{"200", Response("The answer.",
                          Content("application/json", Message(*Find(answer))))},
         {"default", Response("The error.", Content("application/json",
                                                    std::move(error)))}}}});
}

Json Writer::Predict(const std::string& method, const std::string& id,
                     Json parameters) {
  const Descriptor* request = Find(method + "Request");
  for (const Json& one : QueryOf({request, Find(method + "Params"),
                                  Find("RequestOptions"), Find("Image")})) {
    parameters.push_back(one);
  }
  Json operation =
      Operation(method, id, std::move(parameters), method + "Response");
  Json content = Content("image/*", Binary());
  content.update(Content("application/octet-stream", Binary()));
  content.update(Content(
      "multipart/form-data",
      {{"type", "object"},
       {"required", {"image"}},
       {"properties", {{"image", {{"type", "array"}, {"items", Binary()}}}}}}));
  content.update(Content("application/json", Message(*request)));
  content.update(Content("application/x-protobuf", Binary()));
  operation["requestBody"] = {
      {"description",
       "Pictures, whose parameters are in the query; or a message, which has "
       "them in itself."},
      {"required", true},
      {"content", std::move(content)}};
  return operation;
}

Json Writer::Paths() {
  Json paths = Json::object();
  for (const char* path : {"/healthz", "/livez", "/readyz", "/metrics"}) {
    const Json text = Content("text/plain", {{"type", "string"}});
    Json responses = {{"200", Response("It is well.", text)}};
    if (std::string(path) != "/metrics") {
      responses["503"] = Response("It is not.", text);
    }
    paths[path]["get"] = {{"operationId", std::string(path).substr(1)},
                          {"responses", responses}};
  }
  paths["/v1/models"]["get"] =
      Operation("ListModels", "listModels",
                QueryOf({Find("ListModelsRequest")}), "ListModelsResponse");
  for (const bool versioned : {false, true}) {
    std::string path = "/v1/models/{model}";
    std::string end;  // Ends the names of operations.
    Json parameters = {Parameter("model", "path", {{"type", "string"}})};
    if (versioned) {
      path += "/versions/{version}";
      end = "Version";
      parameters.push_back(Parameter("version", "path", {{"type", "integer"}}));
    }
    paths[path]["get"] =
        Operation("GetModel", "getModel" + end, parameters, "Model");
    for (const char* method : {"Classify", "Detect", "Segment"}) {
      const std::string verb = absl::AsciiStrToLower(method);
      paths[path + ":" + verb]["post"] =
          Predict(method, verb + end, parameters);
    }
  }
  return paths;
}

}  // namespace

std::string OpenApi(absl::string_view version) {
  google::protobuf::FileDescriptorSet files;
  const absl::string_view bytes = ProtoSet();
  if (!files.ParseFromArray(bytes.data(), bytes.size())) return "{}";
  google::protobuf::DescriptorPool pool;
  for (const auto& file : files.file()) pool.BuildFile(file);
  Writer writer(pool);
  Json paths = writer.Paths();
  const Json document = {
      {"openapi", "3.0.3"},
      {"info",
       {{"title", "SF-Mamba vision server"},
        {"description", kAbout},
        {"version", std::string(version)}}},
      {"paths", std::move(paths)},
      {"components",
       {{"schemas", writer.Schemas()},
        {"securitySchemes",
         {{"token", {{"type", "http"}, {"scheme", "bearer"}}}}}}},
      // A token, or none where the server has none.
      {"security", {{{"token", Json::array()}}, Json::object()}}};
  return document.dump(1);
}

}  // namespace sfmamba::rest
