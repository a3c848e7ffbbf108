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
// depends on the model's folder, the policy, earlier LoadModel() and
// UnloadModel() calls, and the results of earlier loads.
//
// The class uses no clock, thread or file. Thread-compatible.
class ModelPlan {
 public:
  // Reports the current state of the model's folder. If the policy cannot be
  // read, the previous policy stays in effect. A changed policy takes effect
  // when two consecutive calls have found the same policy, because somebody may
  // still be writing the file. However, the policy takes effect immediately if
  // `at_once` is true or if no version is known yet. LoadModel() sets `at_once`
  // to true.
  void Found(ModelFolder folder, bool at_once = false);

  // Record that LoadModel() was called for the model or for one of its
  // versions.
  void Want();
  void Want(int64_t version);
  // Record that UnloadModel() was called for the model or for one of its
  // versions. After Drop() without a number, no version is wanted.
  void Drop();
  void Drop(int64_t version);

  // Report the result of loading the version from its folder. After n
  // consecutive failures with the same files, the next attempt waits for
  // `period` times 2^(n-1), but at most for `period` times 64.
  void Loaded(int64_t version);
  void Failed(int64_t version, absl::Time now, absl::Duration period);
  // Reports that the version is no longer served.
  void Unloaded(int64_t version);

  // Returns the version's folder, or null if there is none.
  const VersionFolder* Folder(int64_t version) const;
  // Returns the label changes that are still to be made. Maps each label to the
  // version that it must select, or to nullopt if it must be removed. Changes
  // result from a new policy and from UnloadModel() for the whole model.
  const std::map<std::string, std::optional<int64_t>>& labels_to_set() const {
    return labels_to_set_;
  }
  // Reports that the label was set or removed.
  void LabelSet(const std::string& label) { labels_to_set_.erase(label); }

  // Returns the versions that the policy lists explicitly but that have no
  // folder.
  std::set<int64_t> MissingVersions() const;

  // Returns true if UnloadModel() was the last call for the version or for the
  // whole model.
  bool IsDropped(int64_t version) const {
    return dropped_ || not_wanted_.count(version) > 0;
  }
  bool is_empty() const { return versions_.empty(); }

  // Returns the versions to serve. A version is served if the policy selects or
  // labels it, if a LoadModel() call has named it, or if it has a label now.
  // `labelled` contains the versions that have labels now. Versions without a
  // folder and versions that a call has unloaded are not served.
  std::set<int64_t> Wanted(const std::set<int64_t>& labelled) const;

  // Returns the wanted versions to load now, in descending order. A version
  // must be loaded if it is not loaded yet, or if its files have changed. A
  // version whose load failed waits until its retry time or until its files
  // change. A version with missing files waits until two calls of Found() have
  // seen the same files. If `at_once` is true, no version waits.
  std::vector<int64_t> ToLoad(const std::set<int64_t>& labelled, absl::Time now,
                              bool at_once) const;
  // Returns the loaded versions that are not wanted. Returns no versions while
  // a wanted version is not loaded, because the old versions must serve until
  // then. Never returns labelled versions, even if their folder no longer
  // exists.
  std::vector<int64_t> ToUnload(const std::set<int64_t>& labelled) const;

 private:
  struct Version {
    // Empty if the folder no longer exists.
    std::optional<VersionFolder> folder;
    // The fingerprint from the second to last call of Found(). Empty if there
    // was no folder at that time. `folder` is from the last call.
    std::string found_before;
    bool loaded = false;
    std::string loaded_from;  // The fingerprint of the files that were loaded.
    std::string failed_from;
    int failures = 0;  // Consecutive failures with the same files.
    absl::Time retry_at = absl::InfinitePast();
  };

  // Returns true if the load of this version need not wait, see ToLoad().
  static bool MayLoad(const Version& version, absl::Time now);

  // Adds the differences between the labels of `before` and `policy` to
  // labels_to_set_.
  void SetLabelsOf(const v1::VersionPolicy& policy,
                   const v1::VersionPolicy& before);

  v1::VersionPolicy policy_;
  // The policy found by the last call of Found(), or nullopt if the policy
  // could not be read.
  std::optional<v1::VersionPolicy> policy_found_before_;
  std::map<std::string, std::optional<int64_t>> labels_to_set_;
  std::map<int64_t, Version> versions_;
  // True if UnloadModel() was the last call for the whole model.
  bool dropped_ = false;
  // The versions that LoadModel() calls have named, unless a later call
  // unloaded them.
  std::set<int64_t> asked_for_;
  // The versions that UnloadModel() calls have named, unless a later call
  // loaded them.
  std::set<int64_t> not_wanted_;
};

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_MODEL_PLAN_H_
