#ifndef SFMAMBA_TESTS_GPU_SCAN_FIGURES_H_
#define SFMAMBA_TESTS_GPU_SCAN_FIGURES_H_

#include <string>
#include <vector>

#include "kernels/fold_plan.h"
#include "kernels/quantiles.h"
#include "kernels/scan_plan.h"
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
  ScanShape shape;
  std::vector<int> lengths;  // Of each sequence, if they differ.

  int64_t tokens() const;
};

std::vector<ScanCase> ScanCases();

// Plans to be compared in a case: of kPaper every B1 with lane, fold and, for
// an even comparison, what CandidatePlans has; of the others those.
std::vector<ScanPlan> PlansOf(const ScanCase& scan, int multiprocessors);

// "lane 4x1", "fold 8 items, 32 rows", "chunk 64 of 8 lanes"
std::string ToString(const ScanPlan& plan);

// The least microseconds that a device could take by each of its limits, and
// by all: specification of the kernels, 2.2. Two bytes a value unless fp32.
struct ScanBound {
  double memory, special_functions, fp32, issue;
  double largest() const;
};
ScanBound BoundOf(const ScanCase& scan, const Setting& setting);

// What was measured of one plan.
struct ScanFigure {
  ScanCase scan;
  std::string kernel;    // "lane", "fold", "chunk", or a peer's name
  std::string plan;      // As ToString says; of a peer what it likes.
  int rows = 0;          // B1; 0: one row a sequence.
  Quantiles warm, cold;  // Microseconds.
};

// One line, without its end.
std::string Json(const ScanFigure& figure, const Setting& setting);

// Tables for people: by case a row; of the paper's shapes also its own figures.
std::string Markdown(const std::vector<ScanFigure>& figures,
                     const Setting& setting);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_GPU_SCAN_FIGURES_H_
