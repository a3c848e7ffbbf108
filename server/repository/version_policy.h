#ifndef SFMAMBA_SERVER_REPOSITORY_VERSION_POLICY_H_
#define SFMAMBA_SERVER_REPOSITORY_VERSION_POLICY_H_

#include <cstdint>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "server/repository/version_files.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba::repository {

// The file in a model's folder that selects the versions to serve.
inline constexpr char kPolicyFile[] = "policy.textproto";

// Reads policy.textproto from a model's folder. Returns the default policy if
// the file does not exist. VersionPath describes how links are followed. An
// error contains the names of the file and the field, but never the path.
absl::StatusOr<v1::VersionPolicy> ReadVersionPolicy(const VersionPath& model);

// Returns the subset of `versions` that the policy selects. A policy without
// fields selects the latest version.
std::set<int64_t> WantedBy(const v1::VersionPolicy& policy,
                           const std::set<int64_t>& versions);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_VERSION_POLICY_H_
