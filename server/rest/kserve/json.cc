#include "server/rest/kserve/json.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "server/errors/error.h"
#include "server/errors/reasons.h"
#include "server/rest/kserve/json_tree.h"

namespace sfmamba::rest {
namespace {

using Json = nlohmann::json;
using Kind = Json::value_t;
using Parameters =
    google::protobuf::Map<std::string, inference::InferParameter>;

// The maximum number of bytes of a parameter's name in an error message.
constexpr size_t kMaxKeyShown = 64;
// The maximum number of inputs or outputs in a request. No model has more.
constexpr size_t kMaxTensors = 16;
constexpr size_t kMaxDimensions = 16;
constexpr size_t kMaxParameters = 64;

absl::Status TooMany(absl::string_view field, size_t got, size_t most) {
  return server::InvalidField(
      field, absl::StrCat("got ", got, ", expected at most ", most));
}

// Sets `*member` to the member `name` of `object`, or to null if there is no
// such member. `field` is the path of `object` and is used in errors. Returns
// INVALID_ARGUMENT if the member is not of kind `kind`.
absl::Status Find(const Json& object, absl::string_view field, const char* name,
                  Kind kind, const Json** member) {
  const auto found = object.find(name);
  *member = found == object.end() ? nullptr : &*found;
  if (*member == nullptr || found->type() == kind) return absl::OkStatus();
  return WrongKind(absl::StrCat(field, name), found->type(), KindName(kind));
}

absl::Status ReadText(const Json& object, absl::string_view field,
                      const char* name, std::string* text) {
  const Json* member;
  const absl::Status status = Find(object, field, name, Kind::string, &member);
  if (member != nullptr && status.ok()) *text = member->get<std::string>();
  return status;
}

bool ToParameter(const Json& value, inference::InferParameter* parameter) {
  if (value.is_boolean()) {
    parameter->set_bool_param(value.get<bool>());
  } else if (value.is_number_unsigned() &&
             value.get<uint64_t>() > std::numeric_limits<int64_t>::max()) {
    parameter->set_uint64_param(value.get<uint64_t>());
  } else if (value.is_number_integer()) {
    parameter->set_int64_param(value.get<int64_t>());
  } else if (value.is_number_float()) {
    parameter->set_double_param(value.get<double>());
  } else if (value.is_string()) {
    parameter->set_string_param(value.get<std::string>());
  } else {
    return false;
  }
  return true;
}

// Reads the parameters of `object`. One parameter, whose name is the value of
// `own_name`, exists only in REST. Sets `*own` to the value of this parameter,
// or to null if the parameter is missing. Stores all other parameters in
// `parameters`. `field` is the path of `object` and is used in errors.
absl::Status ReadParameters(const Json& object, absl::string_view field,
                            absl::string_view own_name, const Json** own,
                            Parameters* parameters) {
  *own = nullptr;
  const Json* all;
  const absl::Status status =
      Find(object, field, "parameters", Kind::object, &all);
  if (!status.ok() || all == nullptr) return status;
  if (all->size() > kMaxParameters) {
    return TooMany(absl::StrCat(field, "parameters"), all->size(),
                   kMaxParameters);
  }
  for (const auto& [name, value] : all->items()) {
    if (name == own_name) {
      *own = &value;
    } else if (!ToParameter(value, &(*parameters)[name])) {
      return WrongKind(
          absl::StrCat(field, "parameters.", name.substr(0, kMaxKeyShown)),
          value.type(), "a boolean, a number or a string");
    }
  }
  return absl::OkStatus();
}

// Sets `*flag` to `own`, the value of a parameter. Does nothing if `own` is
// null. Returns INVALID_ARGUMENT if the value is not a boolean. `field` is the
// path of the parameter and is used in the error.
template <typename Flag>
absl::Status ReadFlag(const Json* own, absl::string_view field, Flag* flag) {
  if (own == nullptr) return absl::OkStatus();
  if (!own->is_boolean()) return WrongKind(field, own->type(), "a boolean");
  *flag = own->get<bool>();
  return absl::OkStatus();
}

absl::Status ReadShape(const Json& object, absl::string_view field,
                       inference::ModelInferRequest::InferInputTensor* input) {
  const Json* shape;
  const absl::Status status = Find(object, field, "shape", Kind::array, &shape);
  if (!status.ok() || shape == nullptr) return status;
  if (shape->size() > kMaxDimensions) {
    return TooMany(absl::StrCat(field, "shape"), shape->size(), kMaxDimensions);
  }
  for (const Json& side : *shape) {
    if (!side.is_number_integer() ||
        (side.is_number_unsigned() &&
         side.get<uint64_t>() > std::numeric_limits<int64_t>::max())) {
      return WrongKind(absl::StrCat(field, "shape[", input->shape_size(), "]"),
                       side.type(), "an integer of 64 bits");
    }
    input->add_shape(side.get<int64_t>());
  }
  return absl::OkStatus();
}

absl::Status ReadInput(const Json& object, absl::string_view field,
                       inference::ModelInferRequest::InferInputTensor* input,
                       InputData* data) {
  const Json *size, *array;
  absl::Status status = ReadText(object, field, "name", input->mutable_name());
  status.Update(ReadText(object, field, "datatype", input->mutable_datatype()));
  status.Update(ReadShape(object, field, input));
  status.Update(ReadParameters(object, field, "binary_data_size", &size,
                               input->mutable_parameters()));
  status.Update(Find(object, field, "data", Kind::array, &array));
  if (!status.ok() || size == nullptr) return status;
  const std::string own = absl::StrCat(field, "parameters.binary_data_size");
  if (!size->is_number_integer()) {
    return WrongKind(own, size->type(), "an integer of 0 or more");
  }
  data->binary_bytes = size->get<int64_t>();
  if (*data->binary_bytes < 0) {
    return server::InvalidField(
        own, absl::StrCat("got ", *data->binary_bytes, ", expected 0 or more"));
  }
  if (array == nullptr) return absl::OkStatus();
  return server::InvalidField(
      absl::StrCat(field, "data"),
      "got it beside parameters.binary_data_size, expected one of them");
}

// Calls `read` with each object in the array `name` of `root` and with the path
// of the object, such as "inputs[0].".
template <typename Read>
absl::Status ForEach(const Json& root, const char* name, Read read) {
  const Json* array;
  absl::Status status = Find(root, "", name, Kind::array, &array);
  if (!status.ok() || array == nullptr) return status;
  if (array->size() > kMaxTensors) {
    return TooMany(name, array->size(), kMaxTensors);
  }
  for (size_t i = 0; i < array->size() && status.ok(); ++i) {
    const std::string field = absl::StrCat(name, "[", i, "]");
    const Json& object = (*array)[i];
    status = object.is_object() ? read(object, field + ".")
                                : WrongKind(field, object.type(), "an object");
  }
  return status;
}

absl::Status ReadMessage(const Json& root, InferJson* result) {
  inference::ModelInferRequest& message = result->message;
  const Json* own;
  absl::Status status = ReadText(root, "", "id", message.mutable_id());
  status.Update(ReadParameters(root, "", "binary_data_output", &own,
                               message.mutable_parameters()));
  status.Update(ReadFlag(own, "parameters.binary_data_output",
                         &result->outputs.default_binary));
  status.Update(ForEach(root, "inputs",
                        [&](const Json& object, const std::string& field) {
                          return ReadInput(object, field, message.add_inputs(),
                                           &result->inputs.emplace_back());
                        }));
  status.Update(ForEach(
      root, "outputs", [&](const Json& object, const std::string& field) {
        auto* output = message.add_outputs();
        absl::Status read =
            ReadText(object, field, "name", output->mutable_name());
        read.Update(ReadParameters(object, field, "binary_data", &own,
                                   output->mutable_parameters()));
        read.Update(ReadFlag(own, absl::StrCat(field, "parameters.binary_data"),
                             &result->outputs.binary.emplace_back()));
        return read;
      }));
  return status;
}

}  // namespace

bool OutputForms::IsBinary(int output) const {
  return output < static_cast<int>(binary.size())
             ? binary[output].value_or(default_binary)
             : default_binary;
}

bool OutputForms::AnyJson() const {
  if (binary.empty()) return !default_binary;
  return std::any_of(binary.begin(), binary.end(),
                     [this](std::optional<bool> one) {
                       return !one.value_or(default_binary);
                     });
}

absl::StatusOr<InferJson> ReadInferJson(absl::string_view json,
                                        int64_t max_raw_bytes) {
  absl::StatusOr<InferTree> tree = ReadInferTree(json, max_raw_bytes);
  if (!tree.ok()) return tree.status();
  InferJson result;
  const absl::Status status = ReadMessage(tree->root, &result);
  if (!status.ok()) return status;
  for (auto& [i, elements] : tree->data) {
    // The elements are converted only now because "datatype" may come after
    // "data".
    absl::StatusOr<std::string> raw =
        elements.Take(result.message.inputs(i).datatype());
    if (!raw.ok()) {
      return server::AtField(absl::StrCat("inputs[", i, "].data"),
                             raw.status());
    }
    result.inputs[i].raw = *std::move(raw);
  }
  return result;
}

}  // namespace sfmamba::rest
