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

// A value of a COCO file. It knows its place in the file, so that errors name
// it, for example "annotations.json: images[3].id: got \"x\", expected a whole
// number". All errors are INVALID_ARGUMENT. Copies share the file's contents.
class CocoJson {
 public:
  // Returns the object that is the whole of `text`. `file` is its name in
  // errors.
  static absl::StatusOr<CocoJson> Parse(const std::string& file,
                                        const std::string& text);

  // These methods return the value, or an error if it has another type.
  absl::StatusOr<CocoJson> AsList() const;
  absl::StatusOr<std::string> AsText() const;
  // Returns a number without a fraction. It may be written as 1.0.
  absl::StatusOr<int64_t> AsWhole() const;
  absl::StatusOr<int> AsSide() const;   // A picture's side, 1 to 65535.
  absl::StatusOr<bool> AsFlag() const;  // 0, 1 or a boolean.
  absl::StatusOr<std::vector<double>> AsNumbers() const;
  absl::StatusOr<std::vector<int64_t>> AsWholes() const;

  // Returns the number of elements of a list.
  size_t size() const { return value_->size(); }
  CocoJson at(size_t index) const;

  // These methods look up the member `key` of an object. A member that is null
  // counts as missing.
  bool Has(const std::string& key) const;
  absl::StatusOr<CocoJson> Get(const std::string& key) const;
  absl::StatusOr<CocoJson> List(const std::string& key) const;
  absl::StatusOr<std::string> Text(const std::string& key) const;
  absl::StatusOr<int64_t> Whole(const std::string& key) const;
  absl::StatusOr<int> Side(const std::string& key) const;

  // Returns the JSON value.
  const nlohmann::json& value() const { return *value_; }
  // Returns an error that names the value's place.
  absl::Status Error(absl::string_view message) const;

 private:
  CocoJson(std::shared_ptr<const nlohmann::json> root,
           const nlohmann::json* value, std::string where)
      : root_(std::move(root)), value_(value), where_(std::move(where)) {}

  // Returns an error that names the value's place and shows the value.
  absl::Status Wrong(absl::string_view expected) const;

  std::shared_ptr<const nlohmann::json> root_;
  const nlohmann::json* value_;
  std::string where_;
};

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_EVAL_COCO_JSON_H_
