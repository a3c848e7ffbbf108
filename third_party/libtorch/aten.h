// What nearly every user of libtorch includes, read from a compiled form
// (precompiled.bzl): each of these headers costs seconds.
#ifndef SFMAMBA_THIRD_PARTY_LIBTORCH_ATEN_H_
#define SFMAMBA_THIRD_PARTY_LIBTORCH_ATEN_H_

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ATen/TensorOperators.h"
#include "ATen/core/Tensor.h"
#include "ATen/ops/empty.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#endif  // SFMAMBA_THIRD_PARTY_LIBTORCH_ATEN_H_
