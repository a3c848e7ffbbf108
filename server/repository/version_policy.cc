#include "server/repository/version_policy.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/repository/model_name.h"
#include "server/settings/setting.h"
#include "server/settings/textproto.h"

namespace sfmamba::repository {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxPolicyBytes = 64 << 10;

absl::Status OfPolicy(absl::string_view message) {
  return absl::InvalidArgumentError(absl::StrCat(kPolicyFile, ": ", message));
}

}  // namespace

absl::StatusOr<v1::VersionPolicy> ReadVersionPolicy(const VersionPath& model) {
  v1::VersionPolicy policy;
  std::error_code error;
  const fs::path link = fs::path(model.folder) / kPolicyFile;
  if (!fs::exists(fs::symlink_status(link, error))) return policy;
  const absl::StatusOr<std::string> path = FindFile(model, kPolicyFile);
  if (!path.ok()) return path.status();
  const absl::StatusOr<std::string> text =
      server::ReadTextFile(kPolicyFile, *path, kMaxPolicyBytes);
  if (!text.ok()) return text.status();
  absl::Status status = server::ParseTextProto(kPolicyFile, *text, &policy);
  if (!status.ok()) return status;
  status = server::CheckRanges(policy);
  if (!status.ok()) return OfPolicy(status.message());
  const int set =
      (policy.latest() != 0) + policy.all() + (policy.specific_size() > 0);
  if (set > 1) {
    return OfPolicy(absl::StrCat("got ", set,
                                 " fields, expected one of latest, all and "
                                 "specific"));
  }
  if (policy.labels_size() > kMostLabels) {
    return OfPolicy(absl::StrCat("labels: got ", policy.labels_size(),
                                 ", expected at most ", kMostLabels));
  }
  for (const auto& [label, version] : policy.labels()) {
    if (!IsId(label)) {
      return OfPolicy(
          absl::StrCat("labels: got the label \"", absl::CHexEscape(label),
                       "\", expected [A-Za-z0-9][A-Za-z0-9._-]{0,127}"));
    }
    if (version < 1) {
      return OfPolicy(absl::StrCat("labels: got version ", version, " for \"",
                                   label, "\", expected at least 1"));
    }
  }
  return policy;
}

std::set<int64_t> WantedBy(const v1::VersionPolicy& policy,
                           const std::set<int64_t>& versions) {
  if (policy.all()) return versions;
  std::set<int64_t> wanted;
  if (policy.specific_size() > 0) {
    const std::set<int64_t> specific(policy.specific().begin(),
                                     policy.specific().end());
    std::set_intersection(versions.begin(), versions.end(), specific.begin(),
                          specific.end(), std::inserter(wanted, wanted.end()));
    return wanted;
  }
  const size_t latest = std::max(1, policy.latest());
  const size_t unwanted = versions.size() - std::min(latest, versions.size());
  return std::set<int64_t>(std::next(versions.begin(), unwanted),
                           versions.end());
}

}  // namespace sfmamba::repository
