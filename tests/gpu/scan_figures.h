#ifndef SFMAMBA_TESTS_GPU_SCAN_FIGURES_H_
#define SFMAMBA_TESTS_GPU_SCAN_FIGURES_H_

#include <string>
#include <vector>

#include "kernels/cuda/quantiles.h"
#include "kernels/scan/scan_plan.h"
#include "model/tuning/scan_plan_table.h"
#include "tests/gpu/setting.h"

namespace sfmamba {

// A scan to be measured.
struct ScanCase {
  enum Group {
    kModel,  // Stages 3 and 4 of T, S and B, by batch: the fastest plan of
             // each kernel.
    kPaper,  // The paper's four shapes: each B1 of each kernel.
    kLong,   // Whole maps of 896 x 896 pixels, and ragged and prime batches,
    kMixed,  // as kModel.
  };
  Group group;
  std::string name;  // "T stage 3"
  tuning::ScanShape shape;
  std::vector<int> lengths;  // Of each sequence, if they differ.

  int64_t tokens() const;
};

// The most valuable first.
std::vector<ScanCase> ScanCases();
// Those of some groups, "model", "paper", "long", "mixed", and of some numbers
// of sequences; what is empty leaves out none.
std::vector<ScanCase> ScanCases(const std::vector<std::string>& groups,
                                const std::vector<int>& batches);

// The same by name, of a size that costs nothing: for rehearsals.
ScanCase Tiny(ScanCase scan);

// Plans to be compared in a case: of kPaper every B1 with lane, fold and, for
// an even comparison, what CandidatePlans has; of the others those.
std::vector<kernels::ScanPlan> PlansOf(const ScanCase& scan,
                                       int multiprocessors);

// "lane", "fold" or "chunk".
const char* NameOf(kernels::ScanPlan::Kernel kernel);
// "4 lanes", "8 items, B1 = 32", "64 chunks, 8 lanes"
std::string ToString(const kernels::ScanPlan& plan);

// The least microseconds that a device could take by each of its limits, and by
// all. Two bytes a value unless fp32.
struct ScanBound {
  double memory, special_functions, fp32, issue;
  double largest() const;
};
ScanBound BoundOf(const ScanCase& scan, const Setting& setting);

// What was measured of one plan.
struct ScanFigure {
  ScanCase scan;
  std::string kernel;             // "lane", "fold", "chunk", or a peer's name
  std::string plan;               // As ToString says; of a peer what it likes.
  int rows = 0;                   // B1; 0: one row a sequence.
  kernels::Quantiles warm, cold;  // Microseconds.
};

// One line, without its end.
std::string Json(const ScanFigure& figure, const Setting& setting);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_GPU_SCAN_FIGURES_H_
