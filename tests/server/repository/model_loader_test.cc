#include "server/repository/model_loader.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace sfmamba::repository {
namespace {

// What loading MambaVision beside another model added to the resident memory of
// a server at most, in fp32 with AMX.
TEST(MemoryToLoadTest, IsNoLessThanWasMeasured) {
  struct Case {
    int64_t file_bytes, elements, measured_mib;
  };
  for (const Case& c : {Case{390'806'096, 97'700'000, 1194},  // B, fp32
                        Case{195'430'000, 97'700'000, 1001},  // B, fp16
                        Case{127'217'888, 31'800'000, 381},   // T, fp32
                        Case{63'630'000, 31'800'000, 316}}) {
    const int64_t estimate = MemoryToLoad(c.file_bytes, c.elements);
    EXPECT_GE(estimate, c.measured_mib << 20) << c.file_bytes;
    EXPECT_LE(estimate, (c.measured_mib << 20) * 4 / 3) << c.file_bytes;
  }
}

}  // namespace
}  // namespace sfmamba::repository
