// Measures how fast the server reads the JSON of a request, in megabytes per
// second. The JSON contains tensors as numbers, or a picture in base64.

#include <cstdint>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "server/rest/kserve/json.h"

namespace sfmamba::rest {
namespace {

void Read(benchmark::State& state, const std::string& json) {
  for (auto _ : state) {
    if (!ReadInferJson(json, int64_t{64} << 20).ok())
      state.SkipWithError("bad");
  }
  state.SetBytesProcessed(state.iterations() * json.size());
}

std::string Input(const std::string& datatype, const std::string& data) {
  return absl::StrCat(R"({"inputs": [{"name": "image", "shape": [1], )",
                      R"("datatype": ")", datatype, R"(", "data": [)", data,
                      "]}]}");
}

void BM_Floats(benchmark::State& state) {
  std::string data = "0.5";
  for (int i = 1; i < 3 * 224 * 224; ++i) {
    absl::StrAppend(&data, ",", (i % 4096 - 2048) / 977.0);
  }
  Read(state, Input("FP32", data));
}
BENCHMARK(BM_Floats);

void BM_Bytes(benchmark::State& state) {
  std::string data = "0";
  for (int i = 1; i < 3 * 224 * 224; ++i) absl::StrAppend(&data, ",", i % 256);
  Read(state, Input("UINT8", data));
}
BENCHMARK(BM_Bytes);

void BM_Base64(benchmark::State& state) {
  const std::string base64 = absl::Base64Escape(std::string(1 << 20, '\x5a'));
  Read(state, Input("BYTES", absl::StrCat("{\"b64\": \"", base64, "\"}")));
}
BENCHMARK(BM_Base64);

}  // namespace
}  // namespace sfmamba::rest

BENCHMARK_MAIN();
