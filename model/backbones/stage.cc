#include "model/backbones/stage.h"

#include <algorithm>
#include <utility>

#include "ATen/ops/cat.h"
#include "absl/strings/str_cat.h"

namespace sfmamba::backbones {

ConvStage::ConvStage(const weights::StateDict::Scope& scope, int stage,
                     int size, const model::BackboneConfig& config,
                     const ops::Implementation& implementation) {
  for (int i = 0; i < config.depths[stage]; ++i) {
    blocks_.emplace_back(scope.Sub(absl::StrCat("blocks.", i)),
                         config.width(stage), size, implementation);
  }
}

at::Tensor ConvStage::Forward(at::Tensor x) const {
  for (const ConvBlock& block : blocks_) block.Forward(x);
  return x;
}

TokenStage::TokenStage(const weights::StateDict::Scope& scope, int stage,
                       const model::BackboneConfig& config,
                       const ops::Implementation& implementation)
    : geometry_(config, stage),
      discard_(config.discard),
      windows_(implementation.MakeWindows({config.layer_scale})),
      tokens_(scope, config.width(stage), config, implementation) {
  const int mamba_blocks = config.mamba_blocks(stage);
  for (int i = 0; i < config.depths[stage]; ++i) {
    (i < mamba_blocks ? mamba_ : attention_)
        .emplace_back(scope.Sub(absl::StrCat("blocks.", i)), config, stage, i,
                      implementation);
  }
}

bool TokenStage::Windows(int64_t height, int64_t width, ops::WindowGrid* grid,
                         ops::WindowGrid* sub) const {
  const model::StageWindows windows = geometry_.Windows(height, width);
  *grid = {height, width, windows.height, windows.width};
  *sub = {windows.height, windows.width, windows.sub_window,
          windows.sub_window};
  return windows.sub_window > 0;
}

int64_t TokenStage::Sequences(int64_t images, int64_t height,
                              int64_t width) const {
  return images * geometry_.Windows(height, width).count;
}

at::Tensor TokenStage::Enter(const at::Tensor& map,
                             const ops::WindowGrid& grid) const {
  at::Tensor x =
      windows_->Partition(map.permute({0, 2, 3, 1}), grid, tokens_.ends());
  tokens_.FillUnset(x);
  return x;
}

at::Tensor TokenStage::CutSequences(const at::Tensor& x,
                                    const ops::WindowGrid& grid,
                                    bool attached) const {
  const auto cut = [&](const at::Tensor& patches) {
    return windows_->Partition(patches.reshape({x.size(0), grid.map_height,
                                                grid.map_width, x.size(2)}),
                               grid, ops::WindowEnds::kNone);
  };
  if (!attached) return cut(x);
  // The first and the last token of x are the auxiliary tokens. Attention sees
  // only one sub-window at a time. Therefore every sub-window gets its own
  // copies of both auxiliary tokens.
  const int64_t last = x.size(1) - 1;
  const auto copies = [&](int64_t token) {
    return x.narrow(1, token, 1).repeat_interleave(grid.windows(), 0);
  };
  return at::cat({copies(0), cut(x.narrow(1, 1, last - 1)), copies(last)}, 1);
}

at::Tensor TokenStage::Forward(const at::Tensor& map, int64_t fold_rows) const {
  ops::WindowGrid grid, sub;
  const bool split = Windows(map.size(2), map.size(3), &grid, &sub);
  ops::Residual stream(Enter(map, grid));
  RunMamba(stream, fold_rows);
  bool attached = tokens_.attaches();
  if (attached &&
      (discard_ == model::Discard::kBeforeAttention || attention_.empty())) {
    stream = ops::Residual(AuxiliaryTokens::Detach(stream.Sum()));
    attached = false;
  }
  at::Tensor x;
  if (split) {
    x = CutSequences(stream.Sum(), sub, attached);
    // All tokens of a sub-window are computed, because padding may lie anywhere
    // in it.
    x = RunAttention(ops::Residual(x), attached, x.size(1));
    x = windows_->Reverse(x, sub).view(
        {-1, grid.height * grid.width, x.size(2)});
  } else {
    // If there is only one window, its rows below the map are not computed.
    const int64_t height =
        grid.windows() == 1 ? windows_->RowsNeeded(grid) : grid.height;
    x = RunAttention(std::move(stream), attached, height * grid.width);
    // RunAttention() may return more rows than were requested.
    grid.height = x.size(1) / grid.width;
  }
  return windows_->ReverseToMap(x, grid);
}

void TokenStage::RunMamba(ops::Residual& x, int64_t fold_rows) const {
  const std::vector<int64_t> sizes = x.sizes().vec();
  // Joins the sequences into `fold_rows` rows. This changes only the shape of
  // x, because the sequences lie one after another in memory.
  x.View({fold_rows, -1, sizes[2]});
  for (size_t i = 0; i < mamba_.size(); ++i) {
    // The paper exchanges the auxiliary tokens after each block. Here, each
    // block except the first exchanges them before it runs. An exchange after
    // the last block would have no effect, because attention does not depend on
    // positions.
    mamba_[i].Forward(x, sizes[1], tokens_.swaps() && i > 0);
  }
  x.View(sizes);
}

at::Tensor TokenStage::RunAttention(ops::Residual x, bool attached,
                                    int64_t needed) const {
  for (size_t i = 0; i < attention_.size(); ++i) {
    const int64_t length = x.sizes()[1];
    const bool last = i + 1 == attention_.size();
    const bool detaches =
        attached && (discard_ == model::Discard::kAfterFirstAttention || last);
    const int64_t first = detaches ? 1 : 0;
    int64_t count = length - 2 * first;
    if (last) count = std::min(count, needed);
    // The block computes only the tokens whose results a later layer reads.
    if (count < length) {
      attention_[i].ForwardPart(x, first, count);
    } else {
      attention_[i].Forward(x, length, /*swap=*/false);
    }
    attached = attached && !detaches;
  }
  return x.Sum();
}

}  // namespace sfmamba::backbones
