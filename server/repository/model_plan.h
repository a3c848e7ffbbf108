#ifndef SFMAMBA_SERVER_REPOSITORY_MODEL_PLAN_H_
#define SFMAMBA_SERVER_REPOSITORY_MODEL_PLAN_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/repository/model_folders.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba::repository {

// Decides which versions of one model to load and unload next. The decision
// depends on the model's folder, the policy, earlier calls and the results of
// earlier loads.
//
// The class has no clock, thread or file. Thread-compatible.
class ModelPlan {
 public:
  // Updates the state of the folder. If the policy cannot be read, the previous
  // policy stays in effect. A changed policy takes effect when two consecutive
  // calls have found it, because somebody may still be writing the file. If
  // `at_once` is true, the policy takes effect immediately. LoadModel() and the
  // startup set `at_once`.
  void Found(ModelFolder folder, bool at_once = false);

  // Records that a call has loaded the model or one of its versions.
  void Want();
  void Want(int64_t version);
  // Records that a call has unloaded the model or one of its versions. Without
  // a number, no version is wanted after this call.
  void Drop();
  void Drop(int64_t version);

  // Report the result of loading the version from its folder. After n
  // consecutive failures, the next attempt waits for `period` times 2^(n-1),
  // but at most for `period` times 64.
  void Loaded(int64_t version);
  void Failed(int64_t version, absl::Time now, absl::Duration period);
  // Reports that the version is no longer served.
  void Unloaded(int64_t version);

  // Returns the version's folder, or null if there is none.
  const VersionFolder* Folder(int64_t version) const;
  // Returns the labels that must still be set. A label must be set if the
  // policy file has changed or a call has unloaded the model. If a label has no
  // number, the label must be removed.
  const std::map<std::string, std::optional<int64_t>>& labels_to_set() const {
    return labels_to_set_;
  }
  // Reports that the label was set or removed.
  void LabelSet(const std::string& label) { labels_to_set_.erase(label); }

  // Returns the versions that the policy lists explicitly but that have no
  // folder.
  std::set<int64_t> MissingVersions() const;

  // Returns true if a call has unloaded the version or the model.
  bool IsDropped(int64_t version) const {
    return dropped_ || not_wanted_.count(version) > 0;
  }
  bool is_empty() const { return versions_.empty(); }

  // Returns the versions to serve. They include the versions in `labelled` and
  // the versions that the policy labels.
  std::set<int64_t> Wanted(const std::set<int64_t>& labelled) const;

  // Returns the wanted versions to load now, in descending order. A version
  // must be loaded if it is not loaded yet, or if its files have changed. A
  // version that failed waits until its retry time or until its files change.
  // An incomplete version waits until two calls of Found() have seen the same
  // files. If `at_once` is true, no version waits.
  std::vector<int64_t> ToLoad(const std::set<int64_t>& labelled, absl::Time now,
                              bool at_once) const;
  // Returns the loaded versions that are not wanted. Returns no versions while
  // a wanted version is not loaded, because the old versions still serve. Never
  // returns labelled versions, even if their folder no longer exists.
  std::vector<int64_t> ToUnload(const std::set<int64_t>& labelled) const;

 private:
  struct Version {
    // Empty if the folder no longer exists.
    std::optional<VersionFolder> folder;
    // The fingerprint found by the previous call of Found().
    std::string found_before;
    bool loaded = false;
    std::string loaded_from;  // The fingerprint when the version was loaded.
    std::string failed_from;
    int failures = 0;  // Consecutive failures with the same files.
    absl::Time retry_at = absl::InfinitePast();
  };

  // Returns true if a load may start now.
  static bool MayLoad(const Version& version, absl::Time now);

  // Schedules the label changes from the policy `before` to `policy`.
  void SetLabelsOf(const v1::VersionPolicy& policy,
                   const v1::VersionPolicy& before);

  v1::VersionPolicy policy_;
  // The policy found by the last call of Found(), or nullopt if the policy
  // could not be read.
  std::optional<v1::VersionPolicy> policy_found_before_;
  std::map<std::string, std::optional<int64_t>> labels_to_set_;
  std::map<int64_t, Version> versions_;
  bool dropped_ = false;          // Set if a call unloads the whole model.
  std::set<int64_t> asked_for_;   // Versions loaded by calls.
  std::set<int64_t> not_wanted_;  // Versions unloaded by calls.
};

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_MODEL_PLAN_H_
