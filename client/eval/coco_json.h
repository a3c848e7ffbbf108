#ifndef SFMAMBA_CLIENT_EVAL_COCO_JSON_H_
#define SFMAMBA_CLIENT_EVAL_COCO_JSON_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace sfmamba::client {

// A value of a COCO file that knows its place in it, so that errors name it:
// "annotations.json: images[3].id: got \"x\", expected a whole number". All
// errors are INVALID_ARGUMENT. Copies share the file's values.
class CocoJson {
 public:
  // The object that is the whole of `text`; `file` is its name in errors.
  static absl::StatusOr<CocoJson> Parse(const std::string& file,
                                        const std::string& text);

  // The value as the type that is expected.
  absl::StatusOr<CocoJson> AsList() const;
  absl::StatusOr<std::string> AsText() const;
  // A number without a fraction, also if it is written as 1.0.
  absl::StatusOr<int64_t> AsWhole() const;
  absl::StatusOr<int> AsSide() const;   // A picture's side, 1 to 65535.
  absl::StatusOr<bool> AsFlag() const;  // 0, 1 or a boolean.
  absl::StatusOr<std::vector<double>> AsNumbers() const;
  absl::StatusOr<std::vector<int64_t>> AsWholes() const;

  // The elements of a list.
  size_t size() const { return value_->size(); }
  CocoJson at(size_t index) const;

  // A member of an object. One that is null is as if it were missing.
  bool Has(const std::string& key) const;
  absl::StatusOr<CocoJson> Get(const std::string& key) const;
  absl::StatusOr<CocoJson> List(const std::string& key) const;
  absl::StatusOr<std::string> Text(const std::string& key) const;
  absl::StatusOr<int64_t> Whole(const std::string& key) const;
  absl::StatusOr<int> Side(const std::string& key) const;

  // The value as it is.
  const nlohmann::json& value() const { return *value_; }
  // An error that names the value's place.
  absl::Status Error(absl::string_view message) const;

 private:
  CocoJson(std::shared_ptr<const nlohmann::json> root,
           const nlohmann::json* value, std::string where)
      : root_(std::move(root)), value_(value), where_(std::move(where)) {}

  // An error that shows the value.
  absl::Status Wrong(absl::string_view expected) const;

  std::shared_ptr<const nlohmann::json> root_;
  const nlohmann::json* value_;
  std::string where_;
};

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_EVAL_COCO_JSON_H_
