#ifndef SFMAMBA_MODEL_LAYERS_LAYER_OPTIONS_H_
#define SFMAMBA_MODEL_LAYERS_LAYER_OPTIONS_H_

#include "model/config.h"
#include "model/ops/device_ops.h"
#include "model/tuning/scan_plan_chooser.h"

namespace sfmamba::layers {

// How every layer of a model computes. Where it does, its weights say: a layer
// whose weights lie on a device runs there.
struct LayerOptions {
  // Weights rewritten and packed at load, our kernels. False: libtorch's own
  // operators one by one, as the papers write them; fp32 and the CPU only.
  bool fuse = true;
  // Of matrix products and convolutions. On the CPU norms, the scan and the
  // residual stream stay fp32; on a device they read and write this type, too,
  // and compute in fp32.
  model::Precision precision = model::Precision::kFloat32;
  // How scans run on a device; must be set there. Outlives the layers.
  const tuning::ScanPlanChooser* chooser = nullptr;
  // How convolutions' algorithms are chosen on a device.
  ops::ConvSearch conv_search = ops::ConvSearch::kGuess;
  // Half precision on a device keeps to GELU's erf form, see tanh_gelu().
  bool exact_gelu = false;

  // Whether a device computes an MLP's GELU in its tanh form, which libraries
  // have as a product's epilogue: the two differ by 4.7e-4 at most, about what
  // bf16 rounds.
  bool tanh_gelu() const {
    return !exact_gelu && precision != model::Precision::kFloat32;
  }
};

}  // namespace sfmamba::layers

#endif  // SFMAMBA_MODEL_LAYERS_LAYER_OPTIONS_H_
