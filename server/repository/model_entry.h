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

// Labels: the version that a bare name means, and one that it does not mean.
inline constexpr char kStableLabel[] = "stable";
inline constexpr char kCanaryLabel[] = "canary";

// The versions of one model that callers can name, and their labels.
//
// Thread-compatible.
class ModelEntry {
 public:
  using Version = std::shared_ptr<ModelVersion>;

  const std::map<int64_t, Version>& versions() const { return versions_; }
  // Null if there is none.
  Version Find(int64_t number) const;
  Version FindLabelled(const std::string& label) const;

  // Takes the place of the version with the same number.
  void Put(Version version);
  // With its labels.
  void Remove(int64_t number);

  // The version of each label.
  const std::map<std::string, int64_t>& labels() const { return labels_; }
  // Sets or, without a version, removes a label.
  void SetLabel(const std::string& label, std::optional<int64_t> number);
  void ClearLabels();
  // The versions with a label.
  std::set<int64_t> labelled() const;

  // The version that the model's name means: `stable`, or else the highest that
  // is READY and not `canary`, or else the highest READY, or else the highest.
  // Null if there is none.
  Version Default() const;

 private:
  void TellLabels(int64_t number) const;

  std::map<int64_t, Version> versions_;    // By number.
  std::map<std::string, int64_t> labels_;  // The number of each.
};

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_MODEL_ENTRY_H_
