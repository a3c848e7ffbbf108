#ifndef SFMAMBA_TESTS_FUZZ_KSERVE_SEEDS_H_
#define SFMAMBA_TESTS_FUZZ_KSERVE_SEEDS_H_

#include "tests/fuzz/corpus.h"

namespace sfmamba {

// Writes valid requests of the Open Inference Protocol, over gRPC and over
// REST.
void AddKserveSeeds(const Corpus& corpus);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_FUZZ_KSERVE_SEEDS_H_
