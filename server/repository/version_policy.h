#ifndef SFMAMBA_SERVER_REPOSITORY_VERSION_POLICY_H_
#define SFMAMBA_SERVER_REPOSITORY_VERSION_POLICY_H_

#include <cstdint>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "server/repository/version_files.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba::repository {

// The name of a model's file that says which of its versions are served.
inline constexpr char kPolicyFile[] = "policy.textproto";

// Reads policy.textproto in a model's folder, for whose links VersionPath
// holds; the default if there is no such file. The error names the file and the
// field, never the path.
absl::StatusOr<v1::VersionPolicy> ReadVersionPolicy(const VersionPath& model);

// Those of `versions` that the policy wants. One that sets no field wants the
// latest.
std::set<int64_t> WantedBy(const v1::VersionPolicy& policy,
                           const std::set<int64_t>& versions);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_VERSION_POLICY_H_
