#include "model/layers/convolution.h"

#include <array>
#include <optional>
#include <vector>

#include "tests/model/against_reference.h"

namespace sfmamba::layers {
namespace {

constexpr double kEps = 1e-3;

// Number of images, height and width.
const std::vector<std::array<int64_t, 3>> kSizes = {
    {1, 1, 1}, {1, 9, 2}, {3, 7, 5}};

class ConvolutionTest : public model::AgainstReference {
 protected:
  // Makes a convolution of this shape with a bias and without a norm.
  static Compared<Convolution> Plain(const Convolution::Shape& shape) {
    return Both([&](const auto& scope, const auto& ops) {
      return Convolution(shape, Convolution::Take(scope, shape, /*bias=*/true),
                         std::nullopt, ops::Activation::kNone, ops);
    });
  }

  static void ExpectForward(const Convolution::Shape& shape,
                            const Compared<Convolution>& convolution) {
    for (const auto& [images, height, width] : kSizes) {
      // The values are large enough to reach ReLU6's limit of 6.
      const at::Tensor x =
          model::RandomValues("x", {images, shape.in, height, width}) * 5;
      ExpectNear(convolution.tested.Forward(Map(x)),
                 convolution.reference.Forward(x));
    }
  }
};

TEST_P(ConvolutionTest, OfEachKernelStrideAndActivation) {
  for (const int kernel : {1, 3, 5}) {
    for (const int stride : {1, 2}) {
      for (const ops::Activation activation :
           {ops::Activation::kNone, ops::Activation::kRelu,
            ops::Activation::kRelu6, ops::Activation::kGeluTanh}) {
        const Convolution::Shape shape{/*in=*/6, /*out=*/11, stride,
                                       /*input_size=*/7, kernel};
        ExpectForward(shape, Both([&](const auto& scope, const auto& ops) {
                        return Convolution(
                            shape, Convolution::Take(scope, shape, true),
                            ops::BatchNorm::Take(scope, shape.out, kEps),
                            activation, ops);
                      }));
      }
    }
  }
}

TEST_P(ConvolutionTest, OfGroupsOfChannels) {
  for (const int groups : {3, 18}) {
    for (const int stride : {1, 2}) {
      const Convolution::Shape shape{/*in=*/18,    /*out=*/18,
                                     stride,       /*input_size=*/7,
                                     /*kernel=*/3, groups};
      ExpectForward(shape, Plain(shape));
    }
  }
}

TEST_P(ConvolutionTest, OutputsAreFp32) {
  Convolution::Shape shape{/*in=*/9, /*out=*/5, /*stride=*/1, /*input_size=*/7,
                           /*kernel=*/1};
  shape.is_output = true;
  ExpectForward(shape, Plain(shape));
  const auto convolution = Plain(shape);
  EXPECT_EQ(
      convolution.tested.Forward(Map(model::RandomValues("x", {1, 9, 3, 5})))
          .scalar_type(),
      at::kFloat);
}

TEST_P(ConvolutionTest, AddsToAResidual) {
  for (const int kernel : {1, 3}) {
    const Convolution::Shape shape{/*in=*/6, /*out=*/11, /*stride=*/1,
                                   /*input_size=*/7, kernel};
    const auto convolution = Plain(shape);
    for (const auto& [images, height, width] : kSizes) {
      const at::Tensor x = model::RandomValues("x", {images, 6, height, width});
      const at::Tensor sum =
          model::RandomValues("sum", {images, 11, height, width});
      at::Tensor a = Map(sum.clone()), b = sum.clone();
      convolution.tested.AddTo(a, Map(x));
      convolution.reference.AddTo(b, x);
      ExpectNear(a, b);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ConvolutionTest,
                         testing::ValuesIn(model::TestedImplementations()),
                         model::NameOf);

}  // namespace
}  // namespace sfmamba::layers
