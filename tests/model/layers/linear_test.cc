#include "model/layers/linear.h"

#include <array>
#include <vector>

#include "tests/model/against_reference.h"

namespace sfmamba::layers {
namespace {

// Numbers of sequences, tokens, inputs and outputs.
const std::vector<std::array<int64_t, 4>> kShapes = {
    {1, 1, 1, 1}, {1, 7, 19, 33}, {3, 17, 80, 13}};

class LinearTest : public model::AgainstReference {
 protected:
  static Compared<Linear> Make(int in, int out, bool bias, bool scaled,
                               ops::Epilogue epilogue) {
    return Both([&](const auto& scope, const auto& ops) {
      return Linear(
          {Linear::Take(scope, in, out, bias),
           scaled ? scope.Take("gamma_1", {out}) : at::Tensor(), epilogue},
          ops);
    });
  }
};

TEST_P(LinearTest, MapsTokens) {
  for (const auto& [rows, tokens, in, out] : kShapes) {
    const at::Tensor x = model::RandomValues("x", {rows, tokens, in});
    for (const bool bias : {false, true}) {
      for (const bool scaled : {false, true}) {
        for (const ops::Epilogue epilogue :
             {ops::Epilogue::kNone, ops::Epilogue::kGelu}) {
          const auto linear = Make(in, out, bias, scaled, epilogue);
          ExpectNear(linear.tested.Forward(Normed(x)),
                     linear.reference.Forward(x));
        }
      }
    }
  }
}

TEST_P(LinearTest, AddsToTheStream) {
  for (const auto& [rows, tokens, in, out] : kShapes) {
    const at::Tensor x = model::RandomValues("x", {rows, tokens, in});
    const at::Tensor sum = model::RandomValues("sum", {rows, tokens, out});
    for (const bool bias : {false, true}) {
      const auto linear = Make(in, out, bias, true, ops::Epilogue::kNone);
      ops::Residual a = Stream(sum), b(sum.clone());
      linear.tested.AddTo(a, Normed(x));
      linear.reference.AddTo(b, x);
      ExpectNear(a.Sum(), b.Sum());
    }
  }
}

TEST_P(LinearTest, OutputsAreFp32) {
  const auto linear = Both([](const auto& scope, const auto& ops) {
    return Linear({Linear::Take(scope, 19, 33, /*bias=*/true),
                   {},
                   ops::Epilogue::kNone,
                   /*is_output=*/true},
                  ops);
  });
  const at::Tensor x = model::RandomValues("x", {3, 19});
  const at::Tensor y = linear.tested.Forward(Normed(x));
  EXPECT_EQ(y.scalar_type(), at::kFloat);
  ExpectNear(y, linear.reference.Forward(x));
}

INSTANTIATE_TEST_SUITE_P(All, LinearTest,
                         testing::ValuesIn(model::TestedImplementations()),
                         model::NameOf);

}  // namespace
}  // namespace sfmamba::layers
