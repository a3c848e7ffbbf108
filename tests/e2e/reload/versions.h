#ifndef SFMAMBA_TESTS_E2E_RELOAD_VERSIONS_H_
#define SFMAMBA_TESTS_E2E_RELOAD_VERSIONS_H_

#include <string>

namespace sfmamba {

// Publishes version `number` of model `id` in a repository, like an operator.
// The version is a copy of version 1 of "tiny" with labels that begin with
// "v<number>-". It is made elsewhere and then renamed.
void PublishVersion(const std::string& repository, const std::string& id,
                    int number);

// Publishes a version like PublishVersion(), after `spoil` has damaged the
// weights file at its path.
void PublishSpoilt(const std::string& repository, const std::string& id,
                   int number, void (*spoil)(const std::string& path));

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_E2E_RELOAD_VERSIONS_H_
