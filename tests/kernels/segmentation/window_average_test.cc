#include "kernels/segmentation/window_average.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ATen/ops/from_blob.h"
#include "ATen/ops/upsample_bilinear2d.h"
#include "ATen/ops/zeros.h"
#include "gtest/gtest.h"
#include "tests/kernels/matrix.h"

namespace sfmamba::kernels {
namespace {

class WindowAverageTest : public testing::TestWithParam<CpuIsa> {};

INSTANTIATE_TEST_SUITE_P(Isa, WindowAverageTest,
                         testing::ValuesIn(SupportedCpuIsas()), IsaName);

// Windows of height x width pixels. The logits of each window have the size
// logits_height x logits_width. `corners` has the (row, column) of each
// window's top left pixel in the picture.
struct Problem {
  int logits_height, logits_width, classes;
  int height, width;
  std::vector<std::pair<int, int>> corners;
  int picture_height, picture_width;
};

const Problem kProblems[] = {
    // Three windows overlap. The last one is moved to the left, so that it ends
    // at the picture's edge.
    {4, 5, 7, 16, 20, {{0, 0}, {0, 12}, {0, 17}}, 16, 37},
    // The windows form two rows. Their size is not a multiple of four, and
    // therefore not exactly four times the size of the logits.
    {3, 4, 21, 11, 14, {{0, 0}, {0, 9}, {6, 0}, {6, 9}}, 17, 23},
    {1, 1, 150, 3, 4, {{0, 0}}, 3, 4},         // The logits are a single value.
    {5, 6, 17, 5, 6, {{0, 0}}, 5, 6},          // The logits are not resized.
    {8, 8, 2, 4, 4, {{0, 0}, {0, 4}}, 4, 8}};  // The logits shrink.

// Returns the mean [classes, picture_height, picture_width], computed with
// libtorch's resizes.
at::Tensor Expected(const Problem& problem,
                    const std::vector<Matrix<float>>& logits) {
  const at::Tensor sum = at::zeros(
      {problem.classes, problem.picture_height, problem.picture_width});
  const at::Tensor counts =
      at::zeros({problem.picture_height, problem.picture_width});
  for (size_t i = 0; i < logits.size(); ++i) {
    const at::Tensor own =
        at::from_blob(
            const_cast<float*>(logits[i].data()),
            {1, problem.logits_height, problem.logits_width, problem.classes})
            .permute({0, 3, 1, 2});
    const auto [top, left] = problem.corners[i];
    sum.narrow(1, top, problem.height)
        .narrow(2, left, problem.width)
        .add_(at::upsample_bilinear2d(own, {problem.height, problem.width},
                                      /*align_corners=*/false)[0]);
    counts.narrow(0, top, problem.height)
        .narrow(1, left, problem.width)
        .add_(1);
  }
  return sum / counts;
}

TEST_P(WindowAverageTest, AgreesWithLibtorchAndTheScalarLoop) {
  std::mt19937 random(1);
  for (const Problem& problem : kProblems) {
    SCOPED_TRACE(problem.classes);
    std::vector<Matrix<float>> logits;
    for (size_t i = 0; i < problem.corners.size(); ++i) {
      logits.emplace_back(problem.logits_height * problem.logits_width,
                          problem.classes, /*padding=*/0);
      logits.back().FillNormal(random, 0, 2);
    }
    const at::Tensor expected = Expected(problem, logits);
    const ResizeTaps rows = ComposeResizes(
        problem.logits_height, problem.logits_height, problem.height);
    const ResizeTaps columns = ComposeResizes(
        problem.logits_width, problem.logits_width, problem.width);
    for (int row = 0; row < problem.picture_height; ++row) {
      std::vector<WindowAverageArgs::Window> windows;
      for (size_t i = 0; i < logits.size(); ++i) {
        const auto [top, left] = problem.corners[i];
        if (top > row || row >= top + problem.height) continue;
        windows.push_back({logits[i].data(), top, left});
      }
      WindowAverageArgs args{};
      args.windows = windows.data();
      args.count = windows.size();
      args.width = problem.logits_width;
      args.classes = problem.classes;
      args.rows = &rows;
      args.columns = &columns;
      args.row = row;
      args.picture_width = problem.picture_width;
      Matrix<float> mean(problem.picture_width, problem.classes, /*padding=*/0);
      Matrix<float> scalar = mean;
      args.average = mean.data();
      WindowAverageCpu(args, GetParam());
      args.average = scalar.data();
      WindowAverageCpu(args, CpuIsa::kScalar);
      EXPECT_TRUE(mean.GuardsIntact());
      for (int x = 0; x < problem.picture_width; ++x) {
        for (int k = 0; k < problem.classes; ++k) {
          ASSERT_EQ(mean.at(x, k), scalar.at(x, k));
          ASSERT_NEAR(mean.at(x, k), expected[k][row][x].item<float>(), 2e-5)
              << "class " << k << " at " << row << ", " << x;
        }
      }
    }
  }
}

}  // namespace
}  // namespace sfmamba::kernels
