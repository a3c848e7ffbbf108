#include "kernels/python/causal_conv1d_cuda.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/cuda/device_matrix.h"
#include "tests/kernels/cuda/device_memory.h"
#include "tests/kernels/python/causal_conv1d_problem.h"
#include "tests/kernels/python/device_batch.h"
#include "tests/kernels/python/gradients.h"

namespace sfmamba::kernels {
namespace {

// A problem's inputs for two images on the device. The images share the
// weights.
template <typename T>
class DeviceConv {
 public:
  using Real = Arithmetic<T>;
  using Problem = CausalConvProblem<T>;

  DeviceConv(const CausalConvShape& shape, Layout layout, bool bare = false)
      : layout(layout), first(shape, 1), second(shape, 2) {
    first.bare = second.bare = bare;
    second.weight = first.weight;
    second.bias = first.bias;
    for (int32_t& run : second.run) run = run < 0 ? run : run / 2;
  }

  // Returns the outputs of each image.
  std::vector<std::vector<double>> Forward() const {
    const Inputs in(*this);
    const DeviceBatch<T> out = Batch(first.x, second.x);
    EXPECT_EQ(
        BatchConv1dCuda(in.Args(*this), out.template View<T>(), TestStream()),
        "");
    return Doubles(out);
  }

  // Returns for each image the gradients of x, initial, weight and bias.
  std::vector<std::vector<std::vector<double>>> Gradient() const {
    const Inputs in(*this);
    const std::vector<T> zeros(first.x.size());
    const std::vector<T> no_initial(first.initial.size());
    const DeviceBatch<T> dx = Batch(zeros, zeros);
    const DeviceBatch<T> dinitial = Initial(no_initial, no_initial);
    const DeviceArray<Real> dweight(2 * first.weight.size());
    const DeviceArray<Real> dbias(2 * first.bias.size());
    EXPECT_EQ(BatchConv1dGradientCuda(
                  in.Args(*this),
                  {in.dout.template View<const T>(), dx.template View<T>(),
                   dinitial.template View<T>(), dweight.data(), dbias.data()},
                  TestStream()),
              "");
    EXPECT_TRUE(dweight.GuardsIntact() && dbias.GuardsIntact());
    const auto of_x = Doubles(dx), of_initial = Doubles(dinitial);
    std::vector<std::vector<std::vector<double>>> results(2);
    for (int image = 0; image < 2; ++image) {
      results[image] = {of_x[image], of_initial[image], Half(dweight, image),
                        Half(dbias, image)};
    }
    return results;
  }

  const Layout layout;
  Problem first, second;

 private:
  struct Inputs {
    explicit Inputs(const DeviceConv& conv)
        : x(conv.Batch(conv.first.x, conv.second.x)),
          dout(conv.Batch(conv.first.dout, conv.second.dout)),
          initial(conv.Initial(conv.first.initial, conv.second.initial)),
          weight(conv.first.weight),
          bias(conv.first.bias),
          run(Runs(conv)) {}

    static std::vector<int32_t> Runs(const DeviceConv& conv) {
      std::vector<int32_t> runs = conv.first.run;
      runs.insert(runs.end(), conv.second.run.begin(), conv.second.run.end());
      return runs;
    }

    BatchConv1dArgs<T> Args(const DeviceConv& conv) const {
      BatchConv1dArgs<T> args{};
      args.images = 2;
      args.channels = conv.first.shape.channels;
      args.taps = conv.first.shape.taps;
      args.tokens = conv.first.shape.tokens;
      args.period = conv.first.shape.period;
      args.x = x.template View<const T>();
      args.weight = weight.data();
      if (conv.first.bare) return args;
      args.silu = true;
      args.initial = initial.template View<const T>();
      args.run = run.data();
      args.bias = bias.data();
      return args;
    }

    const DeviceBatch<T> x, dout, initial;
    const DeviceArray<Real> weight, bias;
    const DeviceArray<int32_t> run;
  };

  DeviceBatch<T> Batch(const std::vector<T>& a, const std::vector<T>& b) const {
    return {{a, b}, 1, first.shape.tokens, layout};
  }
  DeviceBatch<T> Initial(const std::vector<T>& a,
                         const std::vector<T>& b) const {
    return {{a, b}, 1, first.shape.taps - 1, layout};
  }

  static std::vector<std::vector<double>> Doubles(const DeviceBatch<T>& batch) {
    const auto parts = batch.ToHost();
    return {Problem::Doubles(parts[0]), Problem::Doubles(parts[1])};
  }

  static std::vector<double> Half(const DeviceArray<Real>& array, int half) {
    const std::vector<Real> values = array.ToHost();
    const auto begin = values.begin() + half * (values.size() / 2);
    return {begin, begin + values.size() / 2};
  }
};

// Expects the results that the scalar loop computes in double from the same
// inputs.
template <typename T>
void ExpectScalarLoops(const CausalConvShape& shape, Layout layout,
                       double tolerance, bool bare = false) {
  SCOPED_TRACE(testing::Message()
               << shape.channels << " channels, " << shape.taps << " taps");
  const DeviceConv<T> conv(shape, layout, bare);
  const DeviceConv<double> exact(shape, layout, bare);
  const auto forward = conv.Forward();
  const auto gradients = conv.Gradient();
  for (int image = 0; image < 2; ++image) {
    SCOPED_TRACE(testing::Message() << "image " << image);
    const auto& scalar = image == 0 ? exact.first : exact.second;
    ExpectNear(forward[image], scalar.Forward(CpuIsa::kScalar), tolerance);
    const auto expected = scalar.Gradient(CpuIsa::kScalar);
    for (size_t g = 0; g < expected.size(); ++g) {
      SCOPED_TRACE(testing::Message() << "gradient " << g);
      ExpectNear(gradients[image][g], expected[g], tolerance);
    }
  }
}

// Some have fewer tokens than taps, periods of one token, or more tokens than a
// block has threads.
const CausalConvShape kConvolutions[] = {
    {1, 1, 3, 1}, {5, 4, 3, 50}, {3, 3, 33, 7}, {4, 8, 150, 40}, {2, 4, 0, 5}};

class CausalConv1dCudaTest : public DeviceTest {};

TEST_F(CausalConv1dCudaTest, DoublesAgreeWithTheScalarLoop) {
  for (const CausalConvShape& shape : kConvolutions) {
    ExpectScalarLoops<double>(shape, Layout::kRows, 1e-12);
  }
}

TEST_F(CausalConv1dCudaTest, FloatsAgreeWithTheScalarLoop) {
  for (const CausalConvShape& shape : kConvolutions) {
    ExpectScalarLoops<float>(shape, Layout::kTokens, 5e-6);
  }
}

TEST_F(CausalConv1dCudaTest, Bf16AgreesWithTheScalarLoop) {
  ExpectScalarLoops<BFloat16>({5, 4, 65, 40}, Layout::kRows, 1.0 / 128);
}

TEST_F(CausalConv1dCudaTest, WhatIsOptionalMayBeMissing) {
  ExpectScalarLoops<double>({5, 4, 30, 11}, Layout::kRows, 1e-12, true);
}

// The convolution never reads a token across the start of a run or of a period.
// In the first image, a run starts every 19 tokens and a period every 10
// tokens. Token 17 can therefore only affect the tokens 10 to 18.
TEST_F(CausalConv1dCudaTest, ABadValueStaysInItsRun) {
  constexpr int kTokens = 40;
  const DeviceConv<float> clean({2, 4, kTokens, 10}, Layout::kRows);
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::infinity()}) {
    DeviceConv<float> conv({2, 4, kTokens, 10}, Layout::kRows);
    conv.first.x[17] = bad;
    const auto y = conv.Forward(), expected = clean.Forward();
    const auto dx = conv.Gradient(), clean_dx = clean.Gradient();
    for (int image = 0; image < 2; ++image) {
      for (int i = 0; i < 2 * kTokens; ++i) {
        if (image == 0 && i >= 10 && i < 19)
          continue;  // The bad value may affect this token.
        EXPECT_EQ(y[image][i], expected[image][i]) << image << " " << i;
        EXPECT_EQ(dx[image][0][i], clean_dx[image][0][i]) << image << " " << i;
      }
    }
  }
}

TEST_F(CausalConv1dCudaTest, WithoutImagesThereIsNothingToDo) {
  BatchConv1dArgs<float> args{};
  args.channels = args.taps = 1;
  args.tokens = args.period = 1;
  EXPECT_EQ(BatchConv1dCuda(args, {}, TestStream()), "");
  EXPECT_EQ(BatchConv1dGradientCuda(args, {}, TestStream()), "");
}

}  // namespace
}  // namespace sfmamba::kernels
