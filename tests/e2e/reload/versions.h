#ifndef SFMAMBA_TESTS_E2E_RELOAD_VERSIONS_H_
#define SFMAMBA_TESTS_E2E_RELOAD_VERSIONS_H_

#include <string>

namespace sfmamba {

// Publishes version `number` of model `id` in a repository, as an operator
// would: a copy of version 1 of the model "tiny" with labels that begin with
// "v<number>-", made elsewhere and renamed.
void PublishVersion(const std::string& repository, const std::string& id,
                    int number);

// The same, with the weights that `spoil` has made of the file at the path that
// it gets.
void PublishSpoilt(const std::string& repository, const std::string& id,
                   int number, void (*spoil)(const std::string& path));

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_E2E_RELOAD_VERSIONS_H_
