#ifndef SFMAMBA_TESTS_MODEL_BACKBONES_MIXER_CASES_H_
#define SFMAMBA_TESTS_MODEL_BACKBONES_MIXER_CASES_H_

#include <vector>

#include "ATen/ops/zeros_like.h"
#include "tests/model/against_reference.h"

namespace sfmamba::backbones {

// The shape of a mixer's input, [rows, sequences * length, width].
struct MixerCase {
  int64_t rows, sequences, length;
};

// Returns shapes with one token, with sequences that are shorter than a
// convolution, with odd lengths, and with sequences folded into rows.
inline std::vector<MixerCase> MixerCases() {
  return {{1, 1, 1}, {3, 1, 2}, {1, 3, 7}, {3, 2, 5}};
}

// Compares a mixer with its reference on sequences of tokens.
class MixerTest : public model::AgainstReference {
 protected:
  template <typename Mixer>
  static void ExpectEqualMixers(const Compared<Mixer>& mixers, int width,
                                const MixerCase& c) {
    const at::Tensor x = model::RandomValues(
        "x", {c.rows, c.sequences * c.length, int64_t{width}});
    const at::Tensor none = at::zeros_like(x);
    ops::Residual a = Stream(none), b(none.clone());
    mixers.tested.AddTo(a, Normed(x), c.length);
    mixers.reference.AddTo(b, x, c.length);
    ExpectNear(a.Sum(), b.Sum());
  }
};

}  // namespace sfmamba::backbones

#endif  // SFMAMBA_TESTS_MODEL_BACKBONES_MIXER_CASES_H_
