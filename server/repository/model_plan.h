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

// Decides which versions of one model are to be loaded and unloaded next, from
// what its folder holds, what its policy and the calls so far want, and what
// became of earlier loads.
//
// It has no clock, thread or file. Thread-compatible.
class ModelPlan {
 public:
  // The folder as it is now. A policy that cannot be read leaves the one
  // before. So does one that has changed until it is found the same twice, as
  // somebody may still be writing it, unless `at_once`, as a call says.
  void Found(ModelFolder folder, bool at_once = false);

  // A call wants the model, or this version of it, from now on.
  void Want();
  void Want(int64_t version);
  // A call wants neither it nor, without a number, any of its versions.
  void Drop();
  void Drop(int64_t version);

  // How a load of the version, from the folder as it was found last, ended.
  // After its nth failure one after the other it is tried again after `period`
  // times 2^(n-1), at most 2^6.
  void Loaded(int64_t version);
  void Failed(int64_t version, absl::Time now, absl::Duration period);
  // The version is not served any more.
  void Unloaded(int64_t version);

  // The folder of a version, or null if there is none.
  const VersionFolder* Folder(int64_t version) const;
  // The labels that are still to be set: the policy's file has changed, or a
  // call has unloaded the model since. Without a number the label is to be
  // removed.
  const std::map<std::string, std::optional<int64_t>>& labels_to_set() const {
    return labels_to_set_;
  }
  // It is set.
  void LabelSet(const std::string& label) { labels_to_set_.erase(label); }

  // The versions that the policy names one by one and that have no folder.
  std::set<int64_t> MissingVersions() const;

  // Whether a call does not want it.
  bool IsDropped(int64_t version) const {
    return dropped_ || not_wanted_.count(version) > 0;
  }
  bool is_empty() const { return versions_.empty(); }

  // The versions that are to be served, with `labelled` and those that the
  // policy labels.
  std::set<int64_t> Wanted(const std::set<int64_t>& labelled) const;

  // Those of them to load now, the highest first: they are not loaded or have
  // changed since. Unless `at_once`, as a call says, one that failed is left
  // until its time has come or its files change, and one whose files are not
  // complete until they were the same when they were found before.
  std::vector<int64_t> ToLoad(const std::set<int64_t>& labelled, absl::Time now,
                              bool at_once) const;
  // Those that are loaded and not wanted. None as long as a version that is
  // wanted is not loaded: then they stand in for it. None that is labelled,
  // even if its folder is gone.
  std::vector<int64_t> ToUnload(const std::set<int64_t>& labelled) const;

 private:
  struct Version {
    std::optional<VersionFolder> folder;  // None: it is not there any more.
    std::string found_before;  // The fingerprint at the last look but one.
    bool loaded = false;
    std::string loaded_from;  // The fingerprint then.
    std::string failed_from;
    int failures = 0;  // One after the other, of these files.
    absl::Time retry_at = absl::InfinitePast();
  };

  // Whether a load may begin now.
  static bool MayLoad(const Version& version, absl::Time now);

  // What of `policy` is not as in `before` is to be set.
  void SetLabelsOf(const v1::VersionPolicy& policy,
                   const v1::VersionPolicy& before);

  v1::VersionPolicy policy_;
  // The policy last read from the folder; none if it could not be read.
  std::optional<v1::VersionPolicy> policy_found_before_;
  std::map<std::string, std::optional<int64_t>> labels_to_set_;
  std::map<int64_t, Version> versions_;
  bool dropped_ = false;          // Set if a call unloads the whole model.
  std::set<int64_t> asked_for_;   // Versions that calls load.
  std::set<int64_t> not_wanted_;  // Versions that calls unload.
};

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_MODEL_PLAN_H_
