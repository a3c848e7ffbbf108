#include "server/rest/kserve/elements.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/errors/reasons.h"

namespace sfmamba::rest {
namespace {

constexpr int kLengthBytes = 4;  // Bytes before each element of BYTES.

absl::Status Error(absl::string_view message) {
  return server::InvalidField("", message);
}

}  // namespace

absl::Status JsonElements::Begin(Kind kind, int64_t bytes) {
  if (kind_ == Kind::kNone) {
    kind_ = kind;
    // A number and its comma take at least two bytes of JSON and four here.
    // Reserving all costs nothing until it is written; growing would copy.
    raw_.reserve(std::min(max_bytes_, 2 * json_bytes_));
  }
  if (kind_ != kind) {
    return Error(absl::StrCat("got numbers and strings, the first after ",
                              count_, " elements, expected one of them"));
  }
  if (bytes > max_bytes_ - static_cast<int64_t>(raw_.size())) {
    return Error(absl::StrCat("got more than ", max_bytes_,
                              " bytes of elements, expected less"));
  }
  return absl::OkStatus();
}

absl::Status JsonElements::AddNumber(double value) {
  const absl::Status status = Begin(Kind::kNumbers, sizeof(float));
  if (!status.ok()) return status;
  if (not_uint8_.ok() &&
      !(value >= 0 && value <= 255 && value == static_cast<uint8_t>(value))) {
    not_uint8_ = Error(absl::StrCat("got ", value, " as element ", count_,
                                    ", expected an integer of 0 to 255"));
  }
  if (not_fp32_.ok() && std::abs(value) > std::numeric_limits<float>::max()) {
    not_fp32_ = Error(absl::StrCat("got ", value, " as element ", count_,
                                   ", expected a number that FP32 has"));
  }
  // A conversion beyond float's range is undefined.
  const float number = not_fp32_.ok() ? static_cast<float>(value) : 0;
  raw_.append(reinterpret_cast<const char*>(&number), sizeof(number));
  ++count_;
  return absl::OkStatus();
}

absl::Status JsonElements::AddBytes(absl::string_view bytes) {
  const int64_t size = bytes.size();
  const absl::Status status = Begin(Kind::kBytes, kLengthBytes + size);
  if (!status.ok()) return status;
  const uint32_t length = static_cast<uint32_t>(size);
  raw_.append(reinterpret_cast<const char*>(&length), kLengthBytes);
  raw_.append(bytes.data(), bytes.size());
  ++count_;
  return absl::OkStatus();
}

absl::Status JsonElements::AddBase64(absl::string_view text) {
  std::string bytes;
  if (absl::Base64Unescape(text, &bytes)) return AddBytes(bytes);
  return Error(absl::StrCat("got no base64 as element ", count_,
                            ", expected {\"b64\": \"<base64>\"}"));
}

std::string JsonElements::Narrow() const {
  std::string bytes(count_, '\0');
  for (int64_t i = 0; i < count_; ++i) {
    float number;
    std::memcpy(&number, &raw_[i * sizeof(number)], sizeof(number));
    bytes[i] = static_cast<char>(static_cast<uint8_t>(number));
  }
  return bytes;
}

absl::StatusOr<std::string> JsonElements::Take(absl::string_view datatype) {
  const bool bytes = datatype == "BYTES";
  if (bytes && kind_ == Kind::kNumbers) {
    return Error("got numbers, expected the strings of BYTES");
  }
  if (!bytes && kind_ == Kind::kBytes) {
    return Error("got strings, expected numbers, or the datatype BYTES");
  }
  if (datatype == "FP16" || datatype == "BF16") {
    return Error(absl::StrCat("got numbers of ", datatype,
                              ", which exist as binary data only"));
  }
  if (datatype == "UINT8") {
    if (!not_uint8_.ok()) return not_uint8_;
    return Narrow();
  }
  if (!bytes && !not_fp32_.ok()) return not_fp32_;
  return std::move(raw_);
}

}  // namespace sfmamba::rest
