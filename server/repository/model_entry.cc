#include "server/repository/model_entry.h"

#include <iterator>
#include <utility>
#include <vector>

namespace sfmamba::repository {
namespace {

bool IsReady(const ModelEntry::Version& version) {
  return version != nullptr &&
         version->state() == observability::ModelState::kReady;
}

}  // namespace

ModelEntry::Version ModelEntry::Find(int64_t number) const {
  const auto found = versions_.find(number);
  return found == versions_.end() ? nullptr : found->second;
}

ModelEntry::Version ModelEntry::FindLabelled(const std::string& label) const {
  const auto found = labels_.find(label);
  return found == labels_.end() ? nullptr : Find(found->second);
}

void ModelEntry::Put(Version version) {
  const int64_t number = version->number();
  versions_[number] = std::move(version);
  TellLabels(number);
}

void ModelEntry::Remove(int64_t number) {
  versions_.erase(number);
  for (auto it = labels_.begin(); it != labels_.end();) {
    it = it->second == number ? labels_.erase(it) : std::next(it);
  }
}

void ModelEntry::SetLabel(const std::string& label,
                          std::optional<int64_t> number) {
  const auto found = labels_.find(label);
  if (found != labels_.end()) {
    const int64_t before = found->second;
    labels_.erase(found);
    TellLabels(before);
  }
  if (!number.has_value()) return;
  labels_[label] = *number;
  TellLabels(*number);
}

void ModelEntry::ClearLabels() {
  labels_.clear();
  for (const auto& [number, version] : versions_) version->SetLabels({});
}

std::set<int64_t> ModelEntry::labelled() const {
  std::set<int64_t> numbers;
  for (const auto& [label, number] : labels_) numbers.insert(number);
  return numbers;
}

ModelEntry::Version ModelEntry::Default() const {
  if (Version stable = FindLabelled(kStableLabel)) return stable;
  const Version canary = FindLabelled(kCanaryLabel);
  Version best = versions_.empty() ? nullptr : versions_.rbegin()->second;
  for (const auto& [number, version] : versions_) {
    if (IsReady(version) && version != canary) best = version;
  }
  if (!IsReady(best) && IsReady(canary)) return canary;
  return best;
}

void ModelEntry::TellLabels(int64_t number) const {
  const Version version = Find(number);
  if (version == nullptr) return;
  std::vector<std::string> labels;
  for (const auto& [label, labelled] : labels_) {
    if (labelled == number) labels.push_back(label);
  }
  version->SetLabels(std::move(labels));
}

}  // namespace sfmamba::repository
