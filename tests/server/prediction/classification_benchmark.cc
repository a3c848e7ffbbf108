// Times a classifier's answer from its logits: the softmax and the best five.

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "tests/server/prediction/encoded_answer.h"

namespace sfmamba::prediction {
namespace {

std::vector<float> RandomLogits(int classes) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 2);
  std::vector<float> logits(classes);
  for (float& logit : logits) logit = normal(random);
  return logits;
}

void BM_SoftmaxAndTopFive(benchmark::State& state) {
  const std::vector<float> logits = RandomLogits(state.range(0));
  const repository::ModelDirectory model =
      ModelOf(std::vector<std::string>(logits.size(), "a class's name"));
  const std::unique_ptr<const TaskHandler> handler =
      MakeHandler(v1::ClassifyParams());
  for (auto _ : state) {
    benchmark::DoNotOptimize(EncodeAll(
        handler->MakeEncoder(model, model::Classification{logits, {}}, {})
            .get()));
  }
}
BENCHMARK(BM_SoftmaxAndTopFive)->Arg(1000)->Arg(21841);

}  // namespace
}  // namespace sfmamba::prediction

BENCHMARK_MAIN();
