#ifndef SFMAMBA_TESTS_MODEL_DTYPE_FLAG_H_
#define SFMAMBA_TESTS_MODEL_DTYPE_FLAG_H_

#include <string>

#include "absl/strings/string_view.h"
#include "model/config.h"

// Makes Precision usable as the type of a benchmark's flag --dtype:
//   ABSL_FLAG(sfmamba::model::Precision, dtype, Precision::kFloat32, kDtypes);
namespace sfmamba::model {

constexpr char kDtypes[] = "fp32, bf16 or int8";

inline std::string AbslUnparseFlag(Precision precision) {
  switch (precision) {
    case Precision::kFloat32:
      return "fp32";
    case Precision::kBFloat16:
      return "bf16";
    case Precision::kFloat16:
      return "fp16";
    case Precision::kInt8:
      return "int8";
  }
  return "";
}

inline bool AbslParseFlag(absl::string_view text, Precision* precision,
                          std::string* error) {
  for (const Precision known :
       {Precision::kFloat32, Precision::kBFloat16, Precision::kInt8}) {
    *precision = known;
    if (text == AbslUnparseFlag(known)) return true;
  }
  *error = std::string("expected ") + kDtypes;
  return false;
}

}  // namespace sfmamba::model

#endif  // SFMAMBA_TESTS_MODEL_DTYPE_FLAG_H_
