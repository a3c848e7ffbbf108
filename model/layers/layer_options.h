#ifndef SFMAMBA_MODEL_LAYERS_LAYER_OPTIONS_H_
#define SFMAMBA_MODEL_LAYERS_LAYER_OPTIONS_H_

#include "model/config.h"
#include "model/ops/device_ops.h"
#include "model/tuning/scan_plan_chooser.h"

namespace sfmamba::layers {

// How every layer of a model computes. A layer runs on the device that holds
// its weights.
struct LayerOptions {
  // Whether weights are transformed and packed at load and our kernels are
  // used. If false, layers call libtorch's operators one by one, as in the
  // papers; this requires fp32 and the CPU.
  bool fuse = true;
  // The type of matrix products and convolutions. On the CPU, norms, the scan
  // and the residual stream are always fp32. On a device they read and write
  // this type too and compute in fp32.
  model::Precision precision = model::Precision::kFloat32;
  // Chooses the plans of scans on a device, where it is required. Not owned;
  // outlives the layers.
  const tuning::ScanPlanChooser* chooser = nullptr;
  // How convolutions' algorithms are chosen on a device.
  ops::ConvSearch conv_search = ops::ConvSearch::kGuess;
  // Whether half precision on a device uses GELU's erf form; see tanh_gelu().
  bool exact_gelu = false;

  // Returns whether a device computes an MLP's GELU in its tanh form, which
  // libraries offer as an epilogue of matrix products. The two forms differ by
  // at most 4.7e-4, about the rounding of bf16.
  bool tanh_gelu() const {
    return !exact_gelu && precision != model::Precision::kFloat32;
  }
};

}  // namespace sfmamba::layers

#endif  // SFMAMBA_MODEL_LAYERS_LAYER_OPTIONS_H_
