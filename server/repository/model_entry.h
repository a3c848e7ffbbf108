#ifndef SFMAMBA_SERVER_REPOSITORY_MODEL_ENTRY_H_
#define SFMAMBA_SERVER_REPOSITORY_MODEL_ENTRY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "server/repository/model_version.h"

namespace sfmamba::repository {

// Labels with a special meaning. A model name without version or label selects
// the version with the label `stable`. If no version has this label, the name
// selects the highest READY version. However, the version with the label
// `canary` is selected only if no other version is READY.
inline constexpr char kStableLabel[] = "stable";
inline constexpr char kCanaryLabel[] = "canary";

// The versions of one model that callers can select, and the labels of these
// versions.
//
// Thread-compatible.
class ModelEntry {
 public:
  using Version = std::shared_ptr<ModelVersion>;

  const std::map<int64_t, Version>& versions() const { return versions_; }
  // These two functions return the version, or null if there is no such
  // version.
  Version Find(int64_t number) const;
  Version FindLabelled(const std::string& label) const;

  // Adds the version. Replaces a version with the same number.
  void Put(Version version);
  // Removes the version and its labels.
  void Remove(int64_t number);

  // Returns the version number that each label selects.
  const std::map<std::string, int64_t>& labels() const { return labels_; }
  // Makes `label` select the version `number`. Removes the label if `number` is
  // empty.
  void SetLabel(const std::string& label, std::optional<int64_t> number);
  void ClearLabels();
  // Returns the numbers of the versions that have a label.
  std::set<int64_t> labelled() const;

  // Returns the version that a model name without version or label selects. The
  // version is the first of these that exists:
  // 1. the version with the label `stable`
  // 2. the highest READY version without the label `canary`
  // 3. the highest READY version
  // 4. the highest version
  // Returns null if there are no versions.
  Version Default() const;

 private:
  void TellLabels(int64_t number) const;

  std::map<int64_t, Version> versions_;    // Keyed by version number.
  std::map<std::string, int64_t> labels_;  // The version number of each label.
};

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_MODEL_ENTRY_H_
