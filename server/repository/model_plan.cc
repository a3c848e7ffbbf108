#include "server/repository/model_plan.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "google/protobuf/util/message_differencer.h"
#include "server/repository/version_policy.h"

namespace sfmamba::repository {
namespace {

using google::protobuf::util::MessageDifferencer;

// The maximum retry delay is 2^kMostPeriodsLog2 times the parameter `period` of
// ModelPlan::Failed().
constexpr int kMostPeriodsLog2 = 6;

}  // namespace

void ModelPlan::Found(ModelFolder folder, bool at_once) {
  if (!folder.policy.ok()) {
    policy_found_before_.reset();
  } else {
    const bool is_settled =
        at_once || versions_.empty() ||
        (policy_found_before_.has_value() &&
         MessageDifferencer::Equals(*policy_found_before_, *folder.policy));
    policy_found_before_ = *folder.policy;
    if (is_settled) {
      SetLabelsOf(*folder.policy, policy_);
      policy_ = *folder.policy;
    }
  }
  for (auto it = versions_.begin(); it != versions_.end();) {
    Version& version = it->second;
    version.found_before =
        version.folder.has_value() ? version.folder->fingerprint : "";
    version.folder.reset();
    const bool forget =
        !version.loaded && folder.versions.count(it->first) == 0;
    it = forget ? versions_.erase(it) : std::next(it);
  }
  for (auto& [number, found] : folder.versions) {
    versions_[number].folder = std::move(found);
  }
}

void ModelPlan::SetLabelsOf(const v1::VersionPolicy& policy,
                            const v1::VersionPolicy& before) {
  for (const auto& [label, version] : before.labels()) {
    if (!policy.labels().contains(label)) labels_to_set_[label] = std::nullopt;
  }
  for (const auto& [label, version] : policy.labels()) {
    const auto found = before.labels().find(label);
    const bool is_new =
        found == before.labels().end() || found->second != version;
    if (is_new) labels_to_set_[label] = version;
  }
}

void ModelPlan::Want() {
  dropped_ = false;
  not_wanted_.clear();
}

void ModelPlan::Want(int64_t version) {
  asked_for_.insert(version);
  not_wanted_.erase(version);
}

void ModelPlan::Drop() {
  dropped_ = true;
  asked_for_.clear();
  not_wanted_.clear();
  SetLabelsOf(policy_, v1::VersionPolicy());
}

void ModelPlan::Drop(int64_t version) {
  asked_for_.erase(version);
  not_wanted_.insert(version);
}

void ModelPlan::Loaded(int64_t number) {
  Version& version = versions_[number];
  version.loaded = true;
  version.failures = 0;
  if (version.folder.has_value()) {
    version.loaded_from = version.folder->fingerprint;
  }
}

void ModelPlan::Failed(int64_t number, absl::Time now, absl::Duration period) {
  Version& version = versions_[number];
  const std::string from =
      version.folder.has_value() ? version.folder->fingerprint : "";
  if (version.failed_from != from) version.failures = 0;
  version.failed_from = from;
  version.retry_at =
      now + period * (1 << std::min(version.failures, kMostPeriodsLog2));
  ++version.failures;
}

void ModelPlan::Unloaded(int64_t number) {
  const auto found = versions_.find(number);
  if (found == versions_.end()) return;
  found->second.loaded = false;
  if (!found->second.folder.has_value()) versions_.erase(found);
}

const VersionFolder* ModelPlan::Folder(int64_t version) const {
  const auto found = versions_.find(version);
  if (found == versions_.end() || !found->second.folder.has_value()) {
    return nullptr;
  }
  return &*found->second.folder;
}

std::set<int64_t> ModelPlan::MissingVersions() const {
  std::set<int64_t> missing;
  for (int64_t number : policy_.specific()) {
    if (Folder(number) == nullptr) missing.insert(number);
  }
  return missing;
}

std::set<int64_t> ModelPlan::Wanted(const std::set<int64_t>& labelled) const {
  std::set<int64_t> there;
  for (const auto& [number, version] : versions_) {
    if (version.folder.has_value() && not_wanted_.count(number) == 0) {
      there.insert(number);
    }
  }
  std::set<int64_t> named = labelled;
  if (!dropped_) {
    for (const auto& [label, number] : policy_.labels()) named.insert(number);
  }
  std::set<int64_t> wanted =
      dropped_ ? std::set<int64_t>() : WantedBy(policy_, there);
  for (int64_t number : there) {
    if (asked_for_.count(number) > 0 || named.count(number) > 0) {
      wanted.insert(number);
    }
  }
  return wanted;
}

bool ModelPlan::MayLoad(const Version& version, absl::Time now) {
  const std::string& fingerprint = version.folder->fingerprint;
  if (version.failures > 0 && version.failed_from == fingerprint) {
    return now >= version.retry_at;
  }
  // An incomplete folder that no longer changes is loaded too. The error of the
  // load then tells which files are missing.
  return version.folder->complete || version.found_before == fingerprint;
}

std::vector<int64_t> ModelPlan::ToLoad(const std::set<int64_t>& labelled,
                                       absl::Time now, bool at_once) const {
  std::vector<int64_t> to_load;
  for (int64_t number : Wanted(labelled)) {
    const Version& version = versions_.at(number);
    if (version.loaded && version.loaded_from == version.folder->fingerprint) {
      continue;
    }
    if (at_once || MayLoad(version, now)) to_load.push_back(number);
  }
  // Loads the highest version first, because a model name without a version
  // selects this version.
  std::reverse(to_load.begin(), to_load.end());
  return to_load;
}

std::vector<int64_t> ModelPlan::ToUnload(
    const std::set<int64_t>& labelled) const {
  const std::set<int64_t> wanted = Wanted(labelled);
  for (int64_t number : wanted) {
    if (!versions_.at(number).loaded) return {};
  }
  std::vector<int64_t> to_unload;
  for (const auto& [number, version] : versions_) {
    const bool keep = wanted.count(number) > 0 || labelled.count(number) > 0;
    if (version.loaded && !keep) {
      to_unload.push_back(number);
    }
  }
  return to_unload;
}

}  // namespace sfmamba::repository
