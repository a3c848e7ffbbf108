#include "server/rest/kserve/json_scalar.h"

#include <utility>

namespace sfmamba::rest {
namespace {

struct Set {
  inference::InferParameter* parameter;

  bool operator()(std::nullptr_t) const { return false; }
  bool operator()(bool value) const {
    parameter->set_bool_param(value);
    return true;
  }
  bool operator()(int64_t value) const {
    parameter->set_int64_param(value);
    return true;
  }
  bool operator()(uint64_t value) const {
    parameter->set_uint64_param(value);
    return true;
  }
  bool operator()(double value) const {
    parameter->set_double_param(value);
    return true;
  }
  bool operator()(std::string* value) const {
    parameter->set_string_param(std::move(*value));
    return true;
  }
};

}  // namespace

const char* NameOf(const Scalar& value) {
  static constexpr const char* kNames[] = {
      "null", "a boolean", "an integer", "an integer", "a number", "a string"};
  return kNames[value.index()];
}

bool ToParameter(const Scalar& value, inference::InferParameter* parameter) {
  return std::visit(Set{parameter}, value);
}

}  // namespace sfmamba::rest
